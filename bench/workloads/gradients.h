// Single computations and their derivatives.
#pragma once

#include "workloads/workload.h"

namespace ricci::bench {

/// The gradients of the draft's only output, whose cotangent is a new input.
[[nodiscard]] Workload gradients(std::string name, Draft draft,
                                 const std::vector<std::string>& wrt);

/// softmax(layer_norm(gelu(x·g + b) + x)) on 4096x1024.
[[nodiscard]] Workload fused_rows_fwd(Scale scale);
/// Its gradients in x, g, b and the norm's gamma and beta, for a given cotangent.
[[nodiscard]] Workload fused_rows_grad(Scale scale);
/// Mean softmax cross-entropy of 512x32000 logits, and its gradient in them.
[[nodiscard]] Workload softmax_ce_grad(Scale scale);
/// 10,000 steps of c += 0.01 tanh(c A + x_t), width 16: the last c.
[[nodiscard]] Workload scan_fwd(Scale scale);
/// The sum of the last c, and its gradients in A, xs and c0.
[[nodiscard]] Workload scan_grad(Scale scale);
/// The gradients of an LSTM in its inputs, weights and bias: length 64, batch 32, width 256.
[[nodiscard]] Workload lstm_grad(Scale scale);
/// The Hessian of mlp_train's loss times a vector.
[[nodiscard]] Workload mlp_hvp(Scale scale);
/// The Hessian of a logistic loss with 32 parameters on 1024 examples.
[[nodiscard]] Workload logistic_hessian(Scale scale);
/// The gradient of looking up 4096 ids in a 50000x256 table.
[[nodiscard]] Workload embedding_grad(Scale scale);
/// tanh(x·a + b) on ten elements: what a call costs.
[[nodiscard]] Workload tiny_call(Scale scale);

}  // namespace ricci::bench
