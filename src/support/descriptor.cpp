#include "support/descriptor.h"

#include <cerrno>

#include <unistd.h>

namespace ricci {

bool Descriptor::close() noexcept {
  const int value = std::exchange(value_, -1);
  // Linux has closed it even when it was interrupted.
  return value < 0 || ::close(value) == 0 || errno == EINTR;
}

bool write_all(const Descriptor& file, std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace ricci
