// The GPU's memory: arrays from the driver's pool, which keeps what was given back, and copies that
// are done when they return.
#pragma once

#include "ricci/compiler/device/memory.h"

#include "backend/cuda/run/gpu.h"

namespace ricci::cuda {

/// Every array begins at a multiple of this many bytes.
inline constexpr std::int64_t ArrayAlignment = 256;

class Memory final : public device::Memory {
 public:
  explicit Memory(const Gpu& gpu) : gpu_(gpu) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  [[nodiscard]] bool is_host() const noexcept override { return false; }
  [[nodiscard]] std::int64_t total_bytes() const override { return gpu_.memory_bytes(); }
  [[nodiscard]] std::byte* allocate(std::int64_t bytes) override;
  void free(std::byte* at) noexcept override;
  void copy_in(std::byte* to, const std::byte* from, std::int64_t bytes) override;
  void copy_out(std::byte* to, const std::byte* from, std::int64_t bytes) override;

 private:
  [[nodiscard]] Status try_allocate(Address& at, std::size_t bytes) const;

  const Gpu& gpu_;
};

/// Memory of the host that the GPU reads and writes by itself, while programs run.
class Pinned {
 public:
  Pinned() = default;
  Pinned(const Gpu& gpu, std::size_t bytes);
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned();

  template <class T>
  [[nodiscard]] T& as(std::size_t offset = 0) const {
    return *reinterpret_cast<T*>(static_cast<std::byte*>(at_) + offset);
  }

 private:
  const Gpu* gpu_ = nullptr;
  void* at_ = nullptr;
};

[[nodiscard]] inline Address address(const void* at) {
  return static_cast<Address>(reinterpret_cast<std::uintptr_t>(at));
}

}  // namespace ricci::cuda
