// Graphs: building them op by op, their text, running them by the reference, and differentiating
// and batching them. The layer below arrays (ricci/array.h); `trace` gives the graph of a function.
//
//   Graph g("loss");
//   Value x = g.input("x", f32({32, 784}));
//   g.set_outputs({{"loss", mean(square(x))}});
//   Graph slopes = value_and_grad(g, {"x"}).graph;   // outputs: loss, gradient
#pragma once

#if __cplusplus < 202002L
#error "Ricci needs C++20: compile with -std=c++20"
#else

#include "ricci/build/attention.h"
#include "ricci/build/build.h"
#include "ricci/build/control.h"
#include "ricci/build/conv.h"
#include "ricci/build/custom.h"
#include "ricci/build/elementwise.h"
#include "ricci/build/everyday.h"
#include "ricci/build/gaussian_splat.h"
#include "ricci/build/image.h"
#include "ricci/build/indexing.h"
#include "ricci/build/linalg.h"
#include "ricci/build/loss.h"
#include "ricci/build/norm.h"
#include "ricci/build/quant.h"
#include "ricci/build/recurrent.h"
#include "ricci/build/reduce.h"
#include "ricci/build/refused.h"
#include "ricci/build/select.h"
#include "ricci/build/shape.h"
#include "ricci/build/spectrum.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/graph.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/transform/check.h"
#include "ricci/transform/checkpoint.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/higher_order.h"
#include "ricci/transform/jet.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/split.h"
#include "ricci/transform/vmap.h"

#endif
