// Everything a user of Ricci needs: types, graphs, builders, text, the reference interpreter,
// modules.
#pragma once

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/graph.h"
#include "ricci/ir/rebuild.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/model/module.h"
#include "ricci/op/custom.h"
#include "ricci/op/table.h"
#include "ricci/rule/eval.h"
#include "ricci/rule/expand.h"
#include "ricci/type/tensor.h"
