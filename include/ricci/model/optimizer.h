// Optimisers as values of a graph: gradients in, next parameters and state out. `compile_training`
// puts them behind a model's loss; use them directly to build a training step of your own.
//
//   OptimizerStep now = next_step(AdamW{}, count, learning_rate);
//   OptimizerUpdate next = updated(AdamW{}, {w, {first, second}}, gradient, now);
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "ricci/build/build.h"

namespace ricci {

/// g ← g + decay·p;  m ← momentum·m + g;  p ← p - lr·m, or with Nesterov p - lr·(g + momentum·m).
struct Sgd {
  double learning_rate = 1e-2;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

/// g ← g + decay·p;  m ← β₁ m + (1 - β₁) g;  v ← β₂ v + (1 - β₂) g²;
/// p ← p - lr · (m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε)
struct Adam {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
};

/// Adam with the decay apart from the gradient: p ← p (1 - lr·decay) - …
struct AdamW {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};

using Optimizer = std::variant<Sgd, Adam, AdamW>;

[[nodiscard]] double learning_rate(const Optimizer& optimizer);
/// What it keeps for each parameter: `momentum`, or `first` and `second`, or nothing.
[[nodiscard]] std::span<const std::string_view> state_names(const Optimizer& optimizer);
/// The type of that state for a parameter: f16 and bf16 ones have theirs in f32.
[[nodiscard]] Type state_type(const Type& param);

/// What the steps taken so far do to an update; the same for every parameter. Scalars in f32.
struct OptimizerStep {
  Value learning_rate;
  Value step_size;    ///< Adam: lr / (1 - β₁ᵗ)
  Value second_root;  ///< Adam: √(1 - β₂ᵗ)
};
/// `count` is a scalar of any dtype: steps taken, this one included.
[[nodiscard]] OptimizerStep next_step(const Optimizer& optimizer, Value count, Value learning_rate);

struct OptimizerUpdate {
  Value param;
  std::vector<Value> state;  ///< as state_names lists it
};
/// The next value of a parameter and its state.
[[nodiscard]] OptimizerUpdate updated(const Optimizer& optimizer, const OptimizerUpdate& before,
                                      Value gradient, const OptimizerStep& step);

/// √ of the sum of all squares, a scalar; f16 and bf16 are summed in f32.
[[nodiscard]] Value global_norm(std::span<const Value> gradients);
/// Gradients scaled so that their global norm is at most `limit`.
[[nodiscard]] std::vector<Value> clipped_by_norm(std::span<const Value> gradients, Value norm,
                                                 double limit);

}  // namespace ricci
