// Training steps: loss, gradients and AdamW as one graph that takes parameters and optimiser state
// and gives their next values.
#pragma once

#include "workloads/workload.h"

namespace ricci::bench {

/// 784-512-512-10 with relu, batch 128.
[[nodiscard]] Workload mlp_train(Scale scale);
/// 4 layers, 4 heads, width 256, vocabulary 512, batch 4, length 128; pre-norm, tanh-gelu, causal.
[[nodiscard]] Workload gpt_train(Scale scale);
/// GPT-2's sizes with so many layers; 12 make its smallest model, of 124 million parameters. To be
/// compiled, not run.
[[nodiscard]] Workload gpt2_train(std::int64_t layers);
/// Three 3x3 convolutions 3-32-64-128 with relu and 2x2 max-pool on 32x32, dense to 10, batch 32.
[[nodiscard]] Workload cnn_train(Scale scale);
/// 10,000 Gaussian splats with two bands of harmonics on an image of 256x256, squared error.
[[nodiscard]] Workload splat_step(Scale scale);

/// The perceptron of mlp_train as a graph of its loss; mlp_hvp differentiates it twice.
[[nodiscard]] Draft mlp_loss(Scale scale);

}  // namespace ricci::bench
