// An open file that is closed when its owner is gone, and the one loop that writes all of a text.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace ricci {

class Descriptor {
 public:
  explicit Descriptor(int value = -1) noexcept : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { (void)close(); }

  [[nodiscard]] int get() const noexcept { return value_; }
  [[nodiscard]] bool is_open() const noexcept { return value_ >= 0; }
  /// Hands it to someone else to close.
  [[nodiscard]] int release() noexcept { return std::exchange(value_, -1); }
  /// False when the system reports, as late as now, that something was not written.
  bool close() noexcept;

 private:
  int value_;
};

/// False when not everything could be written; errno says why.
[[nodiscard]] bool write_all(const Descriptor& file, std::span<const std::byte> bytes) noexcept;

}  // namespace ricci
