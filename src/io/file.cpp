#include "ricci/io/file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/fault.h"

namespace ricci::io {
namespace {

[[noreturn]] void system_fault(const char* action, const std::string& path, std::string help = {}) {
  const std::string reason = std::strerror(errno);
  throw UserError(Diagnostic{.code = ErrorCode::File,
                             .detail = action,
                             .message = fmt::format("cannot {} the file: {}", action, reason),
                             .where = {.file = path, .line = 0, .column = 0, .text = {}},
                             .notes = {},
                             .help = std::move(help)});
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return value_; }

 private:
  int value_;
};

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

}  // namespace

std::vector<std::byte> read_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) system_fault("open", path);
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) system_fault("read", path);
  // The size is a hint: a pipe has none, and a growing file may exceed it.
  constexpr std::size_t Chunk = 1 << 16;
  std::vector<std::byte> bytes;
  if (S_ISREG(status.st_mode)) bytes.reserve(static_cast<std::size_t>(status.st_size) + 1);
  for (;;) {
    const std::size_t used = bytes.size();
    bytes.resize(std::max(used + Chunk, std::min(bytes.capacity(), used + 64 * Chunk)));
    const ssize_t got = ::read(file.get(), bytes.data() + used, bytes.size() - used);
    bytes.resize(used + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return bytes;
    if (got < 0 && errno != EINTR) system_fault("read", path);
  }
}

AtomicFile::AtomicFile(std::string path) : path_(follow_links(path)) {
  struct stat status{};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    fail("write");
  }
  if (exists && !S_ISREG(status.st_mode)) {  // a device or pipe cannot be replaced
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail("write");
    return;
  }
  static std::atomic<unsigned> counter{0};
  temporary_ = fmt::format("{}.{}-{}.tmp", path_, ::getpid(), counter++);
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    temporary_.clear();
    fail("write");
  }
  if (exists) (void)::fchmod(descriptor_, status.st_mode & 07777U);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (!temporary_.empty() && ::fsync(descriptor_) != 0) fail("write");
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) fail("write");
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("write");
  temporary_.clear();
  // The new name is durable once its folder is; a file system that cannot sync folders is not ours
  // to mend.
  const Descriptor folder(::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) (void)::fsync(folder.get());
}

void AtomicFile::fail(const char* action) const { system_fault(action, path_); }

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void write_file(const std::string& path, std::string_view text) {
  write_file(path, std::as_bytes(std::span(text)));
}

}  // namespace ricci::io
