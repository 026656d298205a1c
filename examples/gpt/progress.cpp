#include "progress.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include <sys/ioctl.h>
#include <unistd.h>

namespace gpt {
namespace {

constexpr std::chrono::milliseconds RedrawEvery(100);
constexpr std::chrono::seconds LineEvery(5);
constexpr std::size_t LongestBar = 30;
constexpr std::size_t ShortestBar = 6;
constexpr std::size_t PlainWidth = 80;

std::size_t terminal_width() {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : PlainWidth;
}

std::string bar(double done, std::size_t cells) {
  const auto filled = static_cast<std::size_t>(std::lround(done * static_cast<double>(cells)));
  std::string text(cells, ' ');
  std::fill_n(text.begin(), filled, '=');
  if (filled > 0 && filled < cells) text[filled - 1] = '>';
  return "[" + text + "]";
}

}  // namespace

std::string progress_words(const ProgressState& state) {
  const double done = std::clamp(state.done, 0.0, 1.0);
  const double left = done > 0 ? state.seconds * (1 - done) / done : 0;
  const double rate = state.seconds > 0 ? static_cast<double>(state.steps) / state.seconds : 0;
  const auto left_seconds = static_cast<long>(std::ceil(left));
  std::array<char, 128> words{};
  std::snprintf(words.data(), words.size(),
                "%3.0f %%  step %lld  %.1f steps/s  loss %.3f  %ld:%02ld left", 100 * done,
                static_cast<long long>(state.steps), rate, state.loss, left_seconds / 60,
                left_seconds % 60);
  return words.data();
}

std::string progress_line(const ProgressState& state, std::size_t width) {
  std::string line = progress_words(state);
  const std::size_t around_bar = 4;  // brackets, and two spaces after them
  if (width >= line.size() + around_bar + ShortestBar) {
    const std::size_t cells = std::min(LongestBar, width - line.size() - around_bar);
    line = bar(std::clamp(state.done, 0.0, 1.0), cells) + "  " + line;
  }
  return line.substr(0, width);
}

Progress::Progress() : terminal_(isatty(STDOUT_FILENO) != 0) {}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void Progress::update(std::int64_t steps, double done, double loss) {
  state_.steps = steps;
  state_.done = done;
  state_.loss = steps == 1 ? loss : 0.95 * state_.loss + 0.05 * loss;
  const Clock::duration pause = terminal_ ? Clock::duration(RedrawEvery) : LineEvery;
  if (steps == 1 || Clock::now() - drawn_ >= pause) draw();
}

void Progress::finish() {
  if (drawn_steps_ != state_.steps) draw();
  if (terminal_) std::putchar('\n');
  std::fflush(stdout);
}

void Progress::draw() {
  drawn_ = Clock::now();
  drawn_steps_ = state_.steps;
  state_.seconds = seconds();
  if (terminal_) {
    // The last column stays free: some terminals go to the next line when it is filled.
    const std::size_t width = terminal_width() - 1;
    std::string line = progress_line(state_, width);
    line.resize(width, ' ');
    std::printf("\r%s", line.c_str());
  } else {
    std::printf("%s\n", progress_words(state_).c_str());
  }
  std::fflush(stdout);
}

}  // namespace gpt
