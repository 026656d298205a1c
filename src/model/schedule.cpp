#include "ricci/model/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include <fmt/format.h>

#include "ricci/build/elementwise.h"
#include "ricci/interp/interpreter.h"
#include "ricci/support/error.h"

#include "support/float_environment.h"

namespace ricci {
namespace {

// Steps are counted in f32, which has every whole number up to here.
constexpr std::int64_t MostSteps = 1 << 24;

void require_rate(double value, std::string_view schedule, std::string_view name) {
  if (std::isfinite(value) && value >= 0) return;
  throw UserError(ErrorCode::Attr,
                  fmt::format("{}: {} is {}, not a number from 0 on", schedule, name, value));
}

void require_count(std::int64_t value, std::int64_t least, std::string_view schedule,
                   std::string_view name) {
  if (value >= least && value <= MostSteps) return;
  throw UserError(ErrorCode::Attr, fmt::format("{}: {} is {}, not a count from {} to {}", schedule,
                                               name, value, least, MostSteps));
}

void require_ascending(const std::vector<std::int64_t>& steps, std::string_view schedule) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    require_count(steps[i], 1, schedule, fmt::format("boundary {}", i));
    if (i > 0 && steps[i] <= steps[i - 1]) {
      throw UserError(ErrorCode::Attr, fmt::format("{}: boundary {} follows {}: they must ascend",
                                                   schedule, steps[i], steps[i - 1]));
    }
  }
}

// How far a change is that begins at a step and takes so many: 0 before, 1 after.
Value part_done(Value step, std::int64_t begin, std::int64_t steps) {
  const Value since = step - static_cast<double>(begin);
  return clamp(since / static_cast<double>(steps), 0, 1);
}

// Half a cosine from one value to another.
Value half_cosine(double from, double to, Value part) {
  return to + (from - to) * (0.5 * (1.0 + cos(part * std::numbers::pi)));
}

Value whole_line(double from, double to, Value part) { return from + (to - from) * part; }

}  // namespace

Value Schedule::at(Value step) const { return rule_ ? rule_(step) : scalar_like(step, constant_); }

double Schedule::at(std::int64_t step) const {
  const DefaultFloatEnvironment floats;
  if (!rule_) return constant_;
  Graph graph("schedule");
  graph.set_outputs({at(graph.input("step", f64({})))});
  return interpret(graph, {{"step", Tensor::splat(f64({}), static_cast<double>(step))}})[0].item();
}

Schedule operator*(const Schedule& a, const Schedule& b) {
  const DefaultFloatEnvironment floats;
  if (a.constant() && b.constant()) return {*a.constant() * *b.constant()};
  return Schedule([a, b](Value step) { return a.at(step) * b.at(step); });
}

Schedule constant(double value) {
  require_rate(value, "constant", "value");
  return {value};
}

Schedule linear(double from, double to, RampOptions o) {
  require_rate(from, "linear", "from");
  require_rate(to, "linear", "to");
  require_count(o.steps, 1, "linear", "steps");
  require_count(o.begin, 0, "linear", "begin");
  return Schedule(
      [=](Value step) { return whole_line(from, to, part_done(step, o.begin, o.steps)); });
}

Schedule polynomial(double from, double to, PolynomialOptions o) {
  require_rate(from, "polynomial", "from");
  require_rate(to, "polynomial", "to");
  require_rate(o.power, "polynomial", "power");
  require_count(o.steps, 1, "polynomial", "steps");
  require_count(o.begin, 0, "polynomial", "begin");
  return Schedule([=](Value step) {
    return to + (from - to) * pow(1.0 - part_done(step, o.begin, o.steps), o.power);
  });
}

Schedule cosine(double peak, CosineOptions o) {
  require_rate(peak, "cosine", "peak");
  require_rate(o.start, "cosine", "start");
  require_rate(o.end, "cosine", "end");
  require_count(o.steps, 1, "cosine", "steps");
  require_count(o.warm_up, 0, "cosine", "warm_up");
  if (o.warm_up >= o.steps) {
    throw UserError(ErrorCode::Attr,
                    fmt::format("cosine: the warm-up takes {} of {} steps", o.warm_up, o.steps),
                    "`steps` are all steps, those of the warm-up included");
  }
  return Schedule([=](Value step) {
    const Value down = half_cosine(peak, o.end, part_done(step, o.warm_up, o.steps - o.warm_up));
    if (o.warm_up == 0) return down;
    const Value up = whole_line(o.start, peak, part_done(step, 0, o.warm_up));
    return where(lt(step, static_cast<double>(o.warm_up)), up, down);
  });
}

