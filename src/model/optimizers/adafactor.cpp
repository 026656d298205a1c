// Adafactor: second moments kept as one number a row and one a column.
#include <algorithm>
#include <numeric>
#include <utility>

#include "model/optimizers/moments.h"

namespace ricci {
namespace {

// The axes of a param that is factored: the second longest and the longest.
struct FactoredAxes {
  std::size_t second;
  std::size_t longest;
};
std::optional<FactoredAxes> factored_axes(const Adafactor& settings, const Type& param) {
  const bool known = std::ranges::all_of(param.dims, [](const Dim& d) { return d.is_static(); });
  if (param.rank() < 2 || !known) return std::nullopt;
  std::vector<std::size_t> axes(param.rank());
  std::iota(axes.begin(), axes.end(), 0U);
  std::ranges::sort(axes, {}, [&](std::size_t a) { return std::pair(param.dims[a].value(), a); });
  const FactoredAxes found{axes[axes.size() - 2], axes.back()};
  if (param.dims[found.second].value() < settings.factored_from) return std::nullopt;
  return found;
}

Type without_axis(Type type, std::size_t axis) {
  type.dims.erase(type.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  return type;
}

Value mean_along(Value x, std::size_t axis) { return mean(x, {static_cast<std::int64_t>(axis)}); }

// A value without an axis of `like`, with that axis of size 1.
Value with_axis(Value x, Value like, std::size_t axis) {
  Dims dims = like.dims();
  dims[axis] = 1;
  return reshape_to(x, dims);
}

// g over the root of its second moments, which are put into `state`.
Value by_second_moments(const Adafactor& settings, const ParamStep& now,
                        std::vector<Value>& state) {
  const Value kept = 1.0 - exp(log(now.step.count) * -settings.decay_rate);
  const auto moved = [&](Value before, Value next) { return before * kept + next * (1.0 - kept); };
  const Value squares = square(now.gradient) + settings.epsilon;
  const auto axes = factored_axes(settings, now.param.type());
  if (!axes) {
    state.push_back(moved(now.state[0], squares));
    return now.gradient * rsqrt(state[0]);
  }
  state.push_back(moved(now.state[0], mean_along(squares, axes->longest)));
  state.push_back(moved(now.state[1], mean_along(squares, axes->second)));
  const Value row = with_axis(state[0], now.param, axes->longest);
  const Value column = with_axis(state[1], now.param, axes->second);
  const Value of_rows = mean(row, {static_cast<std::int64_t>(axes->second)}, true);
  return now.gradient * rsqrt(row / of_rows) * rsqrt(column);
}

}  // namespace

std::vector<StateSlot> Adafactor::slots(const Type& param) const {
  std::vector<StateSlot> slots;
  if (const auto axes = factored_axes(*this, param)) {
    slots.push_back({.name = "row", .type = without_axis(param, axes->longest)});
    slots.push_back({.name = "column", .type = without_axis(param, axes->second)});
  } else {
    slots.push_back(slot_like("second", param));
  }
  if (momentum != 0) slots.push_back(slot_like("first", param));
  return slots;
}

OptimizerUpdate Adafactor::update(const ParamStep& now) const {
  std::vector<Value> state;
  Value move = by_second_moments(*this, now, state);
  move = move / max(root_mean_square(move) / clip, 1.0) * now.step.learning_rate;
  if (scale_by_param) move = move * max(root_mean_square(now.param), 1e-3);
  if (momentum != 0) {
    move = moved_mean(now.state.back(), move, momentum);
    state.push_back(move);
  }
  return {now.param - with_decay(move, now.param, weight_decay), state};
}

}  // namespace ricci
