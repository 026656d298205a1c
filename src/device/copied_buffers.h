// The buffers of a program as observers see them where the host cannot read the device's memory:
// those that are asked for are copied.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "ricci/compiler/device/executable.h"
#include "ricci/compiler/device/memory.h"

namespace ricci::device {

/// For one visit of an observer: what is asked for twice is copied once.
class CopiedBuffers final : public Buffers {
 public:
  /// `at` are the addresses of the program's buffers.
  CopiedBuffers(Memory& memory, const Program& program, std::span<std::byte* const> at)
      : memory_(memory), program_(program), at_(at) {}

  [[nodiscard]] const std::byte* on_host(BufferId buffer) const override {
    const auto b = static_cast<std::size_t>(buffer);
    if (at_[b] == nullptr) return nullptr;
    const auto [copy, is_new] = copies_.try_emplace(buffer);
    if (is_new) {
      const std::int64_t bytes = program_.buffers[b].bytes();
      copy->second.resize(static_cast<std::size_t>(bytes) + 1);  // never null
      memory_.copy_out(copy->second.data(), at_[b], bytes);
    }
    return copy->second.data();
  }

 private:
  Memory& memory_;
  const Program& program_;
  std::span<std::byte* const> at_;
  mutable std::map<BufferId, std::vector<std::byte>> copies_;
};

}  // namespace ricci::device
