#include "support/replacement.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ricci/support/text.h"

namespace ricci {
namespace {

constexpr std::string_view Front = ".ricci-";
constexpr std::string_view Back = ".tmp";
constexpr std::size_t Digits = 32;

// Two processes never choose the same name, even with the same number in namespaces of their own;
// empty when the system has no randomness to give.
std::string unpredictable_name() {
  std::array<std::byte, Digits / 2> bytes{};
  ssize_t got = -1;
  do {
    got = ::getrandom(bytes.data(), bytes.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(bytes.size())) return {};
  return std::string(Front) + to_hex(bytes) + std::string(Back);
}

// A signal may end the wait for the disk, on network file systems for one.
bool synced(const Descriptor& file) noexcept {
  int status = -1;
  do {
    status = ::fsync(file.get());
  } while (status != 0 && errno == EINTR);
  return status == 0;
}

}  // namespace

bool is_temporary_name(std::string_view name) noexcept {
  return name.size() == Front.size() + Digits + Back.size() && name.starts_with(Front) &&
         name.ends_with(Back);
}

bool is_abandoned(const struct stat& status) noexcept {
  constexpr std::time_t Longest = 3600;  // seconds
  return status.st_mtim.tv_sec < std::time(nullptr) - Longest;
}

Replacement::Replacement(const Descriptor& folder, mode_t mode) : folder_(folder) {
  std::string name = unpredictable_name();
  if (name.empty()) return;
  file_ = Descriptor(::openat(folder.get(), name.c_str(),
                              O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (file_.is_open()) temporary_ = std::move(name);
}

Replacement::~Replacement() {
  if (!temporary_.empty()) ::unlinkat(folder_.get(), temporary_.c_str(), 0);
}

bool Replacement::put_in_place(const std::string& name, Sync sync) noexcept {
  if (sync == Sync::Yes && !synced(file_)) return false;
  if (!file_.close()) return false;
  if (::renameat(folder_.get(), temporary_.c_str(), folder_.get(), name.c_str()) != 0) return false;
  temporary_.clear();
  if (sync == Sync::Yes) {
    // The new name is durable once its folder is; a file system that cannot sync folders is not
    // ours to mend.
    const Descriptor readable(::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (readable.is_open()) (void)synced(readable);
  }
  return true;
}

}  // namespace ricci
