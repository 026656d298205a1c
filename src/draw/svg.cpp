#include "draw/svg.h"

#include <cmath>

#include <fmt/format.h>

#include "ricci/support/stop.h"

#include "draw/draw.h"
#include "support/float_environment.h"

namespace ricci::draw {
namespace {

// Vertical where it passes a layer, an S-curve between layers.
std::string path(const std::vector<Point>& points) {
  std::string out = fmt::format("M{:.1f} {:.1f}", points[0].x, points[0].y);
  for (std::size_t i = 1; i < points.size(); ++i) {
    const Point& a = points[i - 1];
    const Point& b = points[i];
    // A piece without a length has no direction, and a tip at its end would point anywhere.
    if (a.x == b.x && std::fabs(a.y - b.y) < 0.1) continue;
    if (a.x == b.x) {
      out += fmt::format("V{:.1f}", b.y);
    } else {
      const double middle = (a.y + b.y) / 2;
      out += fmt::format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", a.x, middle, b.x, middle,
                         b.x, b.y);
    }
  }
  return out;
}

std::string box_element(const Box& b, std::string_view prefix) {
  std::string out =
      fmt::format("<g class=\"box {}\" id=\"{}n{}\" data-details=\"{}\"><title>{}</title>"
                  "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{}\"/>",
                  b.style, prefix, escaped(b.id), escaped(b.details), escaped(b.details), b.x, b.y,
                  b.width, b.height, b.style == "input" || b.style == "output" ? 14 : 5);
  for (std::size_t i = 0; i < b.lines.size(); ++i) {
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>", b.x + Padding,
                       b.y + Padding + 9 + static_cast<double>(i) * LineHeight,
                       i == 0 ? " class=\"name\"" : "", escaped(b.lines[i]));
  }
  return out + "</g>\n";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      case '\n': out += "&#10;"; break;
      // XML has no place for other control characters.
      default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string_view style_sheet() {
  return R"(
svg { background: #ffffff; font: 12px "DejaVu Sans Mono", ui-monospace, Menlo, Consolas, monospace; }
.box rect { stroke-width: 1.2; fill: #f3f4f6; stroke: #6b7280; }
.box text { fill: #374151; }
.box text.name { fill: #111827; font-weight: bold; }
.box.input rect { fill: #dbeafe; stroke: #2563eb; }
.box.param rect { fill: #fef3c7; stroke: #d97706; }
.box.constant rect { fill: #f3f4f6; stroke: #6b7280; stroke-dasharray: 4 3; }
.box.output rect { fill: #dcfce7; stroke: #16a34a; }
.box.primitive rect { fill: #f8fafc; stroke: #64748b; }
.box.structured rect { fill: #ede9fe; stroke: #7c3aed; }
.box.composite rect { fill: #cffafe; stroke: #0891b2; }
.box.control rect { fill: #fff1f2; stroke: #e11d48; }
.box.custom rect, .box.block rect { fill: #fae8ff; stroke: #c026d3; }
.box.frame rect { fill: #ffffff; stroke: #9ca3af; stroke-dasharray: 2 3; }
.box.frame text.name { fill: #6b7280; }
.line { fill: none; stroke: #6b7280; stroke-width: 1.2; }
.tip { fill: #6b7280; }
@media (prefers-color-scheme: dark) {
  svg { background: #0f172a; }
  .box text { fill: #cbd5e1; }
  .box text.name { fill: #f8fafc; }
  .box.input rect { fill: #1e3a8a; } .box.param rect { fill: #713f12; }
  .box.constant rect { fill: #1f2937; } .box.output rect { fill: #14532d; }
  .box.primitive rect { fill: #1e293b; } .box.structured rect { fill: #3b0764; }
  .box.composite rect { fill: #164e63; } .box.control rect { fill: #4c0519; }
  .box.custom rect, .box.block rect { fill: #4a044e; } .box.frame rect { fill: #0f172a; }
  .line { stroke: #94a3b8; } .tip { fill: #94a3b8; }
}
)";
}

std::string svg_elements(const Scene& scene, std::string_view prefix) {
  std::string out = fmt::format(
      "<defs><marker id=\"{}tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
      "markerHeight=\"7\" orient=\"auto\"><path class=\"tip\" d=\"M0 0L8 4L0 "
      "8z\"/></marker></defs>\n",
      prefix);
  // Outer boxes come before the lines of what is inside them.
  for (const Box& b : scene.boxes) out += box_element(b, prefix);
  for (const Line& l : scene.lines) {
    throw_if_stopped();
    out += fmt::format("<path class=\"line\" data-from=\"{0}n{1}\" data-to=\"{0}n{2}\" "
                       "marker-end=\"url(#{0}tip)\" d=\"{3}\"/>\n",
                       prefix, escaped(l.from), escaped(l.to), path(l.points));
  }
  return out;
}

std::string to_svg(const Graph& graph) {
  const DefaultFloatEnvironment floats;
  const Scene scene = make_scene(graph);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<title>{2}</title>\n<style>{3}</style>\n{4}</svg>\n",
      scene.width, scene.height, escaped(graph.name()), style_sheet(), svg_elements(scene));
}

}  // namespace ricci::draw
