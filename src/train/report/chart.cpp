#include "train/report/chart.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "support/json.h"
#include "train/report/html.h"

namespace ricci::report {
namespace {

constexpr double Width = 720;
constexpr double Height = 300;
constexpr double Left = 76;
constexpr double Right = 692;
constexpr double Top = 12;
constexpr double Bottom = 262;
constexpr std::size_t MostPoints = 800;

// From numbers to places in the picture.
struct Frame {
  double x_low = INFINITY, x_high = -INFINITY, y_low = INFINITY, y_high = -INFINITY;

  void take(const CurvePoint& p) {
    if (!std::isfinite(p.x) || !std::isfinite(p.y)) return;
    x_low = std::min(x_low, p.x);
    x_high = std::max(x_high, p.x);
    y_low = std::min(y_low, p.y);
    y_high = std::max(y_high, p.y);
  }
  [[nodiscard]] bool empty() const { return x_low > x_high; }
  // Room above and below, and a size where there is none.
  void settle() {
    if (x_low == x_high) x_high = x_low + 1;
    const double span = y_high - y_low;
    const double margin = span > 0 ? 0.05 * span : std::max(1e-3, 0.1 * std::fabs(y_high));
    y_low = y_low >= 0 && y_low - margin < 0 ? 0 : y_low - margin;
    y_high += margin;
  }
  [[nodiscard]] double x(double v) const {
    return Left + (v - x_low) / (x_high - x_low) * (Right - Left);
  }
  [[nodiscard]] double y(double v) const {
    return Bottom - (v - y_low) / (y_high - y_low) * (Bottom - Top);
  }
};

// Short, as there is little room.
std::string tick_text(double v) {
  if (v == 0 || (std::fabs(v) >= 0.01 && std::fabs(v) < 1e5)) return number_text(v);
  const int power = static_cast<int>(std::floor(std::log10(std::fabs(v)) + 1e-9));
  return fmt::format("{:.3g}e{}", v / std::pow(10, power), power);
}

std::string axes(const Frame& f, const Chart& chart) {
  std::string out;
  for (const double t : ticks(f.y_low, f.y_high, 5)) {
    out += fmt::format("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
                       "<text class=\"y\" x=\"{}\" y=\"{:.1f}\">{}</text>\n",
                       Left, Right, f.y(t), f.y(t), Left - 8, f.y(t) + 4, tick_text(t));
  }
  for (const double t : ticks(f.x_low, f.x_high, 7)) {
    out += fmt::format("<text class=\"x\" x=\"{:.1f}\" y=\"{}\">{}</text>\n", f.x(t), Bottom + 18,
                       number_text(t));
  }
  out += fmt::format("<line class=\"axis\" x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\"/>"
                     "<text class=\"x\" x=\"{3}\" y=\"{4}\">{5}</text>\n",
                     Left, Right, Bottom, (Left + Right) / 2, Height - 3, escaped(chart.x_label));
  return out;
}

std::string drawn(const Curve& curve, const Frame& f) {
  std::string out;
  if (curve.style == Curve::Style::Dots) {
    for (const CurvePoint& p : curve.points) {
      if (!std::isfinite(p.y)) continue;
      out += fmt::format("<circle class=\"s{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\"/>",
                         curve.colour % 8, f.x(p.x), f.y(p.y));
    }
    return out;
  }
  bool pen_down = false;
  for (const CurvePoint& p : curve.points) {
    if (!std::isfinite(p.y)) {
      pen_down = false;
      continue;
    }
    out += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", f.x(p.x), f.y(p.y));
    pen_down = true;
  }
  return fmt::format("<path class=\"curve s{}{}\" d=\"{}\"/>", curve.colour % 8,
                     curve.style == Curve::Style::Faint ? " faint" : "", out);
}

// What the script shows under the pointer.
std::string points_json(const Chart& chart, const Frame& f) {
  std::string out = fmt::format("{{\"x\": [{}, {}], \"y\": [{}, {}], \"label\": {}, \"curves\": [",
                                number_json(f.x_low), number_json(f.x_high), number_json(f.y_low),
                                number_json(f.y_high), quote_json(chart.x_label));
  std::string_view separator;
  for (const Curve& curve : chart.curves) {
    if (curve.style == Curve::Style::Faint) continue;
    out += fmt::format("{}{{\"name\": {}, \"colour\": {}, \"points\": [", separator,
                       quote_json(curve.name), curve.colour % 8);
    std::string_view comma;
    for (const CurvePoint& p : curve.points) {
      if (!std::isfinite(p.y)) continue;
      out += fmt::format("{}[{:.7g},{:.6g}]", comma, p.x, p.y);
      comma = ",";
    }
    out += "]}";
    separator = ", ";
  }
  return out + "]}";
}

std::string legend(const Chart& chart) {
  std::string out;
  for (const Curve& curve : chart.curves) {
    if (curve.style == Curve::Style::Faint) continue;
    out += fmt::format("<span class=\"key\">{}{}</span>",
                       curve.style == Curve::Style::Dots
                           ? fmt::format("<span class=\"swatch dot c{}\"></span>", curve.colour % 8)
                           : swatch(curve.colour),
                       escaped(curve.name));
  }
  return "<div class=\"legend\">" + out + "</div>\n";
}

}  // namespace

std::vector<CurvePoint> thinned(std::span<const CurvePoint> points, std::size_t most) {
  if (points.size() <= most) return {points.begin(), points.end()};
  std::vector<CurvePoint> out;
  for (std::size_t i = 0; i < most; ++i) {
    const std::size_t from = i * points.size() / most;
    const std::size_t to = (i + 1) * points.size() / most;
    CurvePoint sum;
    for (const CurvePoint& p : points.subspan(from, to - from)) {
      sum.x += p.x;
      sum.y += p.y;
    }
    const auto count = static_cast<double>(to - from);
    out.push_back({sum.x / count, sum.y / count});
  }
  return out;
}

std::vector<CurvePoint> smoothed(std::span<const CurvePoint> points) {
  // As many as a fiftieth of the run has.
  const double keep = 1 - 1 / std::max(1.0, static_cast<double>(points.size()) / 50);
  std::vector<CurvePoint> out;
  double mean = 0;
  double weight = 0;
  for (const CurvePoint& p : points) {
    if (std::isfinite(p.y)) {
      mean = keep * mean + (1 - keep) * p.y;
      weight = keep * weight + (1 - keep);
    }
    out.push_back({p.x, std::isfinite(p.y) ? mean / weight : p.y});
  }
  return out;
}

std::vector<double> ticks(double low, double high, int about) {
  const double rough = (high - low) / std::max(1, about);
  if (!(rough > 0) || !std::isfinite(rough)) return {low};
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double nice : {1.0, 2.0, 5.0}) {
    if (nice * power >= rough * 0.999) {
      step = nice * power;
      break;
    }
  }
  std::vector<double> out;
  for (double t = std::ceil(low / step); t * step <= high + step * 1e-9; ++t) {
    out.push_back(t == 0 ? 0 : t * step);
    if (out.size() > 100) break;
  }
  return out;
}

