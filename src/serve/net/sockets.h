// The few calls of the system that a server needs, with their faults as errors.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace ricci::serve {

/// A file descriptor that is closed at the end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  [[nodiscard]] int get() const noexcept { return fd_; }
  void close() noexcept;

 private:
  int fd_ = -1;
};

/// UserError(refused) with what the system says.
[[noreturn]] void system_fault(const std::string& what, const std::string& help = {});

/// Listens at an address given as numbers, IPv4 or IPv6, or `localhost`; without waiting.
[[nodiscard]] Descriptor listening_socket(const std::string& host, std::uint16_t port);
[[nodiscard]] std::uint16_t port_of(const Descriptor& socket);

}  // namespace ricci::serve
