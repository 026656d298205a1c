#include "ricci/model/optimizer.h"

#include <cmath>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ricci/build/elementwise.h"
#include "ricci/support/error.h"

#include "type/small_dtype.h"

namespace ricci {
namespace {

// Calls `f` with every optimiser as it is by default.
template <class F, std::size_t... I>
void for_each_optimizer(F f, std::index_sequence<I...>) {
  (f(std::variant_alternative_t<I, Optimizer>{}), ...);
}
template <class F>
void for_each_optimizer(F f) {
  for_each_optimizer(f, std::make_index_sequence<std::variant_size_v<Optimizer>>());
}

void require_setting(std::string_view name, double value, SettingRange range) {
  const auto [holds, what] = [&]() -> std::pair<bool, const char*> {
    switch (range) {
      case SettingRange::NotNegative: return {value >= 0, "a number from 0 on"};
      case SettingRange::Positive: return {value > 0, "a positive number"};
      case SettingRange::Fraction: return {value >= 0 && value < 1, "a number in [0, 1)"};
      case SettingRange::Count: return {value >= 1 && value <= (1 << 24), "a count from 1 on"};
    }
    return {false, "a known kind of number"};
  }();
  if (std::isfinite(value) && holds) return;
  throw UserError(ErrorCode::Attr, fmt::format("{} is {}, not {}", name, value, what));
}

// The value a state begins with; of the param's computing dtype.
Value slot_start(const StateSlot& slot, Value param) {
  Graph& graph = param.graph();
  switch (slot.start) {
    case SlotStart::Zeros: return filled(graph, {slot.type.dtype, {}}, 0);
    case SlotStart::Param: return param;
    case SlotStart::Filled: return filled(graph, {slot.type.dtype, {}}, slot.value);
    case SlotStart::Identity: break;
  }
  const Value row = iota(graph, {.shape = slot.type.dims, .axis = 0});
  const Value column = iota(graph, {.shape = slot.type.dims, .axis = 1});
  return cast_to(eq(row, column), slot.type.dtype) * slot.value;
}

// State as the rule sees it: what does not start with zeros is made in the first step.
std::vector<Value> state_in_force(const std::vector<StateSlot>& slots, const ParamStep& now) {
  std::vector<Value> state;
  for (std::size_t k = 0; k < slots.size(); ++k) {
    if (slots[k].start == SlotStart::Zeros) {
      state.push_back(now.state[k]);
      continue;
    }
    const Value first = eq(now.step.count, 1.0);
    state.push_back(where(first, slot_start(slots[k], now.param), now.state[k]));
  }
  return state;
}

}  // namespace

const Schedule& rate_schedule(const Optimizer& optimizer) {
  return std::visit([](const auto& o) -> const Schedule& { return o.learning_rate; }, optimizer);
}

double learning_rate(const Optimizer& optimizer) {
  return rate_schedule(optimizer).at(std::int64_t{0});
}

std::string_view name(const Optimizer& optimizer) {
  return std::visit([](const auto& o) { return o.name; }, optimizer);
}

std::vector<std::string_view> optimizer_names() {
  std::vector<std::string_view> names;
  for_each_optimizer([&](const auto& o) { names.push_back(o.name); });
  return names;
}

Optimizer optimizer_named(std::string_view name) {
  std::optional<Optimizer> found;
  for_each_optimizer([&](const auto& o) {
    if (o.name == name) found = o;
  });
  if (found) return *found;
  throw UserError(ErrorCode::Name, fmt::format("there is no optimiser '{}'", name),
                  fmt::format("there are: {}", fmt::join(optimizer_names(), ", ")));
}

Type state_type(const Type& param) { return {widened(param.dtype), param.dims}; }

std::vector<StateSlot> state_slots(const Optimizer& optimizer, const Type& param) {
  return std::visit([&](const auto& o) { return o.slots(state_type(param)); }, optimizer);
}

std::vector<std::string_view> state_names(const Optimizer& optimizer, const Type& param) {
  std::vector<std::string_view> names;
  for (const StateSlot& slot : state_slots(optimizer, param)) names.push_back(slot.name);
  return names;
}

void require_sense(const Optimizer& optimizer) {
  const auto check = [](std::string_view name, const auto& value, SettingRange range) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Schedule>) {
      if (value.constant()) require_setting(name, *value.constant(), range);
    } else {
      require_setting(name, static_cast<double>(value), range);
    }
  };
  std::visit(
      [&](const auto& o) {
        o.fields(o, check);
        // An average that is kept as a part of the param is found by dividing by that part.
        if constexpr (requires(OptimizerUpdate u) { o.averaged(u); }) {
          check("beta1", o.beta1, SettingRange::Positive);
        }
      },
      optimizer);
}

