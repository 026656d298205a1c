// Optimisers as values of a graph: gradients in, next parameters and state out. `compile_training`
// puts them behind a model's loss; use them directly to build a training step of your own. The
// optimisers themselves are in ricci/model/optimizers.h.
//
//   OptimizerStep now = next_step(AdamW{}, count, learning_rate);
//   OptimizerUpdate next = updated(AdamW{}, {w, {first, second}}, gradient, now);
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ricci/model/optimizers.h"

namespace ricci {

/// The rate of the first step; `rate_schedule` has that of every step.
[[nodiscard]] double learning_rate(const Optimizer& optimizer);
[[nodiscard]] const Schedule& rate_schedule(const Optimizer& optimizer);
/// `adamw`, `lion`, …; and the optimiser with its defaults for such a name, UserError(name) when
/// there is none.
[[nodiscard]] std::string_view name(const Optimizer& optimizer);
[[nodiscard]] Optimizer optimizer_named(std::string_view name);
[[nodiscard]] std::vector<std::string_view> optimizer_names();

/// What it keeps for a param of a type: for AdamW `first` and `second`, both in f32 where the param
/// is f16 or bf16.
[[nodiscard]] std::vector<StateSlot> state_slots(const Optimizer& optimizer, const Type& param);
/// Their names.
[[nodiscard]] std::vector<std::string_view> state_names(const Optimizer& optimizer,
                                                        const Type& param = f32({}));
/// The type of what is kept element by element: f16 and bf16 params have theirs in f32.
[[nodiscard]] Type state_type(const Type& param);
/// UserError(attr) for settings that make no sense.
void require_sense(const Optimizer& optimizer);
/// Asks for an estimate of the Hessian's diagonal; then in which steps.
[[nodiscard]] std::optional<std::int64_t> curvature_interval(const Optimizer& optimizer);

/// `count` is a scalar of any dtype: steps taken, this one included. What is computed from it has
/// the dtype of `learning_rate`, f64, or f32 for any other.
[[nodiscard]] OptimizerStep next_step(const Optimizer& optimizer, Value count, Value learning_rate);

/// The next value of a parameter and its state, which is zeros before the first step.
[[nodiscard]] OptimizerUpdate updated(const Optimizer& optimizer, const OptimizerUpdate& before,
                                      Value gradient, const OptimizerStep& step,
                                      Value curvature = {});

/// √ of the sum of all squares, a scalar; f16 and bf16 are summed in f32.
[[nodiscard]] Value global_norm(std::span<const Value> gradients);
/// Gradients scaled so that their global norm is at most `limit`.
[[nodiscard]] std::vector<Value> clipped_by_norm(std::span<const Value> gradients, Value norm,
                                                 double limit);
/// Gradients with every element within [-limit, limit].
[[nodiscard]] std::vector<Value> clipped_by_value(std::span<const Value> gradients, double limit);

}  // namespace ricci
