#include "backend/cuda/run/memory.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "ricci/support/error.h"

namespace ricci::cuda {

Status Memory::try_allocate(Address& at, std::size_t bytes) const {
  const Driver& driver = gpu_.driver();
  if (!gpu_.has_pools()) return driver.allocate(&at, bytes);
  const Status status = driver.allocate_async(&at, bytes, gpu_.memory_stream());
  // What other streams do with it comes after this.
  return status != 0 ? status : driver.stream_wait(gpu_.memory_stream());
}

std::byte* Memory::allocate(std::int64_t bytes) {
  gpu_.use();
  Address at = 0;
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  const Status status = bytes > gpu_.memory_bytes()
                            ? OutOfMemory
                            : gpu_.with_room([&] { return try_allocate(at, size); });
  if (status == OutOfMemory) {
    throw UserError(ErrorCode::OutOfMemory,
                    fmt::format("there is no room for {} bytes on {}", bytes, gpu_.name()));
  }
  gpu_.driver().check(status, "give memory");
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(at));
}

void Memory::free(std::byte* at) noexcept {
  // Nothing can be done about a failure here; the next call that fails says what is wrong.
  if (!gpu_.try_use()) return;
  if (gpu_.has_pools()) {
    gpu_.driver().free_async(address(at), gpu_.memory_stream());
  } else {
    gpu_.driver().free(address(at));
  }
}

void Memory::copy_in(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes <= 0) return;
  gpu_.use();
  const Driver& driver = gpu_.driver();
  const auto size = static_cast<std::size_t>(bytes);
  driver.check(driver.copy_in(address(to), from, size, gpu_.memory_stream()), "take a copy");
  driver.check(driver.stream_wait(gpu_.memory_stream()), "take a copy");
}

void Memory::copy_out(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes <= 0) return;
  gpu_.use();
  const Driver& driver = gpu_.driver();
  const auto size = static_cast<std::size_t>(bytes);
  driver.check(driver.copy_out(to, address(from), size, gpu_.memory_stream()), "give a copy");
  driver.check(driver.stream_wait(gpu_.memory_stream()), "give a copy");
}

Pinned::Pinned(const Gpu& gpu, std::size_t bytes) : gpu_(&gpu) {
  gpu.use();
  gpu.driver().check(gpu.with_room([&] { return gpu.driver().allocate_host(&at_, bytes); }),
                     "share memory with the host");
  std::memset(at_, 0, bytes);
}

Pinned::~Pinned() {
  if (at_ != nullptr && gpu_->try_use()) gpu_->driver().free_host(at_);
}

}  // namespace ricci::cuda
