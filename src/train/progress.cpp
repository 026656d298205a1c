#include "ricci/train/progress.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "support/environment.h"
#include "support/float_environment.h"

namespace ricci {
namespace {

constexpr std::chrono::milliseconds RedrawEvery(100);
constexpr std::size_t LongestBar = 30;
constexpr std::size_t ShortestBar = 8;
constexpr std::size_t SparkCells = 16;
constexpr std::size_t FewestSparkCells = 4;
constexpr std::size_t PlainWidth = 80;
constexpr std::size_t MostLosses = 1024;  // kept for the sparkline

std::size_t terminal_columns(std::FILE* out) {
  winsize size{};
  const bool known = ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col - 1U : PlainWidth;  // some terminals wrap when the last is filled
}

bool is_set(const char* variable) {
  const char* value = environment_variable(variable);
  return value != nullptr && *value != '\0';
}

std::string bar_text(double done, std::size_t cells) {
  const auto filled = static_cast<std::size_t>(std::lround(done * static_cast<double>(cells)));
  std::string text(cells, ' ');
  std::fill_n(text.begin(), filled, '=');
  if (filled > 0 && filled < cells) text[filled - 1] = '>';
  return "[" + text + "]";
}

// Values of one cell as one; nothing finite among them is NaN.
double mean_of(std::span<const double> values) {
  double sum = 0;
  double count = 0;
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    sum += v;
    ++count;
  }
  return count > 0 ? sum / count : std::nan("");
}

}  // namespace

std::string clock_text(double seconds) {
  const DefaultFloatEnvironment floats;
  const auto s = static_cast<std::int64_t>(std::ceil(std::clamp(seconds, 0.0, 1e9)));
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string sparkline(std::span<const double> values, std::size_t cells) {
  const DefaultFloatEnvironment floats;
  constexpr std::array<std::string_view, 8> Bars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::size_t count = std::min(cells, values.size());
  std::vector<double> means;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t from = i * values.size() / count;
    means.push_back(mean_of(values.subspan(from, (i + 1) * values.size() / count - from)));
  }
  double low = INFINITY;
  double high = -INFINITY;
  for (const double m : means) {
    if (!std::isfinite(m)) continue;
    low = std::min(low, m);
    high = std::max(high, m);
  }
  std::string out;
  for (const double m : means) {
    const double height = high > low ? (m - low) / (high - low) : 0;
    out += std::isfinite(m) ? Bars[static_cast<std::size_t>(std::lround(height * 7))] : " ";
  }
  return out;
}

std::string progress_words(const RunProgressState& s) {
  const std::string there =
      fmt::format("{:3.0f} %  step {}/{}  loss {:.4f}", 100 * s.done, s.step, s.steps, s.loss);
  if (s.rate <= 0) return there;  // one step says nothing of how long they take
  return fmt::format("{}  {:.1f} steps/s  {} left", there, s.rate, clock_text(s.left));
}

namespace {

std::string coloured(const char* code, const std::string& text) {
  return text.empty() ? text : fmt::format("\033[{}m{}\033[0m", code, text);
}

}  // namespace

std::string progress_line(const RunProgressState& s, std::size_t width, bool colour) {
  const DefaultFloatEnvironment floats;
  const std::string words = progress_words(s);  // one column a byte
  if (words.size() > width) return words.substr(0, width);
  std::size_t room = width - words.size();
  constexpr std::size_t Spaces = 2;           // beside the words
  constexpr std::size_t Around = Spaces + 2;  // of a bar, with its brackets
  // The sparkline becomes smaller so that there is a bar beside it.
  const std::size_t bar_wants = room >= ShortestBar + Around ? ShortestBar + Around : 0;
  std::string spark;
  if (room >= bar_wants + FewestSparkCells + Spaces && !s.losses.empty()) {
    const std::size_t cells = std::min(SparkCells, room - bar_wants - Spaces);
    spark = "  " + sparkline(s.losses, cells);
    room -= cells + Spaces;
  }
  std::string bar;
  if (bar_wants > 0) {
    bar = bar_text(std::clamp(s.done, 0.0, 1.0), std::min(LongestBar, room - Around)) + "  ";
  }
  if (!colour) return bar + words + spark;
  return coloured("32", bar) + words + coloured("36", spark);
}

RunProgress::RunProgress(std::FILE* out, double every)
    : out_(out),
      every_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(every))) {
  const char* term = environment_variable("TERM");
  const bool dumb = term != nullptr && std::string_view(term) == "dumb";
  terminal_ = !dumb && ::isatty(::fileno(out)) != 0;
  colour_ = terminal_ && !is_set("NO_COLOR");
}

RunProgress::~RunProgress() { finish(); }

void RunProgress::update(std::int64_t step, std::int64_t steps, double done, double loss) {
  const DefaultFloatEnvironment floats;
  const bool first = !began_;
  began_ = true;
  if (first) {  // what compiling takes says nothing of the steps
    first_step_ = step;
    first_done_ = done;
    start_ = Clock::now();
  }
  state_.loss = first ? loss : 0.9 * state_.loss + 0.1 * loss;
  state_.step = step;
  state_.steps = steps;
  state_.done = done;
  if (state_.losses.size() == MostLosses) {  // older ones are not worth as much room
    for (std::size_t i = 0; i < MostLosses / 2; ++i) {
      state_.losses[i] = (state_.losses[2 * i] + state_.losses[2 * i + 1]) / 2;
    }
    state_.losses.resize(MostLosses / 2);
  }
  state_.losses.push_back(loss);
  const Clock::duration pause = terminal_ ? Clock::duration(RedrawEvery) : every_;
  if (first || Clock::now() - drawn_ >= pause) draw();
}

void RunProgress::say(const std::string& line) {
  clear();
  std::fprintf(out_, "%s\n", line.c_str());
  std::fflush(out_);
  if (terminal_ && state_.step > 0) draw();
}

void RunProgress::finish() {
  if (state_.step > 0 && drawn_step_ != state_.step) draw();
  if (on_line_) std::fputc('\n', out_);
  on_line_ = false;
  std::fflush(out_);
}

void RunProgress::clear() {
  if (on_line_) std::fputs("\r\033[K", out_);
  on_line_ = false;
}

void RunProgress::draw() {
  drawn_ = Clock::now();
  drawn_step_ = state_.step;
  const double seconds = std::chrono::duration<double>(drawn_ - start_).count();
  if (seconds > 0) state_.rate = static_cast<double>(state_.step - first_step_) / seconds;
  // By what is done, be it steps or time, whichever ends the run.
  const double since = state_.done - first_done_;
  if (since > 0) state_.left = std::max(0.0, 1 - state_.done) * seconds / since;
  if (terminal_) {
    const std::string line = progress_line(state_, terminal_columns(out_), colour_);
    std::fprintf(out_, "\r\033[K%s", line.c_str());
    on_line_ = true;
  } else {
    std::fprintf(out_, "%s\n", progress_words(state_).c_str());
  }
  std::fflush(out_);
}

}  // namespace ricci
