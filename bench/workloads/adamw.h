// AdamW over values of a graph.
#pragma once

#include "ricci/build/build.h"

namespace ricci::bench {

struct AdamW {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};

/// What the steps taken so far do to an update; the same for every parameter.
struct AdamWStep {
  Value count;        ///< steps taken, this one included
  Value step_size;    ///< lr / (1 - β₁ᵗ)
  Value second_root;  ///< √(1 - β₂ᵗ)
};
/// `steps` is a scalar: how many were taken before.
[[nodiscard]] AdamWStep next_step(Value steps, const AdamW& settings);

struct AdamWUpdate {
  Value param;
  Value first;   ///< running mean of gradients
  Value second;  ///< running mean of their squares
};
/// m ← β₁ m + (1 - β₁) g;  v ← β₂ v + (1 - β₂) g²;
/// p ← p (1 - lr·decay) - lr · (m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε)
[[nodiscard]] AdamWUpdate adamw_update(const AdamWUpdate& before, Value gradient,
                                       const AdamWStep& step, const AdamW& settings);

}  // namespace ricci::bench