std::string figure(const Chart& given) {
  Chart chart = given;
  Frame frame;
  for (Curve& curve : chart.curves) {
    curve.points = thinned(curve.points, MostPoints);
    for (const CurvePoint& p : curve.points) frame.take(p);
  }
  if (frame.empty()) {
    return fmt::format("<figure><figcaption>{}</figcaption><p class=\"none\">nothing was logged"
                       "</p></figure>\n",
                       escaped(chart.title));
  }
  frame.settle();
  std::string curves;
  for (const Curve& curve : chart.curves) curves += drawn(curve, frame) + "\n";
  return fmt::format(
      "<figure class=\"chart\"><figcaption>{0}</figcaption>{1}"
      "<svg viewBox=\"0 0 {2} {3}\" role=\"img\" aria-label=\"{0}\" data-left=\"{4}\" "
      "data-right=\"{5}\" data-top=\"{6}\" data-bottom=\"{7}\">\n{8}{9}"
      "<line class=\"cursor\" y1=\"{6}\" y2=\"{7}\"/></svg>"
      "<script type=\"application/json\">{10}</script></figure>\n",
      escaped(chart.title), legend(chart), Width, Height, Left, Right, Top, Bottom,
      axes(frame, chart), curves, in_script(points_json(chart, frame)));
}

}  // namespace ricci::report
