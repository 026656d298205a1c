// Adam and its relatives: first and second moments of the gradient.
#include "model/optimizers/moments.h"

namespace ricci {
namespace {

// First and second moments with the gradient in them.
OptimizerUpdate next_moments(double beta1, double beta2, const ParamStep& now, Value gradient) {
  return {now.param,
          {moved_mean(now.state[0], gradient, beta1),
           moved_mean(now.state[1], square(gradient), beta2)}};
}

OptimizerUpdate along_moments(const OptimizerUpdate& moments, double epsilon,
                              std::span<const Value> scalars) {
  const Value denominator = sqrt(moments.state[1]) / scalars[1] + epsilon;
  return {moments.param - scalars[0] * moments.state[0] / denominator, moments.state};
}

// Adam's quotient without a learning rate.
Value adam_direction(const OptimizerUpdate& moments, double epsilon, Value first_left,
                     Value second_left) {
  return moments.state[0] / first_left / (sqrt(moments.state[1] / second_left) + epsilon);
}

}  // namespace

std::vector<StateSlot> adam_slots(const Type& param) {
  return {slot_like("first", param), slot_like("second", param)};
}

std::vector<Value> adam_scalars(double beta1, double beta2, const OptimizerStep& step) {
  return {step.learning_rate / bias_left(beta1, step.count), sqrt(bias_left(beta2, step.count))};
}

OptimizerUpdate adamw_update(const AdamSettings& s, const ParamStep& now,
                             std::span<const Value> scalars) {
  OptimizerUpdate moments = next_moments(s.beta1, s.beta2, now, now.gradient);
  moments.param = decayed(moments.param, now.step.learning_rate, s.weight_decay);
  return along_moments(moments, s.epsilon, scalars);
}

std::vector<StateSlot> Adam::slots(const Type& param) const { return adam_slots(param); }
std::vector<Value> Adam::scalars(const OptimizerStep& step) const {
  return adam_scalars(beta1, beta2, step);
}
OptimizerUpdate Adam::update(const ParamStep& now) const {
  const Value gradient = with_decay(now.gradient, now.param, weight_decay);
  return along_moments(next_moments(beta1, beta2, now, gradient), epsilon, now.step.scalars);
}

std::vector<StateSlot> AdamW::slots(const Type& param) const { return adam_slots(param); }
std::vector<Value> AdamW::scalars(const OptimizerStep& step) const {
  return adam_scalars(beta1, beta2, step);
}
OptimizerUpdate AdamW::update(const ParamStep& now) const {
  return adamw_update({beta1, beta2, epsilon, weight_decay}, now, now.step.scalars);
}

std::vector<StateSlot> NAdam::slots(const Type& param) const { return adam_slots(param); }
std::vector<Value> NAdam::scalars(const OptimizerStep& step) const {
  return {bias_left(beta1, step.count), bias_left(beta1, step.count + 1.0),
          bias_left(beta2, step.count)};
}
OptimizerUpdate NAdam::update(const ParamStep& now) const {
  const OptimizerUpdate moments = next_moments(beta1, beta2, now, now.gradient);
  const std::vector<Value>& left = now.step.scalars;
  const Value ahead = moment_ahead(moments.state[0], now.gradient, beta1, left[1], left[0]);
  const Value direction = ahead / (sqrt(moments.state[1] / left[2]) + epsilon);
  const Value rate = now.step.learning_rate;
  return {decayed(now.param, rate, weight_decay) - rate * direction, moments.state};
}

std::vector<StateSlot> RAdam::slots(const Type& param) const { return adam_slots(param); }
std::vector<Value> RAdam::scalars(const OptimizerStep& step) const {
  const double most = 2 / (1 - beta2) - 1;
  const Value left = bias_left(beta2, step.count);
  const Value rho = most - 2.0 * step.count * (1.0 - left) / left;
  const Value enough = ge(rho, threshold);
  // Where it is not used the root may be of a negative number.
  const Value safe = max(rho, 4.0);
  const Value factor =
      sqrt((safe - 4.0) * (safe - 2.0) * (most / ((most - 4) * (most - 2))) / safe);
  return {bias_left(beta1, step.count), left, factor, enough};
}
OptimizerUpdate RAdam::update(const ParamStep& now) const {
  const OptimizerUpdate moments = next_moments(beta1, beta2, now, now.gradient);
  const std::vector<Value>& s = now.step.scalars;
  const Value plain = moments.state[0] / s[0];
  const Value rectified = s[2] * adam_direction(moments, epsilon, s[0], s[1]);
  const Value rate = now.step.learning_rate;
  const Value direction = where(ne(s[3], 0.0), rectified, plain);
  return {decayed(now.param, rate, weight_decay) - rate * direction, moments.state};
}

std::vector<StateSlot> Lamb::slots(const Type& param) const { return adam_slots(param); }
std::vector<Value> Lamb::scalars(const OptimizerStep& step) const {
  return {bias_left(beta1, step.count), bias_left(beta2, step.count)};
}
OptimizerUpdate Lamb::update(const ParamStep& now) const {
  const OptimizerUpdate moments = next_moments(beta1, beta2, now, now.gradient);
  const Value adam = adam_direction(moments, epsilon, now.step.scalars[0], now.step.scalars[1]);
  const Value direction = with_decay(adam, now.param, weight_decay);
  const Value of_param = euclidean_norm(now.param);
  const Value of_step = euclidean_norm(direction);
  const Value both = gt(min(of_param, of_step), 0.0);
  const Value one = scalar_like(of_step, 1);
  const Value trust = where(both, of_param / where(both, of_step, one), one);
  return {now.param - now.step.learning_rate * trust * direction, moments.state};
}

}  // namespace ricci
