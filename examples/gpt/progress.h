// How far a run is: one line that is drawn again and again on a terminal, a line every few seconds
// elsewhere.
//
//   [=========>          ]  47 %  step 431  15.2 steps/s  loss 1.873  0:32 left
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace gpt {

class Progress {
 public:
  Progress();
  /// After each step: how much of the run is done, from 0 to 1, and the step's loss.
  void update(std::int64_t steps, double done, double loss);
  /// Ends the line.
  void finish();

  [[nodiscard]] double seconds() const;
  /// The mean of the last losses, in which newer ones count more.
  [[nodiscard]] double loss() const { return loss_.value_or(0); }

 private:
  using Clock = std::chrono::steady_clock;
  void draw();

  bool terminal_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_ = start_;
  std::int64_t steps_ = 0;
  double done_ = 0;
  std::optional<double> loss_;
};

/// The line as it is shown, at most `width` characters: the bar gives way first, then the words at
/// the end.
struct ProgressState {
  std::int64_t steps = 0;
  double done = 0;
  double seconds = 0;
  double loss = 0;
};
[[nodiscard]] std::string progress_line(const ProgressState& state, std::size_t width);

}  // namespace gpt
