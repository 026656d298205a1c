// The kernel every op has: the reference's. It reads and writes the host's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ricci/compiler/schedule/program.h"

namespace ricci::device {

/// Are all results of a call that are wanted empty, and does it do nothing but give them?
[[nodiscard]] bool gives_nothing(const Program& program, const CallStep& step);

/// Slow. Ops registered at run time are looked up in the program's registry, which must outlive it.
class ReferenceCall {
 public:
  ReferenceCall(const Program& program, const CallStep& step);
  /// Pointers to first elements; null for results nobody wants.
  void run(std::span<std::byte* const> operands, std::span<std::byte* const> results,
           std::uint64_t seed) const;

 private:
  Graph graph_;  // empty: it says where registered ops are found
  Node node_;
  std::vector<BufferView> operands_;
  std::vector<BufferView> results_;
};

}  // namespace ricci::device