Schedule exponential(double from, ExponentialOptions o) {
  require_rate(from, "exponential", "from");
  require_count(o.steps, 1, "exponential", "steps");
  require_count(o.begin, 0, "exponential", "begin");
  if (o.end) require_rate(*o.end, "exponential", "end");
  if (!(o.rate > 0) || !std::isfinite(o.rate)) {
    throw UserError(ErrorCode::Attr,
                    fmt::format("exponential: rate is {}, not a positive number", o.rate));
  }
  return Schedule([=](Value step) {
    const Value since = max(step - static_cast<double>(o.begin), 0.0);
    Value times = since / static_cast<double>(o.steps);
    if (o.staircase) times = floor(times);
    const Value value = from * exp(times * std::log(o.rate));
    if (!o.end) return value;
    return o.rate < 1 ? max(value, *o.end) : min(value, *o.end);
  });
}

Schedule one_cycle(double peak, OneCycleOptions o) {
  const DefaultFloatEnvironment floats;
  require_rate(peak, "one_cycle", "peak");
  require_count(o.steps, 2, "one_cycle", "steps");
  for (const auto& [value, name] :
       {std::pair(o.start_factor, "start_factor"), std::pair(o.end_factor, "end_factor")}) {
    if (std::isfinite(value) && value >= 1) continue;
    throw UserError(ErrorCode::Attr,
                    fmt::format("one_cycle: {} is {}, not a number from 1 on", name, value));
  }
  const auto up = static_cast<std::int64_t>(o.warm_up * static_cast<double>(o.steps));
  if (!(o.warm_up > 0 && o.warm_up < 1) || up < 1) {
    throw UserError(
        ErrorCode::Attr,
        fmt::format("one_cycle: warm_up is {}, not a part of {} steps", o.warm_up, o.steps),
        "a number in (0, 1) that is a step at least");
  }
  const double start = peak / o.start_factor;
  return Schedule([=](Value step) {
    return where(lt(step, static_cast<double>(up)),
                 half_cosine(start, peak, part_done(step, 0, up)),
                 half_cosine(peak, start / o.end_factor, part_done(step, up, o.steps - up)));
  });
}

Schedule piecewise(double first, std::vector<PiecewiseStep> steps) {
  require_rate(first, "piecewise", "first");
  std::vector<std::int64_t> boundaries;
  for (const PiecewiseStep& s : steps) {
    boundaries.push_back(s.from);
    require_rate(s.value, "piecewise", fmt::format("the value from step {} on", s.from));
  }
  require_ascending(boundaries, "piecewise");
  return Schedule([first, steps = std::move(steps)](Value step) {
    Value value = scalar_like(step, first);
    for (const PiecewiseStep& s : steps) {
      value = where(lt(step, static_cast<double>(s.from)), value, scalar_like(step, s.value));
    }
    return value;
  });
}

Schedule warm_up(double peak, std::int64_t steps, double from) {
  require_rate(peak, "warm_up", "peak");
  require_rate(from, "warm_up", "from");
  require_count(steps, 1, "warm_up", "steps");
  return linear(from, peak, {.steps = steps});
}

Schedule inverse_sqrt(double peak, std::int64_t steps) {
  require_rate(peak, "inverse_sqrt", "peak");
  require_count(steps, 1, "inverse_sqrt", "steps");
  return Schedule([=](Value step) {
    const auto kept = static_cast<double>(steps);
    return peak * sqrt(kept / max(step + 1.0, kept));
  });
}

Schedule joined(std::vector<Schedule> schedules, std::vector<std::int64_t> boundaries) {
  if (schedules.empty() || boundaries.size() + 1 != schedules.size()) {
    throw UserError(
        ErrorCode::Attr,
        fmt::format("joined: {} schedules have {} boundaries", schedules.size(), boundaries.size()),
        "there is one boundary between each and the next");
  }
  require_ascending(boundaries, "joined");
  return Schedule(
      [schedules = std::move(schedules), boundaries = std::move(boundaries)](Value step) {
        Value value = schedules[0].at(step);
        for (std::size_t i = 0; i < boundaries.size(); ++i) {
          const auto boundary = static_cast<double>(boundaries[i]);
          value = where(lt(step, boundary), value, schedules[i + 1].at(step - boundary));
        }
        return value;
      });
}

}  // namespace ricci
