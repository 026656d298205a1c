// Ctrl-C and --timeout: both press one button, which everything a command computes obeys.
#pragma once

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "ricci/support/stop.h"

namespace ricci::tool {

/// While it lives, the first interrupt of the process asks what this thread computes to stop; a
/// second one ends the process at once.
class StopOnInterrupt {
 public:
  StopOnInterrupt();

 private:
  StopScope scope_;
};

/// Pressed by the first interrupt: for commands that end in their own time.
[[nodiscard]] StopToken interrupt_token();

/// Declares --timeout for every command but those that mean something else by it.
void declare_timeout(CLI::App& app, double& seconds);

/// Asks for a stop when so many seconds have passed, unless it is gone by then; 0 means never.
class Deadline {
 public:
  explicit Deadline(double seconds);
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  ~Deadline();

 private:
  struct Timer;
  std::unique_ptr<Timer> timer_;
};

struct Stopped {
  int status = 0;
  std::string message;
};
/// How a command ends that was stopped: 130 by an interrupt, 1 by a deadline.
[[nodiscard]] Stopped how_stopped();

}  // namespace ricci::tool
