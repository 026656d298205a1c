// Memory that stands for a device's: it lies in this process, but nothing outside is to look into
// it. Every array is an allocation of its own of exactly its size, where a sanitizer sees the edge,
// and pointers that do not come from here are refused.
#pragma once

#include <functional>
#include <map>
#include <string_view>

#include "ricci/compiler/device/memory.h"

#include "support/fork.h"

namespace ricci::lir {

class Memory final : public device::Memory {
 public:
  [[nodiscard]] bool is_host() const noexcept override { return false; }
  [[nodiscard]] std::int64_t total_bytes() const override;
  [[nodiscard]] std::byte* allocate(std::int64_t bytes) override;
  void free(std::byte* at) noexcept override;
  void copy_in(std::byte* to, const std::byte* from, std::int64_t bytes) override;
  void copy_out(std::byte* to, const std::byte* from, std::int64_t bytes) override;

  /// Fills bytes of an array with what nobody would take for a result.
  void scramble(std::byte* at, std::int64_t bytes) const;
  /// InternalError that names `what` unless all these bytes are part of one array of this memory.
  void require_own(const std::byte* at, std::int64_t bytes, std::string_view what) const;

 private:
  mutable ForkMutex mutex_;
  std::map<const std::byte*, std::int64_t, std::less<>> arrays_;  // where, and how many bytes
};

}  // namespace ricci::lir
