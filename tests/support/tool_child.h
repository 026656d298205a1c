// The command-line tool while it runs, for tests that send it signals.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_paths.h"

namespace ricci::testing {

/// The tool as a child that sees all signals, with its output in a file.
class ToolChild {
 public:
  ToolChild(std::vector<std::string> words, const std::string& out) {
    words.insert(words.begin(), RICCI_TOOL_PATH);
    std::vector<char*> arguments;
    for (std::string& w : words) arguments.push_back(w.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    // Tests in the background ignore interrupts, and may hang up nothing.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t seen;
    sigemptyset(&seen);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&seen, number);
    posix_spawnattr_setsigdefault(&attributes, &seen);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    started_ =
        posix_spawn(&id_, arguments[0], &actions, &attributes, arguments.data(), environ) == 0;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }
  ToolChild(const ToolChild&) = delete;
  ToolChild& operator=(const ToolChild&) = delete;
  ~ToolChild() {
    if (!running()) return;
    ::kill(id_, SIGKILL);
    (void)status();
  }

  [[nodiscard]] bool running() {
    if (started_ && !ended_) ended_ = ::waitpid(id_, &status_, WNOHANG) == id_;
    return started_ && !ended_;
  }
  void signal(int number) const { ::kill(id_, number); }
  [[nodiscard]] pid_t id() const { return id_; }
  /// What it ended with; -1 when a signal ended it.
  [[nodiscard]] int status() {
    if (started_ && !ended_) ended_ = ::waitpid(id_, &status_, 0) == id_;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
  }

 private:
  pid_t id_ = 0;
  int status_ = 0;
  bool started_ = false;
  bool ended_ = false;
};

}  // namespace ricci::testing
