// What a report says of programs: where their time goes, what lies in their memory, their graphs.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "ricci/ir/text.h"
#include "ricci/support/error.h"

#include "draw/scene.h"
#include "draw/svg.h"
#include "train/report/html.h"
#include "train/report/page_parts.h"

namespace ricci::report {
namespace {

using Row = ProgramRecord::Row;
constexpr std::size_t MostRows = 25;

struct KindOfStep {
  std::string name;
  double seconds = 0;
  std::vector<const Row*> rows;  ///< the longest first
};

// The longest first.
std::vector<KindOfStep> kinds_of(const ProgramRecord& program) {
  std::map<std::string, KindOfStep> found;
  for (const Row& row : program.rows) {
    KindOfStep& kind = found[row.kind];
    kind.name = row.kind;
    kind.seconds += row.seconds;
    kind.rows.push_back(&row);
  }
  std::vector<KindOfStep> out;
  for (auto& [name, kind] : found) {
    std::ranges::sort(kind.rows, std::greater{}, &Row::seconds);
    out.push_back(std::move(kind));
  }
  std::ranges::sort(out, std::greater{}, &KindOfStep::seconds);
  return out;
}

double total_of(const ProgramRecord& program) {
  double out = 0;
  for (const Row& row : program.rows) out += row.seconds;
  return out;
}

std::string flame_cell(double share, std::string_view colour, std::string_view label,
                       std::string_view details) {
  const bool thin = share < 2.5;
  return fmt::format(
      "<div class=\"cell {}{}\" style=\"width:calc({:.3f}% - 1px)\" title=\"{}\">{}</div>", colour,
      thin ? " thin" : "", share, escaped(details), thin ? std::string() : escaped(label));
}

std::string details_of(const Row& row, double total) {
  return fmt::format("{}\n{}, {} of a step, {:.1f} %", row.label, row.kind,
                     seconds_text(row.seconds), 100 * row.seconds / total);
}

// The whole step, below it kinds of steps, below those the steps themselves.
std::string flame(const ProgramRecord& program) {
  const double total = total_of(program);
  if (!(total > 0)) return "";
  std::string kinds;
  std::string steps;
  std::size_t colour = 0;
  for (const KindOfStep& kind : kinds_of(program)) {
    const std::string painted = fmt::format("c{}", colour++ % 8);
    const double share = 100 * kind.seconds / total;
    kinds += flame_cell(
        share, painted, fmt::format("{} {:.0f} %", kind.name, share),
        fmt::format("{}: {} steps, {}", kind.name, kind.rows.size(), seconds_text(kind.seconds)));
    double rest = 0;
    for (const Row* row : kind.rows) {
      const double part = 100 * row->seconds / total;
      if (part < 0.25)
        rest += part;
      else
        steps += flame_cell(part, painted, row->label, details_of(*row, total));
    }
    if (rest > 0) steps += flame_cell(rest, painted, "others", kind.name + ": short steps");
  }
  return fmt::format("<div class=\"flame\"><div class=\"row\">{}</div><div class=\"row\">{}</div>"
                     "<div class=\"row\">{}</div></div>\n",
                     flame_cell(100, "whole", fmt::format("a step: {}", seconds_text(total)),
                                fmt::format("{} steps of the program", program.rows.size())),
                     kinds, steps);
}

std::string rate_text(std::int64_t amount, double seconds) {
  if (amount <= 0 || !(seconds > 0)) return "-";
  return fmt::format("{:.1f}", static_cast<double>(amount) / seconds / 1e9);
}

std::string kernel_table(const ProgramRecord& program) {
  const double total = total_of(program);
  std::vector<const Row*> order;
  for (const Row& row : program.rows) order.push_back(&row);
  std::ranges::sort(order, std::greater{}, &Row::seconds);
  std::vector<std::vector<Cell>> rows;
  double shown = 0;
  const double longest = order.empty() ? 1 : std::max(1e-12, order.front()->seconds);
  for (const Row* row : order) {
    if (rows.size() == MostRows) break;
    const double share = total > 0 ? 100 * row->seconds / total : 0;
    shown += row->seconds;
    rows.push_back(
        {text_cell(row->label),
         text_cell(row->kind),
         number_cell(seconds_text(row->seconds)),
         {.html = fmt::format("<div class=\"bar\"><div class=\"c0\" style=\"width:{:.1f}%\">"
                              "</div></div>",
                              100 * row->seconds / longest)},
         number_cell(fmt::format("{:.1f} %", share)),
         number_cell(rate_text(row->bytes, row->seconds)),
         number_cell(rate_text(row->flops, row->seconds))});
  }
  const std::vector<std::string> heads = {"step", "kind", "time", "", "share", "GB/s", "GFLOP/s"};
  std::string out = table(heads, rows);
  if (order.size() > MostRows) {
    out += fmt::format("<p class=\"note\">and {} more, {} together</p>\n", order.size() - MostRows,
                       seconds_text(total - shown));
  }
  return out;
}

std::string memory_figure(const ProgramRecord& program) {
  constexpr double PlanWidth = 720;
  constexpr double PlanLeft = 92;
  constexpr double PlanBottom = 232;
  constexpr double PlanTop = 8;
  const auto arena = static_cast<double>(std::max<std::int64_t>(1, program.arena_bytes));
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, program.steps));
  const auto x = [&](std::int64_t step) {
    return PlanLeft + static_cast<double>(step) / steps * (PlanWidth - PlanLeft - 10);
  };
  const auto y = [&](double bytes) { return PlanBottom - bytes / arena * (PlanBottom - PlanTop); };
  std::string out;
  std::size_t number = 0;
  for (const ProgramRecord::Place& p : program.places) {
    const double low = y(static_cast<double>(p.offset));
    const double high = y(static_cast<double>(p.offset + p.bytes));
    out += fmt::format(
        "<rect class=\"f{}\" x=\"{:.1f}\" y=\"{:.2f}\" width=\"{:.1f}\" height=\"{:.2f}\">"
        "<title>{} in steps {} to {}</title></rect>\n",
        number++ % 8, x(p.first), high, x(p.last + 1) - x(p.first), low - high,
        bytes_text(static_cast<double>(p.bytes)), p.first, p.last);
  }
  for (const double part : {0.0, 0.5, 1.0}) {
    out += fmt::format("<text class=\"y\" x=\"{}\" y=\"{:.1f}\">{}</text>", PlanLeft - 6,
                       y(part * arena) + (part == 1.0 ? 9 : 4), bytes_text(part * arena));
  }
  out += fmt::format("<line class=\"axis\" x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\"/>"
                     "<text class=\"x\" x=\"{3}\" y=\"{4}\">steps of the program, 0 to {5}</text>",
                     PlanLeft, PlanWidth - 10, PlanBottom, PlanWidth / 2, PlanBottom + 22,
                     program.steps - 1);
  return fmt::format("<figure class=\"plan\"><svg viewBox=\"0 0 {} {}\" role=\"img\" "
                     "aria-label=\"memory over the steps of the program\">\n{}</svg></figure>\n",
                     PlanWidth, PlanBottom + 30, out);
}

