// The compiler's own surface: rules of ops, passes, programs (LIR) and the seam of back ends. It
// changes faster than what ricci/ricci.h has.
#pragma once

#if __cplusplus < 202002L
#error "Ricci needs C++20: compile with -std=c++20"
#else

#include "ricci/compiler/device/backend.h"
#include "ricci/compiler/rewrite/batch_regions.h"
#include "ricci/compiler/rewrite/canonicalize.h"
#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/compiler/rewrite/control_flow.h"
#include "ricci/compiler/rewrite/fuse.h"
#include "ricci/compiler/rewrite/legalize.h"
#include "ricci/compiler/rewrite/loops.h"
#include "ricci/compiler/rewrite/pass.h"
#include "ricci/compiler/rewrite/precision.h"
#include "ricci/compiler/rewrite/prepare.h"
#include "ricci/compiler/rewrite/quantize.h"
#include "ricci/compiler/rewrite/unfuse.h"
#include "ricci/compiler/rule/batch.h"
#include "ricci/compiler/rule/eval.h"
#include "ricci/compiler/rule/expand.h"
#include "ricci/compiler/rule/jvp.h"
#include "ricci/compiler/rule/lower.h"
#include "ricci/compiler/rule/vjp.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"
#include "ricci/ir/rebuild.h"
#include "ricci/model/pipeline.h"
#include "ricci/op/ops.h"
#include "ricci/op/table.h"
#include "ricci/transform/error.h"
#include "ricci/transform/prepare.h"

#endif
