// The scale of a loss as values of a training graph: what seeds the gradient, what is done to it,
// and what is kept when a step is skipped. See LossScaling in ricci/model/training.h.
#pragma once

#include <string>
#include <vector>

#include "ricci/build/build.h"
#include "ricci/model/training.h"
#include "ricci/transform/transformed.h"

namespace ricci {

struct ScaledGradient {
  Graph graph;        ///< as the gradient's, with the seed in the place of its input
  std::string scale;  ///< the params
  std::string good_steps;
};
/// Takes a gradient with an input for the cotangent of its loss, which the scale is given to.
[[nodiscard]] ScaledGradient with_scaled_seed(const Transformed& gradient,
                                              const LossScaling& scaling);

/// Behind the gradients, in the graph they are in.
class LossScale {
 public:
  LossScale(Graph& graph, const ScaledGradient& names, const LossScaling& scaling);
  /// Gradients without the scale, f16 and bf16 ones in f32.
  [[nodiscard]] std::vector<Value> unscaled(const std::vector<Value>& gradients) const;
  /// Says by the norm of all gradients whether the step is taken.
  void decide(Value norm);
  [[nodiscard]] Value is_taken() const { return is_taken_; }
  /// `next`, or `before` where the step is skipped.
  [[nodiscard]] Value taken(Value next, Value before) const;
  [[nodiscard]] Value next_scale() const;
  [[nodiscard]] Value next_good_steps() const;

 private:
  [[nodiscard]] Value number(double x) const { return filled(*graph_, f32({}), x); }

  Graph* graph_;
  LossScaling scaling_;
  Value scale_;
  Value good_;  ///< steps the scale has been good for, this one included
  Value is_taken_;
};

/// The scale in force: zero stands for the initial one.
[[nodiscard]] Value scale_in_force(Value kept, const LossScaling& scaling);

/// UserError(attr) for numbers without sense.
void require_sense(const LossScaling& scaling);

}  // namespace ricci
