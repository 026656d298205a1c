// What a report says of runs: numbers, curves, settings, samples, models.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "train/report/chart.h"
#include "train/report/html.h"
#include "train/report/page_parts.h"

namespace ricci::report {
namespace {

const RunStep* last_step(const RunRecord& log) {
  return log.steps.empty() ? nullptr : &log.steps.back();
}

const RunEvaluation* best_evaluation(const RunRecord& log) {
  const RunEvaluation* best = nullptr;
  for (const RunEvaluation& e : log.evaluations) {
    if (std::isfinite(e.loss) && (best == nullptr || e.loss < best->loss)) best = &e;
  }
  return best;
}

double run_seconds(const RunRecord& log) {
  if (log.end) return log.end->seconds;
  return last_step(log) != nullptr ? last_step(log)->seconds : 0;
}

// Between the first logged step and the last: what compiling takes is not in it.
double steps_per_second(const RunRecord& log) {
  if (log.steps.size() < 2) return std::nan("");
  const RunStep& a = log.steps.front();
  const RunStep& b = log.steps.back();
  return static_cast<double>(b.step - a.step) / (b.seconds - a.seconds);
}

std::string status_text(const RunRecord& log) {
  if (!log.end) return "goes on, or was killed";
  if (log.end->why == "done") return "done";
  if (log.end->why == "time") return "ended by its time";
  return log.end->why;
}

std::string best_text(const RunRecord& log) {
  const RunEvaluation* best = best_evaluation(log);
  if (best == nullptr) return "-";
  std::string out = fmt::format("{} (step {})", number_text(best->loss), best->step);
  for (const auto& [name, value] : best->metrics) {
    out += fmt::format(", {} {}", name, number_text(value));
  }
  return out;
}

std::string card(std::string_view value, std::string_view what) {
  return fmt::format("<div class=\"card\"><b>{}</b><span>{}</span></div>\n", escaped(value),
                     escaped(what));
}

std::string cards(const ReportRun& run) {
  const RunRecord& log = run.log;
  const RunStep* last = last_step(log);
  std::string out = "<div class=\"cards\">\n";
  out += card(last != nullptr ? number_text(last->loss) : "-", "loss of the last step");
  if (const RunEvaluation* best = best_evaluation(log)) {
    out += card(number_text(best->loss), fmt::format("best on unseen data, step {}", best->step));
    for (const auto& [name, value] : best->metrics)
      out += card(number_text(value), name + " there");
  }
  out += card(fmt::format("{} of {}", count_text(last != nullptr ? last->step : 0),
                          count_text(log.start.steps)),
              "steps");
  out += card(number_text(steps_per_second(log)), "steps a second");
  if (last != nullptr && last->examples > 0) {
    const double rate = steps_per_second(log) * static_cast<double>(last->examples);
    out += card(std::isfinite(rate) && rate >= 100 && rate < 1e15
                    ? count_text(static_cast<std::int64_t>(rate))
                    : number_text(rate),
                "examples a second");
  }
  out += card(count_text(log.start.params), "params");
  out += card(seconds_text(run_seconds(log)), status_text(log));
  return out + "</div>\n";
}

std::string comparison(Runs runs) {
  std::vector<std::vector<Cell>> rows;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& log = runs[i].log;
    const RunStep* last = last_step(log);
    rows.push_back(
        {{.html = swatch(i) + escaped(runs[i].name)},
         text_cell(log.start.kind),
         number_cell(fmt::format("{} of {}", count_text(last != nullptr ? last->step : 0),
                                 count_text(log.start.steps))),
         number_cell(last != nullptr ? number_text(last->loss) : "-"),
         text_cell(best_text(log)),
         number_cell(count_text(log.start.params)),
         number_cell(number_text(steps_per_second(log))),
         number_cell(seconds_text(run_seconds(log))),
         text_cell(status_text(log))});
  }
  const std::vector<std::string> heads = {"run",    "kind",    "steps", "last loss", "best unseen",
                                          "params", "steps/s", "time",  "state"};
  return table(heads, rows);
}

using Points = std::vector<CurvePoint>;

template <class Get>
Points points_of(const RunRecord& log, Get get) {
  Points out;
  for (const RunStep& s : log.steps) out.push_back({static_cast<double>(s.step), get(s)});
  return out;
}

std::string loss_figure(Runs runs) {
  Chart chart{.title = "Loss", .curves = {}};
  const bool one = runs.size() == 1;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Points raw = points_of(runs[i].log, [](const RunStep& s) { return s.loss; });
    const std::string prefix = one ? "" : runs[i].name + ": ";
    if (one) chart.curves.push_back({"", i, raw, Curve::Style::Faint});
    chart.curves.push_back({prefix + "training", i, smoothed(raw)});
    Points seen;
    for (const RunEvaluation& e : runs[i].log.evaluations) {
      seen.push_back({static_cast<double>(e.step), e.loss});
    }
    if (!seen.empty()) {
      chart.curves.push_back(
          {prefix + "unseen data", one ? 1 : i, std::move(seen), Curve::Style::Dots});
    }
  }
  return figure(chart);
}

template <class Get>
std::string step_figure(Runs runs, const char* title, Get get) {
  Chart chart{.title = title, .curves = {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    chart.curves.push_back({runs[i].name, i, points_of(runs[i].log, get)});
  }
  return figure(chart);
}

// One figure for every metric there is, `accuracy` and the like.
std::string metric_figures(Runs runs) {
  std::map<std::string, Chart> charts;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::map<std::string, Points> found;
    for (const RunEvaluation& e : runs[i].log.evaluations) {
      for (const auto& [name, value] : e.metrics) {
        found[name].push_back({static_cast<double>(e.step), value});
      }
    }
    for (auto& [name, points] : found) {
      Chart& chart = charts[name];
      chart.title = name + " on unseen data";
      chart.curves.push_back({runs[i].name, i, std::move(points)});
    }
  }
  std::string out;
  for (const auto& [name, chart] : charts) out += figure(chart);
  return out;
}

