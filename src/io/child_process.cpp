#include "io/child_process.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ricci/support/error.h"
#include "ricci/support/stop.h"

#include "support/stop_flag.h"

namespace ricci::io {
namespace {

class FileActions {
 public:
  explicit FileActions(const std::string& log_file) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, log_file.c_str(),
                                       O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO);
  }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  [[nodiscard]] const ::posix_spawn_file_actions_t* get() const noexcept { return &actions_; }

 private:
  ::posix_spawn_file_actions_t actions_{};
};

// The program leads a group of its own, so that what it starts can be ended with it.
class Spawning {
 public:
  Spawning() {
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
  }
  Spawning(const Spawning&) = delete;
  Spawning& operator=(const Spawning&) = delete;
  ~Spawning() { ::posix_spawnattr_destroy(&attributes_); }
  [[nodiscard]] const ::posix_spawnattr_t* get() const noexcept { return &attributes_; }

 private:
  ::posix_spawnattr_t attributes_{};
};

// A wait that signals do not end; nothing while the child goes on, where that is not waited for.
std::optional<int> status_of(::pid_t child, int options, const std::string& name) {
  int status = 0;
  for (;;) {
    const ::pid_t ended = ::waitpid(child, &status, options);
    if (ended == child) return status;
    if (ended == 0) return std::nullopt;
    if (errno != EINTR) {
      throw UserError(ErrorCode::File,
                      fmt::format("cannot wait for '{}': {}", name, std::strerror(errno)));
    }
  }
}

int wait_for(::pid_t child, const std::string& name) {
  constexpr std::chrono::milliseconds Pause(5);
  if (current_stop_flag() == nullptr) return *status_of(child, 0, name);
  for (;;) {
    if (const auto status = status_of(child, WNOHANG, name)) return *status;
    if (stop_requested()) {
      ::kill(-child, SIGKILL);
      (void)status_of(child, 0, name);
      fail_stopped();
    }
    std::this_thread::sleep_for(Pause);
  }
}

}  // namespace

std::optional<int> run_program(const std::vector<std::string>& arguments,
                               const std::string& log_file) {
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (const std::string& a : arguments) pointers.push_back(const_cast<char*>(a.c_str()));
  pointers.push_back(nullptr);
  const FileActions actions(log_file);
  const Spawning spawning;
  ::pid_t child = 0;
  const int fault =
      ::posix_spawnp(&child, pointers[0], actions.get(), spawning.get(), pointers.data(), environ);
  if (fault == ENOENT) return std::nullopt;
  if (fault != 0) {
    throw UserError(ErrorCode::File,
                    fmt::format("cannot run '{}': {}", arguments[0], std::strerror(fault)));
  }
  const int status = wait_for(child, arguments[0]);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace ricci::io
