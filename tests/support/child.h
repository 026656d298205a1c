// Work in a child process made by fork().
#pragma once

#include <exception>

#include <sys/wait.h>
#include <unistd.h>

namespace ricci::testing {

#if defined(__SANITIZE_THREAD__)
constexpr bool CanFork = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool CanFork = false;
#else
constexpr bool CanFork = true;
#endif
#else
constexpr bool CanFork = true;
#endif

/// Does `work()` give true in a child? A child that hangs is ended by an alarm, long after any that
/// works is done.
template <class Work>
bool holds_in_child(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(300);
    bool good = false;
    try {
      good = work();
    } catch (const std::exception&) {
      good = false;
    }
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace ricci::testing
