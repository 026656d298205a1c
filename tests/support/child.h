// Work in a child process made by fork().
#pragma once

#include <exception>

#include <sys/wait.h>
#include <unistd.h>

#include "support/sanitized.h"

namespace ricci::testing {

inline constexpr bool CanFork = !HasThreadSanitizer;  // it starts no threads in children

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
