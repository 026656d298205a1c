// Sophia: the gradient over an estimate of the Hessian's diagonal.
#include "ricci/build/elementwise.h"

#include "model/optimizers/moments.h"

namespace ricci {

std::vector<StateSlot> Sophia::slots(const Type& param) const {
  return {slot_like("first", param), slot_like("hessian", param)};
}

std::vector<Value> Sophia::scalars(const OptimizerStep& step) const {
  return {bias_left(beta1, step.count), begins_interval(step.count, interval)};
}

OptimizerUpdate Sophia::update(const ParamStep& now) const {
  const Value first = moved_mean(now.state[0], now.gradient, beta1);
  const Value quotient = first / now.step.scalars[0] / max(now.state[1] * gamma, epsilon);
  const Value direction = with_decay(clamp(quotient, -clip, clip), now.param, weight_decay);
  // An estimate that is not finite is none.
  const Value estimated = moved_mean(now.state[1], now.curvature, beta2);
  const Value fresh = logical_and(ne(now.step.scalars[1], 0.0), is_finite(now.curvature));
  return {now.param - now.step.learning_rate * direction,
          {first, where(fresh, estimated, now.state[1])}};
}

}  // namespace ricci
