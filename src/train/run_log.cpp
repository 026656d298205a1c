#include "ricci/train/run_log.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <limits>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "ricci/support/error.h"
#include "ricci/support/file.h"

#include "support/json.h"
#include "train/json_reader.h"

namespace ricci {
namespace {

[[noreturn]] void refuse_log(const std::string& path, const char* what) {
  throw UserError(ErrorCode::File,
                  fmt::format("cannot {} the log '{}': {}", what, path, std::strerror(errno)));
}

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

// A last line without an end would swallow the next one.
bool is_torn(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return false;
  char last = '\n';
  const off_t size = ::lseek(file, 0, SEEK_END);
  if (size > 0 && ::pread(file, &last, 1, size - 1) != 1) last = '\n';
  ::close(file);
  return last != '\n';
}

}  // namespace

RunLog::RunLog(const std::string& path) : path_(path) {
  const bool torn = is_torn(path);
  // A pipe nobody reads is no log; opening it would wait for a reader.
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0666);
  if (file_ < 0 || ::fcntl(file_, F_SETFL, O_APPEND) != 0) refuse_log(path_, "open");
  if (torn) line("\n");
}

RunLog::~RunLog() {
  if (file_ >= 0) ::close(file_);
}

void RunLog::line(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse_log(path_, "write");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void RunLog::start(const RunStart& s) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const auto& [name, value] : s.settings) settings.emplace_back(name, quote_json(value));
  line(event("start", fmt::format("\"name\": {}, \"kind\": {}, \"device\": {}, \"steps\": {}, "
                                  "\"params\": {}, \"settings\": {}, \"model\": {}",
                                  quote_json(s.name), quote_json(s.kind), quote_json(s.device),
                                  s.steps, s.params, map_json(settings), quote_json(s.model))));
}

void RunLog::resume(std::int64_t step) { line(event("resume", fmt::format("\"step\": {}", step))); }

void RunLog::step(const RunStep& s) {
  std::string rest = fmt::format("\"step\": {}, \"loss\": {}, \"learning_rate\": {}, ", s.step,
                                 number_json(s.loss), number_json(s.learning_rate));
  if (s.gradient_norm)
    rest += fmt::format("\"gradient_norm\": {}, ", number_json(*s.gradient_norm));
  rest += fmt::format("\"seconds\": {:.4f}, \"examples\": {}", s.seconds, s.examples);
  line(event("step", rest));
}

void RunLog::evaluation(const RunEvaluation& e) {
  std::vector<std::pair<std::string, std::string>> metrics;
  for (const auto& [name, value] : e.metrics) metrics.emplace_back(name, number_json(value));
  std::string rest = fmt::format("\"step\": {}, \"loss\": {}, \"metrics\": {}", e.step,
                                 number_json(e.loss), map_json(metrics));
  if (e.examples > 0) rest += fmt::format(", \"examples\": {}", e.examples);
  line(event("evaluation", rest));
}

void RunLog::sample(const RunSample& s) {
  line(event("sample", fmt::format("\"step\": {}, \"text\": {}", s.step, quote_json(s.text))));
}

void RunLog::checkpoint(std::int64_t step) {
  line(event("checkpoint", fmt::format("\"step\": {}", step)));
}

void RunLog::end(const RunEnd& e) {
  line(event("end", fmt::format("\"step\": {}, \"why\": {}, \"seconds\": {:.4f}", e.step,
                                quote_json(e.why), e.seconds)));
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

RunRecord read_run_log(const std::string& path) {
  // Reading a pipe in place of it would wait for someone to write one.
  if (is_there(path) && !is_plain_file(path)) {
    throw UserError(ErrorCode::File,
                    fmt::format("'{}' is no log of a run: it is no plain file", path),
                    "name a folder that `ricci train` has written");
  }
  const std::vector<std::byte> bytes = read_file(path);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
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
  if (any) return run;
  throw UserError(ErrorCode::File,
                  fmt::format("'{}' is no log of a run: it has no line of one", path),
                  "name a folder that `ricci train` has written");
}

}  // namespace ricci
