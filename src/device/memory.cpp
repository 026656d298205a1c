#include "ricci/compiler/device/memory.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "support/align.h"
#include "support/machine_memory.h"

namespace ricci::device {
namespace {

constexpr std::align_val_t Alignment{CacheLine};

class HostMemory final : public Memory {
 public:
  [[nodiscard]] bool is_host() const noexcept override { return true; }
  [[nodiscard]] std::int64_t total_bytes() const override { return machine_memory(); }
  [[nodiscard]] std::byte* allocate(std::int64_t bytes) override {
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
    auto* at = static_cast<std::byte*>(::operator new(size, Alignment, std::nothrow));
    if (at != nullptr) return at;
    throw UserError(ErrorCode::OutOfMemory, fmt::format("there is no room for {} bytes", bytes));
  }
  void free(std::byte* at) noexcept override { ::operator delete(at, Alignment); }
  void copy_in(std::byte* to, const std::byte* from, std::int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void copy_out(std::byte* to, const std::byte* from, std::int64_t bytes) override {
    copy_in(to, from, bytes);
  }
};

}  // namespace

Memory& host_memory() {
  static HostMemory memory;
  return memory;
}

}  // namespace ricci::device
