// A gradient as two programs: one forward, which gives the values and what the other needs of them,
// and one backward. For pipelines that run them in different places or at different times; in one
// place `grad_with_loss` is one program.
//
//   SplitGradient g = split_vjp(graph, {"w"});
//   g.forward.graph     // inputs of the graph → its outputs…, residuals…
//   g.backward          // residuals, inputs it reads again, d_output_0, … → gradients
#pragma once

#include <string>
#include <vector>

#include "ricci/transform/grad.h"
#include "ricci/transform/transformed.h"

namespace ricci {

struct SplitGradient {
  Transformed forward;  ///< outputs: the graph's, then the residuals
  /// Inputs: the residuals and those inputs and params of the graph that it reads, by their names,
  /// in the order in which it reads them; then `d_output_<i>` for every output that has a
  /// derivative. Outputs: a gradient per value of `wrt`, in order. It runs nothing of the forward
  /// program again but what checkpoints and loops that keep less than all ask for.
  Graph backward;
  std::vector<std::string> residuals;  ///< their names in it, in the order of the outputs
};

[[nodiscard]] SplitGradient split_vjp(const Graph& forward, const std::vector<ValueRef>& wrt,
                                      const GradOptions& options = {});

}  // namespace ricci
