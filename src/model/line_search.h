// Steps along a line that lower a function enough. Knows nothing of tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace ricci {

/// A function of one number, with its slope.
struct LinePoint {
  double step = 0;
  double value = 0;
  double slope = 0;
};
using LineFunction = std::function<LinePoint(double step)>;

struct LineSearchSettings {
  double decrease = 1e-4;
  double curvature = 0.9;
  std::int64_t max_evaluations = 25;
};

/// A step with value ≤ value(0) + decrease·step·slope(0) and |slope| ≤ curvature·|slope(0)|; when
/// evaluations run out, the lowest point seen that satisfies the first; nothing when there is none.
/// Values that are not finite count as too high.
[[nodiscard]] std::optional<LinePoint> strong_wolfe(const LineFunction& f, const LinePoint& start,
                                                    double first_step,
                                                    const LineSearchSettings& settings);
/// A step with the first of both.
[[nodiscard]] std::optional<LinePoint> backtracking(const LineFunction& f, const LinePoint& start,
                                                    double first_step,
                                                    const LineSearchSettings& settings);

}  // namespace ricci
