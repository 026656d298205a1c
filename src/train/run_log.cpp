#include "ricci/train/run_log.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "ricci/support/error.h"
#include "ricci/support/file.h"

#include "train/run_log_text.h"

namespace ricci {
namespace {

[[noreturn]] void refuse_log(const std::string& path, const char* what) {
  throw UserError(ErrorCode::File,
                  fmt::format("cannot {} the log '{}': {}", what, path, std::strerror(errno)));
}

// A last line without an end would swallow the next one.
bool is_torn(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return false;
  char last = '\n';
  const off_t size = ::lseek(file, 0, SEEK_END);
  if (size > 0 && ::pread(file, &last, 1, size - 1) != 1) last = '\n';
  ::close(file);
  return last != '\n';
}

}  // namespace

RunLog::RunLog(const std::string& path) : path_(path) {
  const bool torn = is_torn(path);
  // A pipe nobody reads is no log; opening it would wait for a reader.
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0666);
  if (file_ < 0 || ::fcntl(file_, F_SETFL, O_APPEND) != 0) refuse_log(path_, "open");
  if (torn) line("\n");
}

RunLog::~RunLog() {
  if (file_ >= 0) ::close(file_);
}

void RunLog::line(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse_log(path_, "write");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void RunLog::start(const RunStart& s) { line(run_log_line(s)); }
void RunLog::resume(std::int64_t step) { line(run_log_resume(step)); }
void RunLog::step(const RunStep& s) { line(run_log_line(s)); }
void RunLog::evaluation(const RunEvaluation& e) { line(run_log_line(e)); }
void RunLog::sample(const RunSample& s) { line(run_log_line(s)); }
void RunLog::checkpoint(std::int64_t step) { line(run_log_checkpoint(step)); }
void RunLog::end(const RunEnd& e) { line(run_log_line(e)); }

RunRecord read_run_log(const std::string& path) {
  // Reading a pipe in place of it would wait for someone to write one.
  if (is_there(path) && !is_plain_file(path)) {
    throw UserError(ErrorCode::File,
                    fmt::format("'{}' is no log of a run: it is no plain file", path),
                    "name a folder that `ricci train` has written");
  }
  const std::vector<std::byte> bytes = read_file(path);
  auto run = parse_run_log({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (run) return *std::move(run);
  throw UserError(ErrorCode::File,
                  fmt::format("'{}' is no log of a run: it has no line of one", path),
                  "name a folder that `ricci train` has written");
}

}  // namespace ricci
