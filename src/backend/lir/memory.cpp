#include "backend/lir/memory.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include "ricci/support/error.h"

namespace ricci::lir {
namespace {

constexpr int FreshByte = 0xFF;  // a NaN, in any float

}  // namespace

std::int64_t Memory::total_bytes() const { return device::host_memory().total_bytes(); }

std::byte* Memory::allocate(std::int64_t bytes) {
  const auto back = [](std::byte* at) { device::host_memory().free(at); };
  std::unique_ptr<std::byte, decltype(back)> fresh(device::host_memory().allocate(bytes), back);
  scramble(fresh.get(), bytes);
  const std::lock_guard lock(mutex_);
  arrays_.emplace(fresh.get(), bytes);  // may want memory itself
  return fresh.release();
}

void Memory::free(std::byte* at) noexcept {
  {
    const std::lock_guard lock(mutex_);
    arrays_.erase(at);
  }
  device::host_memory().free(at);
}

void Memory::copy_in(std::byte* to, const std::byte* from, std::int64_t bytes) {
  require_own(to, bytes, "what is copied to");
  device::host_memory().copy_in(to, from, bytes);
}

void Memory::copy_out(std::byte* to, const std::byte* from, std::int64_t bytes) {
  require_own(from, bytes, "what is copied from");
  device::host_memory().copy_out(to, from, bytes);
}

void Memory::scramble(std::byte* at, std::int64_t bytes) const {
  std::memset(at, FreshByte, static_cast<std::size_t>(bytes));
}

void Memory::require_own(const std::byte* at, std::int64_t bytes, std::string_view what) const {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex_);
  const auto behind = arrays_.upper_bound(at);
  const bool own = behind != arrays_.begin() &&
                   at + bytes <= std::prev(behind)->first + std::prev(behind)->second;
  if (own) return;
  throw InternalError(
      fmt::format("{}: {} bytes that are not in the memory of this device", what, bytes));
}

}  // namespace ricci::lir
