// How far a run is: one line that is drawn again and again on a terminal, and a line now and then
// elsewhere.
//
//   [=========>          ]  47 %  step 431/1000  loss 1.873 ▇▅▄▃▂▂▁▁  15.2 steps/s  0:32 left
//
// Colours stay away where NO_COLOR is set (no-color.org), the bar where the terminal is dumb.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace ricci {

/// Small bars of the same width, the largest value the highest; values that are not finite are
/// left blank. More values than cells are averaged.
[[nodiscard]] std::string sparkline(std::span<const double> values, std::size_t cells);

/// `0:32`, `12:05`, `3:07:09`
[[nodiscard]] std::string clock_text(double seconds);

struct RunProgressState {
  std::int64_t step = 0;
  std::int64_t steps = 0;      ///< in all
  double done = 0;             ///< from 0 to 1
  double rate = 0;             ///< steps a second
  double left = 0;             ///< seconds
  double loss = 0;             ///< the mean of the last ones, in which newer ones count more
  std::vector<double> losses;  ///< of the run so far
};
/// Rate, loss and time left: what stands on a plain line.
[[nodiscard]] std::string progress_words(const RunProgressState& state);
/// The same behind a bar and with a sparkline, at most `width` columns wide: what there is no
/// room for is left out, the words last.
[[nodiscard]] std::string progress_line(const RunProgressState& state, std::size_t width,
                                        bool colour);

class RunProgress {
 public:
  /// Draws on a terminal only; `every` is the least time between plain lines.
  explicit RunProgress(std::FILE* out = stdout, double every = 5);
  RunProgress(const RunProgress&) = delete;
  RunProgress& operator=(const RunProgress&) = delete;
  ~RunProgress();

  /// After each step, counted from 1: how much of the run is done, and the step's loss.
  void update(std::int64_t step, std::int64_t steps, double done, double loss);
  /// Was there a step?
  [[nodiscard]] bool began() const noexcept { return began_; }
  /// A line of its own, above the bar.
  void say(const std::string& line);
  /// Shows the last step and ends the line.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void draw();
  void clear();

  std::FILE* out_;
  bool terminal_ = false;
  bool began_ = false;
  bool colour_ = false;
  bool on_line_ = false;  // something is drawn on the current line
  Clock::duration every_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_ = start_;
  std::int64_t first_step_ = 0;
  double first_done_ = 0;
  std::int64_t drawn_step_ = -1;
  RunProgressState state_;
};

}  // namespace ricci
