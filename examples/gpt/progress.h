// How far a run is: one line that is drawn again and again on a terminal, a line every few seconds
// elsewhere.
//
//   [==============>               ]   47 %  step 431  15.2 steps/s  loss 1.873  0:32 left
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace gpt {

struct ProgressState {
  std::int64_t steps = 0;
  double done = 0;     ///< from 0 to 1
  double seconds = 0;  ///< since the start
  double loss = 0;     ///< the mean of the last ones, in which newer ones count more
};
/// Rate, loss and time left.
[[nodiscard]] std::string progress_words(const ProgressState& state);
/// The same behind a bar, in at most `width` characters: the bar gives way first, then the words.
[[nodiscard]] std::string progress_line(const ProgressState& state, std::size_t width);

class Progress {
 public:
  Progress();
  /// After each step, counted from 1: how much of the run is done, and the step's loss.
  void update(std::int64_t steps, double done, double loss);
  /// Shows the last step and ends the line.
  void finish();
  [[nodiscard]] double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  void draw();

  bool terminal_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_ = start_;
  std::int64_t drawn_steps_ = 0;
  ProgressState state_;
};

}  // namespace gpt
