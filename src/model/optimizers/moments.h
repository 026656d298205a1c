// What rules of optimisers have in common: moving averages and their corrections, norms of whole
// params, and the factors of matrices.
#pragma once

#include <cmath>

#include "ricci/build/build.h"
#include "ricci/model/optimizers.h"

namespace ricci {

/// A state of the param's own type.
[[nodiscard]] inline StateSlot slot_like(std::string_view name, const Type& param) {
  return {.name = name, .type = param};
}

/// decay·before + (1 - decay)·next
[[nodiscard]] inline Value moved_mean(Value before, Value next, double decay) {
  return before * decay + next * (1 - decay);
}

/// 1 - βᵗ as -expm1(t log β): in f32 the power is too close to one to be subtracted.
[[nodiscard]] inline Value bias_left(double beta, Value count) {
  return -expm1(count * std::log(beta));
}

/// g + decay·p; g itself without a decay.
[[nodiscard]] inline Value with_decay(Value gradient, Value param, double decay) {
  return decay == 0 ? gradient : gradient + param * decay;
}

/// p (1 - lr·decay): a decay apart from the gradient.
[[nodiscard]] inline Value decayed(Value param, Value rate, double decay) {
  return decay == 0 ? param : param * (1.0 - rate * decay);
}

/// m̂ of Nesterov's kind, with m already updated: 1 - βᵗ⁺¹ and 1 - βᵗ are left.
[[nodiscard]] inline Value moment_ahead(Value first, Value gradient, double beta, Value next_left,
                                        Value left) {
  return first * beta / next_left + gradient * (1 - beta) / left;
}

/// √ of the sum of all squares, a scalar.
[[nodiscard]] inline Value euclidean_norm(Value x) {
  return x.rank() == 0 ? abs(x) : sqrt(sum(square(x)));
}
/// √ of the mean of all squares.
[[nodiscard]] inline Value root_mean_square(Value x) {
  return x.rank() == 0 ? abs(x) : sqrt(mean(square(x)));
}

/// Adam's state, numbers of a step and update, which others fall back on.
[[nodiscard]] std::vector<StateSlot> adam_slots(const Type& param);
/// lr / (1 - β₁ᵗ) and √(1 - β₂ᵗ)
[[nodiscard]] std::vector<Value> adam_scalars(double beta1, double beta2,
                                              const OptimizerStep& step);
struct AdamSettings {
  double beta1;
  double beta2;
  double epsilon;
  double weight_decay;  ///< AdamW's
};
/// `scalars` begin with those of adam_scalars.
[[nodiscard]] OptimizerUpdate adamw_update(const AdamSettings& settings, const ParamStep& now,
                                           std::span<const Value> scalars);

/// Is it a matrix with sides that are known?
[[nodiscard]] inline bool is_known_matrix(const Type& param) {
  return param.rank() == 2 && param.dims[0].is_static() && param.dims[1].is_static();
}

/// In steps where `flag` is not 0 what `then` makes of `values`, and otherwise `values`.
template <class F>
[[nodiscard]] std::vector<Value> in_some_steps(Value flag, const std::vector<Value>& values,
                                               std::span<const Value> operands, F then) {
  std::vector<Value> all(values);
  all.insert(all.end(), operands.begin(), operands.end());
  const std::size_t kept = values.size();
  return cond(
      flag, all, [&](Graph&, std::span<const Value> in) { return then(in); },
      [&](Graph&, std::span<const Value> in) {
        return std::vector<Value>(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(kept));
      });
}

/// Is (count - 1) a multiple of the interval?
[[nodiscard]] inline Value begins_interval(Value count, std::int64_t interval) {
  return eq(rem(count - 1.0, static_cast<double>(interval)), 0.0);
}

}  // namespace ricci
