// The flag a thread obeys, for those who hand work to other threads or look often.
#pragma once

#include "ricci/support/stop.h"

namespace ricci {

/// The flag of the scope this thread is in; null when there is none.
[[nodiscard]] const StopFlag* current_stop_flag() noexcept;
[[noreturn]] void fail_stopped();

inline void throw_if_set(const StopFlag* stop) {
  if (stop != nullptr && stop->load(std::memory_order_relaxed)) fail_stopped();
}

/// A scope of a flag that outlives it; null means none.
class StopFlagScope {
 public:
  explicit StopFlagScope(const StopFlag* flag) noexcept;
  StopFlagScope(const StopFlagScope&) = delete;
  StopFlagScope& operator=(const StopFlagScope&) = delete;
  ~StopFlagScope();

 private:
  const StopFlag* outer_;
};

}  // namespace ricci
