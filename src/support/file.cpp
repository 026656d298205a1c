#include "ricci/support/file.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ricci/support/error.h"

#include "support/descriptor.h"
#include "support/machine_memory.h"
#include "support/read_open.h"
#include "support/replacement.h"

namespace ricci {
namespace {

[[noreturn]] void fail(ErrorCode code, const char* detail, const std::string& path,
                       std::string message, std::string help = {}) {
  throw UserError(Diagnostic{.code = code,
                             .detail = detail,
                             .message = std::move(message),
                             .where = {.file = path, .line = 0, .column = 0, .text = {}},
                             .notes = {},
                             .help = std::move(help)});
}

[[noreturn]] void system_fault(const char* action, const std::string& path) {
  fail(ErrorCode::File, action, path,
       fmt::format("cannot {} the file: {}", action, std::strerror(errno)));
}

[[noreturn]] void too_large(const std::string& path, std::int64_t max_bytes) {
  fail(ErrorCode::File, "size", path,
       fmt::format("the file has more than {} bytes, which is the most that is read", max_bytes));
}

[[noreturn]] void no_room(const std::string& path, std::size_t read) {
  fail(ErrorCode::OutOfMemory, "read", path,
       fmt::format("there is no memory for the file: {} bytes of it were read", read));
}

// What is at hand decides how much is read: the size of a file is a hint (a pipe has none, and a
// growing file may exceed it).
std::vector<std::byte> read_all(const Descriptor& file, const std::string& path,
                                std::size_t expected, std::int64_t max_bytes) {
  constexpr std::size_t Chunk = 1 << 16;
  const auto room = static_cast<std::size_t>(std::min(max_bytes, machine_memory()));
  std::vector<std::byte> bytes;
  try {
    bytes.reserve(expected + 1);
    for (;;) {
      const std::size_t used = bytes.size();
      bytes.resize(std::max(used + Chunk, std::min(bytes.capacity(), used + 64 * Chunk)));
      const ssize_t got = ::read(file.get(), bytes.data() + used, bytes.size() - used);
      if (got < 0 && errno != EINTR) system_fault("read", path);
      bytes.resize(used + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      if (got == 0) return bytes;
      if (bytes.size() <= room) continue;
      if (std::cmp_greater(bytes.size(), max_bytes)) too_large(path, max_bytes);
      no_room(path, bytes.size());
    }
  } catch (const std::bad_alloc&) {
    no_room(path, bytes.size());
  } catch (const std::length_error&) {
    no_room(path, bytes.size());
  }
}

// The file a chain of symbolic links ends in, so that renaming replaces the file and not the link.
std::string follow_links(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string out = resolved;
  std::free(resolved);
  return out;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Nobody reading a pipe is an error of ours; the signal for it would end the process.
bool write_to_pipe(const Descriptor& file, std::span<const std::byte> bytes) {
  sigset_t broken;
  sigset_t waiting;
  sigset_t before;
  sigemptyset(&broken);
  sigaddset(&broken, SIGPIPE);
  sigpending(&waiting);
  if (sigismember(&waiting, SIGPIPE) != 0) return write_all(file, bytes);  // it is blocked
  pthread_sigmask(SIG_BLOCK, &broken, &before);
  const bool done = write_all(file, bytes);
  const int reason = errno;
  if (!done && reason == EPIPE) {
    const timespec now{};
    while (sigtimedwait(&broken, nullptr, &now) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = reason;
  return done;
}

}  // namespace

std::vector<std::byte> read_file(const std::string& path, std::int64_t max_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) system_fault("open", path);
  return read_open(file, path, max_bytes);
}

std::vector<std::byte> read_open(const Descriptor& file, const std::string& path,
                                 std::int64_t max_bytes) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) system_fault("read", path);
  std::size_t expected = 0;
  if (S_ISREG(status.st_mode)) {
    if (status.st_size > max_bytes) too_large(path, max_bytes);
    if (status.st_size > machine_memory()) no_room(path, 0);
    expected = static_cast<std::size_t>(status.st_size);
  }
  return read_all(file, path, expected, max_bytes);
}

// A regular file is replaced; a device or pipe cannot be, and is written directly.
struct AtomicFile::Target {
  explicit Target(const std::string& given) : path(follow_links(given)) {
    struct stat status{};
    const bool exists = ::stat(path.c_str(), &status) == 0;
    if (exists && S_ISDIR(status.st_mode)) {
      errno = EISDIR;
      fault();
    }
    if (exists && !S_ISREG(status.st_mode)) {
      direct = Descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
      if (!direct.is_open()) fault();
      return;
    }
    folder = Descriptor(::open(folder_of(path).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder.is_open()) fault();
    // What may be read by few is never readable by more, not even before it has its name.
    constexpr mode_t Private = 0600;
    constexpr mode_t Usual = 0666;
    replacement = std::make_unique<Replacement>(folder, exists ? Private : Usual);
    if (!replacement->is_open()) fault();
    if (exists) (void)::fchmod(replacement->file().get(), status.st_mode & 0777U);
  }

  [[noreturn]] void fault() const { system_fault("write", path); }

  std::string path;  // with links followed
  Descriptor direct;
  Descriptor folder;
  std::unique_ptr<Replacement> replacement;
};

AtomicFile::AtomicFile(const std::string& path) : target_(std::make_unique<Target>(path)) {}

AtomicFile::~AtomicFile() = default;

void AtomicFile::write(std::span<const std::byte> bytes) {
  const Descriptor& file = target_->replacement ? target_->replacement->file() : target_->direct;
  const bool done = target_->replacement ? write_all(file, bytes) : write_to_pipe(file, bytes);
  if (!done) target_->fault();
}

void AtomicFile::commit() {
  const bool done = target_->replacement ? target_->replacement->put_in_place(
                                               name_of(target_->path), Replacement::Sync::Yes)
                                         : target_->direct.close();
  if (!done) target_->fault();
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void write_file(const std::string& path, std::string_view text) {
  write_file(path, std::as_bytes(std::span(text)));
}

}  // namespace ricci
