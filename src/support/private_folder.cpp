#include "support/private_folder.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ricci/support/error.h"

#include "support/replacement.h"

namespace ricci {
namespace {

constexpr mode_t OthersWrite = S_IWGRP | S_IWOTH;
constexpr mode_t OwnFolder = 0700;
constexpr mode_t OwnFile = 0600;

[[noreturn]] void refuse(const std::string& path, std::string message, std::string help) {
  throw UserError(Diagnostic{.code = ErrorCode::File,
                             .detail = "folder",
                             .message = std::move(message),
                             .where = {.file = path, .line = 0, .column = 0, .text = {}},
                             .notes = {"what lies in it would be run as code"},
                             .help = std::move(help)});
}

void check_owner(const std::string& path, const struct stat& status) {
  if (status.st_uid != ::geteuid()) {
    refuse(path,
           fmt::format("the folder belongs to user {}, but this process is of user {}",
                       status.st_uid, ::geteuid()),
           "name a folder of your own");
  }
  if ((status.st_mode & OthersWrite) != 0) {
    refuse(path,
           fmt::format("others may write to the folder: its mode is {:o}", status.st_mode & 07777U),
           fmt::format("name another folder, or run: chmod go-w '{}'", path));
  }
}

// The folder and those above it, as far as they are missing.
void make_folders(const std::string& path) {
  for (std::size_t end = path.find('/', 1); end != std::string::npos;
       end = path.find('/', end + 1)) {
    (void)::mkdir(path.substr(0, end).c_str(), OwnFolder);
  }
  (void)::mkdir(path.c_str(), OwnFolder);
}

bool is_own_file(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & OthersWrite) == 0;
}

struct Found {
  std::string name;
  std::int64_t bytes = 0;  // on the disk
  timespec used{};
};

bool is_older(const Found& a, const Found& b) {
  if (a.used.tv_sec != b.used.tv_sec) return a.used.tv_sec < b.used.tv_sec;
  return a.used.tv_nsec < b.used.tv_nsec;
}

// Calls f(name, status) for every plain file.
template <class F>
void for_files(const Descriptor& folder, F&& f) {
  Descriptor again(::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!again.is_open()) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(again.get()), &::closedir);
  if (entries == nullptr) return;
  (void)again.release();  // it is closed with the entries
  while (const dirent* entry = ::readdir(entries.get())) {
    struct stat status{};
    if (::fstatat(folder.get(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISREG(status.st_mode)) f(std::string(entry->d_name), status);
  }
}

}  // namespace

std::optional<PrivateFolder> PrivateFolder::open(const std::string& path) {
  const auto open_folder = [&] {
    return Descriptor(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  };
  Descriptor folder = open_folder();
  if (!folder.is_open()) {
    make_folders(path);
    folder = open_folder();
  }
  struct stat status{};
  if (!folder.is_open() || ::fstat(folder.get(), &status) != 0) return std::nullopt;
  check_owner(path, status);
  return PrivateFolder(std::move(folder));
}

std::optional<std::string> PrivateFolder::read(const std::string& name,
                                               std::int64_t max_bytes) const {
  // Not waiting: a pipe with nobody at its other end would wait for ever.
  const Descriptor file(
      ::openat(folder_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status{};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0 || !is_own_file(status) ||
      status.st_size > max_bytes) {
    return std::nullopt;
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;  // it has become shorter
    filled += static_cast<std::size_t>(got);
  }
  (void)::futimens(file.get(), nullptr);
  return text;
}

void PrivateFolder::replace(const std::string& name, std::string_view text) const {
  Replacement file(folder_, OwnFile);
  if (!file.is_open() || !write_all(file.file(), std::as_bytes(std::span(text)))) return;
  (void)file.put_in_place(name, Replacement::Sync::No);
}

void PrivateFolder::trim(std::int64_t max_bytes, bool (*is_ours)(std::string_view name)) const {
  constexpr std::int64_t BlockBytes = 512;
  std::vector<Found> files;
  std::int64_t total = 0;
  for_files(folder_, [&](std::string name, const struct stat& status) {
    if (is_temporary_name(name)) {
      if (is_abandoned(status)) ::unlinkat(folder_.get(), name.c_str(), 0);
      return;
    }
    if (!is_ours(name)) return;
    const std::int64_t bytes = std::max(status.st_blocks * BlockBytes, status.st_size);
    total += bytes;
    files.push_back({std::move(name), bytes, status.st_mtim});
  });
  if (total <= max_bytes) return;
  std::ranges::sort(files, is_older);
  const std::int64_t wanted = max_bytes - max_bytes / 8;
  for (const Found& file : files) {
    if (total <= wanted) break;
    // Another process may have removed it, or put a new one in its place: then that one is
    // compiled again.
    ::unlinkat(folder_.get(), file.name.c_str(), 0);
    total -= file.bytes;
  }
}

}  // namespace ricci
