// Index operands: integers, or floats that hold exact integers.
#pragma once

#include "backend/cpu/host/scratch.h"

namespace ricci::cpu {

/// The only element of an index operand; the call fails when it is no exact integer.
[[nodiscard]] std::int64_t exact_integer(const HostArguments& call, std::size_t k);

/// All elements of an index operand, row-major.
class IndexOperand {
 public:
  IndexOperand(const HostArguments& call, std::size_t k, Scratch& scratch)
      : call_(call), operand_(k), numbers_(call, k, scratch) {}

  /// Reads the indices; the call fails when one is no exact integer in [0, limit).
  void read(std::int64_t limit) const;
  [[nodiscard]] const std::int64_t* data() const { return numbers_.data(); }

 private:
  [[noreturn]] void fail(const std::int64_t* indices, std::int64_t limit) const;

  const HostArguments& call_;
  std::size_t operand_;
  NumberOperand<std::int64_t> numbers_;
};

}  // namespace ricci::cpu
