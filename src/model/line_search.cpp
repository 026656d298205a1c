#include "model/line_search.h"

#include <algorithm>
#include <cmath>

namespace ricci {
namespace {

// The minimum of the cubic through two points with their slopes, kept away from both ends of the
// interval; its middle when there is no such cubic.
double cubic_minimum(const LinePoint& a, const LinePoint& b) {
  const double left = std::min(a.step, b.step);
  const double width = std::abs(b.step - a.step);
  const double middle = left + width / 2;
  const double d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.step - b.step);
  const double inside = d1 * d1 - a.slope * b.slope;
  if (!(inside >= 0) || !std::isfinite(inside)) return middle;
  const double d2 = std::copysign(std::sqrt(inside), b.step - a.step);
  const double divisor = b.slope - a.slope + 2 * d2;
  const double at = b.step - (b.step - a.step) * (b.slope + d2 - d1) / divisor;
  if (!std::isfinite(at)) return middle;
  return std::clamp(at, left + 0.1 * width, left + 0.9 * width);
}

// The search for a point that satisfies both conditions, with what it has seen so far.
class WolfeSearch {
 public:
  WolfeSearch(const LineFunction& f, const LinePoint& start, const LineSearchSettings& settings)
      : f_(f), start_(start), settings_(settings) {}

  std::optional<LinePoint> run(double step) {
    LinePoint before = start_;
    while (left()) {
      const LinePoint now = evaluate(step);
      if (!falls_enough(now) || (evaluations_ > 1 && now.value >= before.value)) {
        return zoom(before, now);
      }
      if (is_flat(now)) return now;
      if (now.slope >= 0) return zoom(now, before);
      before = now;
      step *= 2;
    }
    return best_;
  }

 private:
  [[nodiscard]] bool left() const { return evaluations_ < settings_.max_evaluations; }
  [[nodiscard]] bool falls_enough(const LinePoint& p) const {
    return std::isfinite(p.value) && std::isfinite(p.slope) &&
           p.value <= start_.value + settings_.decrease * p.step * start_.slope;
  }
  [[nodiscard]] bool is_flat(const LinePoint& p) const {
    return std::abs(p.slope) <= settings_.curvature * std::abs(start_.slope);
  }

  LinePoint evaluate(double step) {
    ++evaluations_;
    const LinePoint point = f_(step);
    if (falls_enough(point) && (!best_ || point.value < best_->value)) best_ = point;
    return point;
  }

  // Between a point that falls enough and one beyond the minimum.
  std::optional<LinePoint> zoom(LinePoint low, LinePoint high) {
    while (left() && std::abs(high.step - low.step) > 1e-16 * std::max(1.0, low.step)) {
      const bool known = std::isfinite(high.value) && std::isfinite(high.slope);
      const double step = known ? cubic_minimum(low, high) : (low.step + high.step) / 2;
      const LinePoint now = evaluate(step);
      if (!falls_enough(now) || now.value >= low.value) {
        high = now;
        continue;
      }
      if (is_flat(now)) return now;
      if (now.slope * (high.step - low.step) >= 0) high = low;
      low = now;
    }
    return best_;
  }

  const LineFunction& f_;
  LinePoint start_;
  LineSearchSettings settings_;
  std::int64_t evaluations_ = 0;
  std::optional<LinePoint> best_;
};

}  // namespace

std::optional<LinePoint> strong_wolfe(const LineFunction& f, const LinePoint& start,
                                      double first_step, const LineSearchSettings& settings) {
  return WolfeSearch(f, start, settings).run(first_step);
}

std::optional<LinePoint> backtracking(const LineFunction& f, const LinePoint& start,
                                      double first_step, const LineSearchSettings& settings) {
  double step = first_step;
  for (std::int64_t i = 0; i < settings.max_evaluations; ++i, step /= 2) {
    const LinePoint point = f(step);
    const double enough = start.value + settings.decrease * step * start.slope;
    if (std::isfinite(point.value) && std::isfinite(point.slope) && point.value <= enough) {
      return point;
    }
  }
  return std::nullopt;
}

}  // namespace ricci
