// Schedule-free AdamW: gradients between the iterates and their average.
#include "model/optimizers/moments.h"

namespace ricci {

std::vector<StateSlot> ScheduleFreeAdamW::slots(const Type& param) const {
  const Type scalar{param.dtype, {}};
  return {slot_like("second", param),
          {.name = "iterate", .type = param, .start = SlotStart::Param},
          {.name = "largest_rate", .type = scalar},
          {.name = "weights", .type = scalar}};
}

std::vector<Value> ScheduleFreeAdamW::scalars(const OptimizerStep& step) const {
  return {bias_left(beta2, step.count)};
}

Value ScheduleFreeAdamW::averaged(const OptimizerUpdate& now) const {
  return (now.param - now.state[1] * (1 - beta1)) / beta1;
}

OptimizerUpdate ScheduleFreeAdamW::update(const ParamStep& now) const {
  const Value rate = now.step.learning_rate;
  const Value second = moved_mean(now.state[0], square(now.gradient), beta2);
  const Value direction = now.gradient / (sqrt(second / now.step.scalars[0]) + epsilon);
  const Value iterate = now.state[1] - rate * with_decay(direction, now.param, weight_decay);
  const Value largest = max(now.state[2], rate);
  const Value weight = power == 2 ? square(largest) : pow(largest, power);
  const Value weights = now.state[3] + weight;
  // While the rate has been zero there is nothing to average.
  const Value some = gt(weights, 0.0);
  const Value part =
      where(some, weight / where(some, weights, scalar_like(weights, 1)), scalar_like(weights, 0));
  const Value before = averaged({now.param, now.state});
  const Value average = before * (1.0 - part) + iterate * part;
  return {average * beta1 + iterate * (1 - beta1), {second, iterate, largest, weights}};
}

}  // namespace ricci
