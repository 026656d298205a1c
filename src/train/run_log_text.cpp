#include "train/run_log_text.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "support/json.h"
#include "train/json_reader.h"

namespace ricci {
namespace {

// `"name": value` pairs behind the kind of a line.
std::string event(std::string_view kind, std::string_view rest) {
  return fmt::format("{{\"event\": {}{}{}}}\n", quote_json(kind), rest.empty() ? "" : ", ", rest);
}

std::string map_json(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string out;
  for (const auto& [name, value] : pairs) {
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", quote_json(name), value);
  }
  return "{" + out + "}";
}

// Short, as people read it.
std::string seconds_json(double seconds) {
  return std::isfinite(seconds) ? fmt::format("{:.4f}", seconds) : number_json(seconds);
}

}  // namespace

std::string run_log_line(const RunStart& s) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const auto& [name, value] : s.settings) settings.emplace_back(name, quote_json(value));
  return event("start", fmt::format("\"name\": {}, \"kind\": {}, \"device\": {}, \"steps\": {}, "
                                    "\"params\": {}, \"settings\": {}, \"model\": {}",
                                    quote_json(s.name), quote_json(s.kind), quote_json(s.device),
                                    s.steps, s.params, map_json(settings), quote_json(s.model)));
}

std::string run_log_line(const RunStep& s) {
  std::string rest = fmt::format("\"step\": {}, \"loss\": {}, \"learning_rate\": {}, ", s.step,
                                 number_json(s.loss), number_json(s.learning_rate));
  if (s.gradient_norm)
    rest += fmt::format("\"gradient_norm\": {}, ", number_json(*s.gradient_norm));
  rest += fmt::format("\"seconds\": {}, \"examples\": {}", seconds_json(s.seconds), s.examples);
  return event("step", rest);
}

std::string run_log_line(const RunEvaluation& e) {
  std::vector<std::pair<std::string, std::string>> metrics;
  for (const auto& [name, value] : e.metrics) metrics.emplace_back(name, number_json(value));
  std::string rest = fmt::format("\"step\": {}, \"loss\": {}, \"metrics\": {}", e.step,
                                 number_json(e.loss), map_json(metrics));
  if (e.examples > 0) rest += fmt::format(", \"examples\": {}", e.examples);
  return event("evaluation", rest);
}

std::string run_log_line(const RunSample& s) {
  return event("sample", fmt::format("\"step\": {}, \"text\": {}", s.step, quote_json(s.text)));
}

std::string run_log_line(const RunEnd& e) {
  return event("end", fmt::format("\"step\": {}, \"why\": {}, \"seconds\": {}", e.step,
                                  quote_json(e.why), seconds_json(e.seconds)));
}

std::string run_log_resume(std::int64_t step) {
  return event("resume", fmt::format("\"step\": {}", step));
}

std::string run_log_checkpoint(std::int64_t step) {
  return event("checkpoint", fmt::format("\"step\": {}", step));
}

namespace {

// All that a line may have, whatever its kind.
struct LogLine {
  std::string event;
  RunStart start;
  RunStep step;
  std::vector<std::pair<std::string, double>> metrics;
  std::string text;
  std::string why;
};

using Reader = std::function<void(JsonReader&, LogLine&)>;

const std::vector<std::pair<std::string_view, Reader>>& readers() {
  static const std::vector<std::pair<std::string_view, Reader>> all = {
      {"event", [](JsonReader& in, LogLine& to) { to.event = in.string(); }},
      {"name", [](JsonReader& in, LogLine& to) { to.start.name = in.string(); }},
      {"kind", [](JsonReader& in, LogLine& to) { to.start.kind = in.string(); }},
      {"device", [](JsonReader& in, LogLine& to) { to.start.device = in.string(); }},
      {"steps", [](JsonReader& in, LogLine& to) { to.start.steps = in.integer(); }},
      {"params", [](JsonReader& in, LogLine& to) { to.start.params = in.integer(); }},
      {"model", [](JsonReader& in, LogLine& to) { to.start.model = in.string(); }},
      {"settings",
       [](JsonReader& in, LogLine& to) {
         in.object(
             [&](const std::string& key) { to.start.settings.emplace_back(key, in.string()); });
       }},
      {"step", [](JsonReader& in, LogLine& to) { to.step.step = in.integer(); }},
      {"loss", [](JsonReader& in, LogLine& to) { to.step.loss = in.number(); }},
      {"learning_rate", [](JsonReader& in, LogLine& to) { to.step.learning_rate = in.number(); }},
      {"gradient_norm", [](JsonReader& in, LogLine& to) { to.step.gradient_norm = in.number(); }},
      {"seconds", [](JsonReader& in, LogLine& to) { to.step.seconds = in.number(); }},
      {"examples", [](JsonReader& in, LogLine& to) { to.step.examples = in.integer(); }},
      {"metrics",
       [](JsonReader& in, LogLine& to) {
         in.object([&](const std::string& key) { to.metrics.emplace_back(key, in.number()); });
       }},
      {"text", [](JsonReader& in, LogLine& to) { to.text = in.string(); }},
      {"why", [](JsonReader& in, LogLine& to) { to.why = in.string(); }},
  };
  return all;
}

// Members that are not known are of a later version.
LogLine parsed(std::string_view text) {
  LogLine out;
  JsonReader in(text);
  in.object([&](const std::string& key) {
    const auto known = std::ranges::find(readers(), key, [](const auto& r) { return r.first; });
    known == readers().end() ? in.skip() : known->second(in, out);
  });
  in.end();
  return out;
}

void forget_behind(RunRecord& run, std::int64_t step) {
  const auto later = [step](const auto& x) { return x.step > step; };
  std::erase_if(run.steps, later);
  std::erase_if(run.evaluations, later);
  std::erase_if(run.samples, later);
  std::erase_if(run.checkpoints, [step](std::int64_t s) { return s > step; });
  run.end.reset();
}

void take(RunRecord& run, LogLine l) {
  const std::int64_t step = l.step.step;
  if (l.event == "start") {
    run.start = std::move(l.start);
  } else if (l.event == "resume") {
    forget_behind(run, step);
  } else if (l.event == "step") {
    // A step that comes twice was taken twice: the later one counts.
    if (!run.steps.empty() && run.steps.back().step >= step) forget_behind(run, step - 1);
    run.steps.push_back(l.step);
  } else if (l.event == "evaluation") {
    run.evaluations.push_back({step, l.step.loss, std::move(l.metrics), l.step.examples});
  } else if (l.event == "sample") {
    run.samples.push_back({step, std::move(l.text)});
  } else if (l.event == "checkpoint") {
    run.checkpoints.push_back(step);
  } else if (l.event == "end") {
    run.end = RunEnd{step, std::move(l.why), l.step.seconds};
  }
}

}  // namespace

std::optional<RunRecord> parse_run_log(std::string_view text) {
  RunRecord run;
  bool any = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (one.empty()) continue;
    try {
      take(run, parsed(one));
      any = true;
    } catch (const UserError&) {
      ++run.torn;
    }
  }
  return any ? std::optional(std::move(run)) : std::nullopt;
}

}  // namespace ricci
