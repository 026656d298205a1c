// Optimisers that follow the gradient, its sign, or the gradient over its size so far.
#include "model/optimizers/moments.h"

namespace ricci {

std::vector<StateSlot> Sgd::slots(const Type& param) const {
  if (momentum == 0) return {};
  return {slot_like("momentum", param)};
}
OptimizerUpdate Sgd::update(const ParamStep& now) const {
  const Value gradient = with_decay(now.gradient, now.param, weight_decay);
  const Value rate = now.step.learning_rate;
  if (momentum == 0) return {now.param - rate * gradient, {}};
  const Value moved = now.state[0] * momentum + gradient;
  const Value direction = nesterov ? gradient + moved * momentum : moved;
  return {now.param - rate * direction, {moved}};
}

std::vector<StateSlot> Lion::slots(const Type& param) const { return {slot_like("first", param)}; }
OptimizerUpdate Lion::update(const ParamStep& now) const {
  const Value direction = sign(moved_mean(now.state[0], now.gradient, beta1));
  return {now.param - now.step.learning_rate * with_decay(direction, now.param, weight_decay),
          {moved_mean(now.state[0], now.gradient, beta2)}};
}

std::vector<StateSlot> RmsProp::slots(const Type& param) const {
  std::vector<StateSlot> slots = {slot_like("second", param)};
  if (centered) slots.push_back(slot_like("mean", param));
  if (momentum != 0) slots.push_back(slot_like("momentum", param));
  return slots;
}
OptimizerUpdate RmsProp::update(const ParamStep& now) const {
  const Value gradient = with_decay(now.gradient, now.param, weight_decay);
  std::vector<Value> state = {moved_mean(now.state[0], square(gradient), decay_rate)};
  Value size = state[0];
  if (centered) {
    state.push_back(moved_mean(now.state[1], gradient, decay_rate));
    // By rounding the difference may be below zero.
    size = max(size - square(state[1]), 0.0);
  }
  const Value move = now.step.learning_rate * gradient * rsqrt(size + epsilon);
  if (momentum == 0) return {now.param - move, state};
  state.push_back(now.state.back() * momentum + move);
  const Value moved = state.back();
  return {now.param - (nesterov ? move + moved * momentum : moved), state};
}

std::vector<StateSlot> Adagrad::slots(const Type& param) const {
  return {{.name = "sum", .type = param, .start = SlotStart::Filled, .value = initial}};
}
OptimizerUpdate Adagrad::update(const ParamStep& now) const {
  const Value gradient = with_decay(now.gradient, now.param, weight_decay);
  const Value sum = now.state[0] + square(gradient);
  const Value some = gt(sum, 0.0);
  const Value size = where(some, sum + epsilon, scalar_like(sum, 1));
  return {now.param - now.step.learning_rate * gradient * rsqrt(size), {sum}};
}

}  // namespace ricci