std::optional<std::int64_t> curvature_interval(const Optimizer& optimizer) {
  return std::visit(
      [](const auto& o) -> std::optional<std::int64_t> {
        if constexpr (requires { o.needs_curvature; }) return o.interval;
        return std::nullopt;
      },
      optimizer);
}

OptimizerStep next_step(const Optimizer& optimizer, Value count, Value learning_rate) {
  const DType in = learning_rate.dtype() == DType::F64 ? DType::F64 : DType::F32;
  OptimizerStep step{cast_to(learning_rate, in), cast_to(count, in)};
  std::visit(
      [&](const auto& o) {
        if constexpr (requires { o.scalars(step); }) step.scalars = o.scalars(step);
      },
      optimizer);
  return step;
}

OptimizerUpdate updated(const Optimizer& optimizer, const OptimizerUpdate& before, Value gradient,
                        const OptimizerStep& step, Value curvature) {
  const DType dtype = before.param.dtype();
  if (is_complex(dtype) || !is_float(dtype)) {
    throw UserError(ErrorCode::DType, "only parameters of a real floating dtype can be trained");
  }
  const std::vector<StateSlot> slots = state_slots(optimizer, before.param.type());
  if (slots.size() != before.state.size()) {
    throw UserError(
        ErrorCode::Shape,
        fmt::format("{} keeps {} states for {}, but {} are given", name(optimizer), slots.size(),
                    before.param.type().to_string(), before.state.size()));
  }
  if (curvature_interval(optimizer) && !curvature.valid()) {
    throw UserError(ErrorCode::Refused,
                    fmt::format("{} needs an estimate of the Hessian's diagonal", name(optimizer)),
                    "compile_training makes one");
  }
  const DType in = widened(dtype);
  const auto as = [&](Value v) { return v.valid() ? cast_to(v, in) : v; };
  ParamStep now{as(before.param),
                before.state,
                as(gradient),
                {as(step.learning_rate), as(step.count)},
                as(curvature)};
  for (const Value& s : step.scalars) now.step.scalars.push_back(as(s));
  now.state = state_in_force(slots, now);
  OptimizerUpdate after = std::visit([&](const auto& o) { return o.update(now); }, optimizer);
  after.param = cast_to(after.param, dtype);
  return after;
}

Value global_norm(std::span<const Value> gradients) {
  Value total;
  for (const Value& g : gradients) {
    const Value squares = square(cast_to(g, widened(g.dtype())));
    const Value sum_of_squares = squares.rank() == 0 ? squares : sum(squares);
    const Value part = cast_to(sum_of_squares, total.valid() ? total.dtype() : squares.dtype());
    total = total.valid() ? total + part : part;
  }
  if (!total.valid()) throw UserError(ErrorCode::Name, "there is no gradient to take the norm of");
  return sqrt(total);
}

std::vector<Value> clipped_by_norm(std::span<const Value> gradients, Value norm, double limit) {
  // The divisor is at least the limit: nothing is divided by zero, and small gradients stay.
  const Value scale = limit / max(norm, limit);
  std::vector<Value> out;
  for (const Value& g : gradients) {
    const DType in = widened(g.dtype());
    out.push_back(cast_to(cast_to(g, in) * cast_to(scale, in), g.dtype()));
  }
  return out;
}

std::vector<Value> clipped_by_value(std::span<const Value> gradients, double limit) {
  std::vector<Value> out;
  for (const Value& g : gradients) out.push_back(clamp(g, -limit, limit));
  return out;
}

}  // namespace ricci
