#include "train/run_lock.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "ricci/support/error.h"

namespace ricci::tool {
namespace {

// Who holds it, as they wrote.
std::string holder(const Descriptor& file) {
  std::array<char, 24> text{};
  const ssize_t size = ::pread(file.get(), text.data(), text.size() - 1, 0);
  std::string out;
  for (ssize_t i = 0; i < size && text[static_cast<std::size_t>(i)] != '\n'; ++i) {
    const char c = text[static_cast<std::size_t>(i)];
    if (c < '0' || c > '9') return "another process";
    out += c;
  }
  return out.empty() ? "another process" : "process " + out;
}

}  // namespace

RunLock::RunLock(const std::string& folder) {
  const std::string path = folder + "/" + Name;
  // A pipe in its place is not waited for; flock refuses nothing that can be opened.
  file_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666));
  if (!file_.is_open()) {
    throw UserError(ErrorCode::File,
                    fmt::format("cannot make '{}': {}", path, std::strerror(errno)));
  }
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return;
    throw UserError(ErrorCode::Busy, fmt::format("'{}' is written by {}", folder, holder(file_)),
                    "wait until it has ended, or name another folder with --out");
  }
  const std::string line = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file_.get(), 0) == 0) (void)write_all(file_, std::as_bytes(std::span(line)));
}

}  // namespace ricci::tool
