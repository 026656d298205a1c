// Curves as SVG, with their points as data for what shows them under the pointer.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ricci::report {

struct CurvePoint {
  double x = 0;
  double y = 0;
};
struct Curve {
  std::string name;
  std::size_t colour = 0;
  std::vector<CurvePoint> points;  ///< ascending in x; not finite: a gap
  enum class Style : unsigned char { Line, Faint, Dots } style = Style::Line;
};
struct Chart {
  std::string title;
  std::string x_label = "step";
  std::vector<Curve> curves;
};

/// At most `most` points, means of neighbours.
[[nodiscard]] std::vector<CurvePoint> thinned(std::span<const CurvePoint> points, std::size_t most);
/// A mean of those before, in which newer ones count more.
[[nodiscard]] std::vector<CurvePoint> smoothed(std::span<const CurvePoint> points);
/// Round numbers within [low, high].
[[nodiscard]] std::vector<double> ticks(double low, double high, int about);

/// A figure. Without a finite point it says so.
[[nodiscard]] std::string figure(const Chart& chart);

}  // namespace ricci::report
