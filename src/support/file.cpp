#include "ricci/support/file.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <stdexcept>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ricci/support/error.h"
#include "ricci/support/stop.h"

#include "support/descriptor.h"
#include "support/machine_memory.h"
#include "support/read_open.h"
#include "support/replacement.h"
#include "support/stop_flag.h"

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

// Waits until a pipe, terminal or device can be read or written, or can never be. A signal ends a
// wait of the system early; the button that another thread presses is looked at now and then.
void wait_for(const Descriptor& file, short events) {
  constexpr int LookAtButton = 20;  // milliseconds
  pollfd one{.fd = file.get(), .events = events, .revents = 0};
  for (;;) {
    throw_if_stopped();
    if (::poll(&one, 1, current_stop_flag() == nullptr ? -1 : LookAtButton) > 0) return;
  }
}

// What is at hand decides how much is read: the size of a file is a hint (a pipe has none, and a
// growing file may exceed it).
std::vector<std::byte> read_all(const Descriptor& file, const std::string& path,
                                std::size_t expected, bool waits, std::int64_t max_bytes,
                                const FrontCheck& front) {
  constexpr std::size_t Chunk = 1 << 16;
  const auto room = static_cast<std::size_t>(std::min(max_bytes, machine_memory()));
  std::vector<std::byte> bytes;
  try {
    bytes.reserve(expected + 1);
    for (;;) {
      const std::size_t used = bytes.size();
      bytes.resize(std::max(used + Chunk, std::min(bytes.capacity(), used + 64 * Chunk)));
      throw_if_stopped();
      if (waits) wait_for(file, POLLIN);
      const ssize_t got = ::read(file.get(), bytes.data() + used, bytes.size() - used);
      if (got < 0 && errno != EINTR && errno != EAGAIN) system_fault("read", path);
      bytes.resize(used + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      if (got < 0) continue;
      if (front && used < FrontBytes && (got == 0 || bytes.size() >= FrontBytes)) {
        front(std::span(bytes).first(std::min(bytes.size(), FrontBytes)));
      }
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

// A stop leaves what was written where it is, as a broken pipe does.
bool write_patiently(const Descriptor& file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EAGAIN) {
      wait_for(file, POLLOUT);
    } else if (written < 0 && errno != EINTR) {
      return false;
    } else if (written > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }
  return true;
}

// Nobody reading a pipe is an error of ours; the signal for it would end the process.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigset_t waiting;
    sigemptyset(&broken_);
    sigaddset(&broken_, SIGPIPE);
    sigpending(&waiting);
    is_blocked_ = sigismember(&waiting, SIGPIPE) != 0;
    if (!is_blocked_) pthread_sigmask(SIG_BLOCK, &broken_, &before_);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;
  ~NoPipeSignal() {
    if (is_blocked_) return;
    const int reason = errno;
    const timespec now{};
    while (sigtimedwait(&broken_, nullptr, &now) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = reason;
  }

 private:
  sigset_t broken_{};
  sigset_t before_{};
  bool is_blocked_ = false;  // by the caller, and waiting for it
};

bool write_to_pipe(const Descriptor& file, std::span<const std::byte> bytes) {
  const NoPipeSignal quiet;
  return write_patiently(file, bytes);
}

}  // namespace

std::vector<std::byte> read_file(const std::string& path, std::int64_t max_bytes) {
  const Descriptor file = open_to_read(path);
  if (!file.is_open()) system_fault("open", path);
  return read_open(file, path, max_bytes);
}

Descriptor open_to_read(const std::string& path) noexcept {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

Descriptor open_to_write(const std::string& path) {
  constexpr timespec Moment{.tv_sec = 0, .tv_nsec = 5'000'000};
  for (;;) {
    Descriptor file(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    struct stat status{};
    // What a pipe without a reader says.
    const bool waits = !file.is_open() && errno == ENXIO && ::stat(path.c_str(), &status) == 0 &&
                       S_ISFIFO(status.st_mode);
    if (!waits) return file;
    throw_if_stopped();
    (void)::nanosleep(&Moment, nullptr);
  }
}

std::vector<std::byte> read_open(const Descriptor& file, const std::string& path,
                                 std::int64_t max_bytes, const FrontCheck& front) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) system_fault("read", path);
  std::size_t expected = 0;
  const bool is_plain = S_ISREG(status.st_mode);
  if (is_plain) {
    if (status.st_size > max_bytes) too_large(path, max_bytes);
    if (status.st_size > machine_memory()) no_room(path, 0);
    expected = static_cast<std::size_t>(status.st_size);
  }
  return read_all(file, path, expected, !is_plain, max_bytes, front);
}

namespace {

// Nothing when there is nothing of this name.
std::optional<mode_t> kind_of(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0) return status.st_mode;
  if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
  system_fault("find", path);
}

}  // namespace

bool is_there(const std::string& path) { return kind_of(path).has_value(); }

bool is_folder(const std::string& path) {
  const std::optional<mode_t> kind = kind_of(path);
  return kind && S_ISDIR(*kind);
}

bool is_plain_file(const std::string& path) noexcept {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
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
      direct = open_to_write(path);
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