std::string sample_html(const RunSample& s) {
  return fmt::format("<h3>step {}</h3><pre>{}</pre>\n", s.step, escaped(s.text));
}

// The table nn::summary prints: its first line says where the columns begin.
std::string model_table(const std::string& summary) {
  const std::vector<std::string> heads = {"name", "type", "arrays", "params"};
  std::vector<std::size_t> starts;
  const std::size_t first_end = std::min(summary.find('\n'), summary.size());
  const std::string_view first(summary.data(), first_end);
  for (const std::string& head : heads) starts.push_back(first.find(head));
  const bool is_table =
      std::ranges::none_of(starts, [](std::size_t at) { return at == std::string_view::npos; });
  if (!is_table) return "<pre>" + escaped(summary) + "</pre>\n";
  std::vector<std::vector<Cell>> rows;
  std::string foot;
  std::string_view rest(summary);
  rest.remove_prefix(std::min(first_end + 1, rest.size()));
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (rest.empty()) {
      foot = escaped(line);
      break;
    }
    std::vector<Cell> row;
    const std::size_t last_space = line.find_last_of(' ');
    for (std::size_t c = 0; c + 1 < starts.size(); ++c) {
      const std::size_t from = std::min(starts[c], line.size());
      const std::size_t to =
          c + 2 < starts.size() ? starts[c + 1] : std::min(last_space, line.size());
      std::string_view text = line.substr(from, to > from ? to - from : 0);
      text = text.substr(0, text.find_last_not_of(' ') + 1);
      row.push_back(text_cell(text));
    }
    row.push_back(number_cell(line.substr(std::min(last_space + 1, line.size()))));
    rows.push_back(std::move(row));
  }
  return table(heads, rows) + "<p class=\"note\">" + foot + "</p>\n";
}

}  // namespace

std::string run_heading(Runs runs, std::size_t i) {
  if (runs.size() == 1) return "";
  return fmt::format("<h3>{}{}</h3>\n", swatch(i), escaped(runs[i].name));
}

std::string overview(Runs runs) {
  std::string out = runs.size() == 1 ? cards(runs[0]) : comparison(runs);
  for (const ReportRun& run : runs) {
    for (const std::string& note : run.notes) {
      out += fmt::format("<p class=\"note\">{}: {}</p>\n", escaped(run.name), escaped(note));
    }
    if (run.log.torn > 0) {
      out += fmt::format("<p class=\"note\">{}: {} lines of the log could not be read</p>\n",
                         escaped(run.name), run.log.torn);
    }
  }
  return out;
}

std::string curves(Runs runs) {
  const auto has_norm = [](const ReportRun& r) {
    return !r.log.steps.empty() && r.log.steps.front().gradient_norm.has_value();
  };
  std::string out = "<div class=\"charts\">\n" + loss_figure(runs);
  out += step_figure(runs, "Learning rate", [](const RunStep& s) { return s.learning_rate; });
  out += metric_figures(runs);
  if (std::ranges::any_of(runs, has_norm)) {
    out += step_figure(runs, "Norm of the gradients",
                       [](const RunStep& s) { return s.gradient_norm.value_or(std::nan("")); });
  }
  return section("curves", "Curves", out + "</div>\n");
}

std::string settings(Runs runs) {
  std::vector<std::string> names;
  std::vector<std::map<std::string, std::string>> values(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunStart& start = runs[i].log.start;
    auto all = start.settings;
    all.insert(all.begin(), {"device", start.device});
    for (const auto& [name, value] : all) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
      values[i][name] = value.empty() ? "-" : value;
    }
  }
  std::vector<std::string> heads = {"setting"};
  for (std::size_t i = 0; i < runs.size(); ++i) heads.push_back(swatch(i) + escaped(runs[i].name));
  std::vector<std::vector<Cell>> rows;
  for (const std::string& name : names) {
    std::vector<Cell> row = {text_cell(name)};
    bool same = true;
    for (std::size_t i = 0; i < runs.size(); ++i) same &= values[i][name] == values[0][name];
    for (std::size_t i = 0; i < runs.size(); ++i) {
      Cell cell = text_cell(values[i][name]);
      cell.is_marked = !same;
      row.push_back(std::move(cell));
    }
    rows.push_back(std::move(row));
  }
  const std::string note =
      runs.size() > 1 ? "<p class=\"note\">Marked are those that differ.</p>\n" : "";
  return section("settings", "Settings", note + table(heads, rows));
}

std::string samples(Runs runs) {
  std::string out = "<div class=\"side\">\n";
  bool any = false;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::vector<RunSample>& all = runs[i].log.samples;
    if (all.empty()) continue;
    any = true;
    out += "<div>" + run_heading(runs, i) + sample_html(all.back());
    if (all.size() > 1) {
      out += fmt::format("<details><summary>{} earlier</summary>\n", all.size() - 1);
      for (std::size_t k = all.size() - 1; k-- > 0;) out += sample_html(all[k]);
      out += "</details>";
    }
    out += "</div>\n";
  }
  return any ? section("samples", "Samples", out + "</div>\n") : "";
}

std::string models(Runs runs) {
  std::string out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    out += run_heading(runs, i) + model_table(runs[i].log.start.model);
  }
  return section("model", "Model", out);
}

}  // namespace ricci::report
