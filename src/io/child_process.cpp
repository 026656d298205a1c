#include "io/child_process.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ricci/support/error.h"

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

}  // namespace

std::optional<int> run_program(const std::vector<std::string>& arguments,
                               const std::string& log_file) {
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (const std::string& a : arguments) pointers.push_back(const_cast<char*>(a.c_str()));
  pointers.push_back(nullptr);
  const FileActions actions(log_file);
  ::pid_t child = 0;
  const int fault =
      ::posix_spawnp(&child, pointers[0], actions.get(), nullptr, pointers.data(), environ);
  if (fault == ENOENT) return std::nullopt;
  if (fault != 0) {
    throw UserError(ErrorCode::File,
                    fmt::format("cannot run '{}': {}", arguments[0], std::strerror(fault)));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      throw UserError(ErrorCode::File, fmt::format("cannot wait for '{}'", arguments[0]));
    }
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace ricci::io
