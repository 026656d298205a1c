// Numbers that change from step to step, computed inside the program from its count of steps:
// learning rates, above all. A plain number is a schedule too.
//
//   AdamW{.learning_rate = cosine(2e-3, {.warm_up = 50, .steps = 600})}
//   AdamW{.learning_rate = 1e-3}
//
// Step 0 is the first. Builders refuse numbers that make no sense with UserError(attr).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ricci/ir/graph.h"

namespace ricci {

class Schedule {
 public:
  /// A rule is given the step as a scalar in f32 or f64 and gives a scalar of the same dtype.
  using Rule = std::function<Value(Value step)>;

  Schedule(double value) : constant_(value) {}  // NOLINT: a number is a schedule
  explicit Schedule(Rule rule) : rule_(std::move(rule)) {}

  /// In a graph, at a step that is one of its values.
  [[nodiscard]] Value at(Value step) const;
  /// The same number in f64, by the interpreter: for plots and tests.
  [[nodiscard]] double at(std::int64_t step) const;
  /// The number, where it is one and the same for all steps.
  [[nodiscard]] std::optional<double> constant() const noexcept {
    return rule_ ? std::nullopt : std::optional(constant_);
  }

 private:
  double constant_ = 0;
  Rule rule_;
};

/// The product at every step.
[[nodiscard]] Schedule operator*(const Schedule& a, const Schedule& b);

/// The same at all steps; what a plain number is.
[[nodiscard]] Schedule constant(double value);

struct RampOptions {
  std::int64_t steps = 0;  ///< how many the change takes; at least 1
  std::int64_t begin = 0;  ///< the step it begins at
};
/// from + (to - from)·u, where u goes from 0 to 1 in `steps` steps after `begin`.
[[nodiscard]] Schedule linear(double from, double to, RampOptions options);

struct PolynomialOptions {
  std::int64_t steps = 0;
  double power = 1;
  std::int64_t begin = 0;
};
/// to + (from - to)·(1 - u)^power
[[nodiscard]] Schedule polynomial(double from, double to, PolynomialOptions options);

struct CosineOptions {
  std::int64_t warm_up = 0;  ///< steps of a straight line from `start` to the peak
  std::int64_t steps = 0;    ///< in all, with those of the warm-up
  double start = 0;
  double end = 0;
};
/// A straight line up, then half a cosine from the peak down to `end`, where it stays.
[[nodiscard]] Schedule cosine(double peak, CosineOptions options);

struct ExponentialOptions {
  double rate = 0;  ///< the factor that `steps` steps amount to
  std::int64_t steps = 1;
  std::int64_t begin = 0;                    ///< the step it begins at
  bool staircase = false;                    ///< whole multiples of `steps` only
  std::optional<double> end = std::nullopt;  ///< a bound it does not pass
};
/// from·rate^(t/steps)
[[nodiscard]] Schedule exponential(double from, ExponentialOptions options);

struct OneCycleOptions {
  std::int64_t steps = 0;
  double warm_up = 0.3;      ///< the part of all steps that goes up
  double start_factor = 25;  ///< it starts at peak / start_factor
  double end_factor = 1e4;   ///< and ends at peak / (start_factor·end_factor)
};
/// Half a cosine up to the peak and another one down (Smith and Topin, 2018).
[[nodiscard]] Schedule one_cycle(double peak, OneCycleOptions options);

struct PiecewiseStep {
  std::int64_t from = 0;  ///< the first step with this value
  double value = 0;
};
/// `first`, and from each listed step on the value listed there; steps ascend.
[[nodiscard]] Schedule piecewise(double first, std::vector<PiecewiseStep> steps);

/// A straight line from `from` to `peak` in so many steps, then the peak.
[[nodiscard]] Schedule warm_up(double peak, std::int64_t steps, double from = 0);

/// The peak for so many steps, then peak·√(steps / t), where t counts from 1 (Shazeer and Stern,
/// 2018, with 10⁻² and 10⁴).
[[nodiscard]] Schedule inverse_sqrt(double peak, std::int64_t steps);

/// One schedule after the other: each is asked for steps counted from the boundary it begins at.
/// As many boundaries as schedules, less one; they ascend.
[[nodiscard]] Schedule joined(std::vector<Schedule> schedules,
                              std::vector<std::int64_t> boundaries);

}  // namespace ricci
