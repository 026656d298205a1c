// Where a device keeps its arrays. On the CPU that is the host's own memory, and tensors are used
// where they lie; elsewhere their elements are copied in and out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace ricci::device {

class Memory {
 public:
  virtual ~Memory() = default;
  /// May pointers to a host tensor's elements be handed to programs?
  [[nodiscard]] virtual bool is_host() const noexcept = 0;
  /// Bytes programs may use: the device's, or what a container is allowed.
  [[nodiscard]] virtual std::int64_t total_bytes() const = 0;
  /// At least one byte, aligned for vectors of any dtype; UserError(out_of_memory) without room.
  [[nodiscard]] virtual std::byte* allocate(std::int64_t bytes) = 0;
  virtual void free(std::byte* at) noexcept = 0;
  /// From the host's memory to the device's, and back. They return when `from` may change.
  virtual void copy_in(std::byte* to, const std::byte* from, std::int64_t bytes) = 0;
  virtual void copy_out(std::byte* to, const std::byte* from, std::int64_t bytes) = 0;
};

/// Bytes of a device, freed with it.
class Array {
 public:
  Array() = default;
  Array(Memory& memory, std::int64_t bytes)
      : memory_(&memory), data_(memory.allocate(bytes)), bytes_(bytes) {}
  Array(Array&& other) noexcept { *this = std::move(other); }
  Array& operator=(Array&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Array() {
    if (data_ != nullptr) memory_->free(data_);
  }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
  void copy_in(const std::byte* from) { memory_->copy_in(data_, from, bytes_); }
  void copy_out(std::byte* to) const { memory_->copy_out(to, data_, bytes_); }

 private:
  Memory* memory_ = nullptr;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

/// The host's memory: what back ends whose programs run on the host use.
[[nodiscard]] Memory& host_memory();

}  // namespace ricci::device