std::string picture(const std::string& text, std::size_t i) {
  try {
    const draw::Scene scene = draw::make_scene(parse_graph(text));
    return fmt::format(
        "<div class=\"picture\"><svg width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
        "{0:.0f} {1:.0f}\" role=\"img\" aria-label=\"graph\">{2}</svg></div>\n",
        scene.width, scene.height, draw::svg_elements(scene, fmt::format("g{}-", i)));
  } catch (const UserError& e) {
    return fmt::format("<p class=\"none\">its graph cannot be drawn: {}</p>\n", escaped(e.what()));
  }
}

}  // namespace

std::string times(Runs runs) {
  std::string out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].program) continue;
    out += run_heading(runs, i) + flame(*runs[i].program) +
           "<details open><summary>the longest steps</summary>" + kernel_table(*runs[i].program) +
           "</details>\n";
  }
  if (out.empty()) return "";
  return section("time", "Where the time of a step goes",
                 "<p class=\"note\">The fastest of a few steps early in the run; rates are "
                 "estimates.</p>\n" +
                     out);
}

std::string memory(Runs runs) {
  std::string out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].program) continue;
    const ProgramRecord& p = *runs[i].program;
    out +=
        fmt::format("<div>{}<p class=\"note\">{} are kept between steps (params, the optimiser's "
                    "state, inputs); {} more while one is taken, and no plan needs less than {}."
                    "</p>\n{}</div>\n",
                    run_heading(runs, i), bytes_text(static_cast<double>(p.kept_bytes)),
                    bytes_text(static_cast<double>(p.arena_bytes)),
                    bytes_text(static_cast<double>(p.live_bytes)), memory_figure(p));
  }
  if (out.empty()) return "";
  return section("memory", "Memory over a step", "<div class=\"side\">" + out + "</div>\n");
}

std::string graphs(Runs runs) {
  std::string out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].graph.empty()) continue;
    std::size_t same = 0;
    while (runs[same].graph != runs[i].graph) ++same;
    out += run_heading(runs, i);
    if (same < i) {
      out +=
          fmt::format("<p class=\"note\">the same as that of {}</p>\n", escaped(runs[same].name));
      continue;
    }
    out += "<details open><summary>the loss as a graph</summary>" + picture(runs[i].graph, i) +
           "</details>\n";
  }
  return out.empty() ? "" : section("graph", "Graph", out);
}

}  // namespace ricci::report
