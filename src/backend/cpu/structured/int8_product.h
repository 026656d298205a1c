// Few rows, rounded to 8 bits in blocks of 32, times a weight in few bits: products of integers
// within a block, of floats between them.
#pragma once

#include <cstdint>

#include "ricci/compiler/device/thread_pool.h"

#include "backend/cpu/structured/packed_product.h"

namespace ricci::cpu {

class Int8ProductPlan {
 public:
  /// Is there a kernel for this on this machine?
  [[nodiscard]] static bool serves(const PackedShape& shape);

  explicit Int8ProductPlan(const PackedShape& shape);
  [[nodiscard]] std::int64_t scratch_bytes() const noexcept;
  /// y [rows, n] = x [rows, k] · Ŵ. False, and nothing is done, where x has numbers that are not
  /// finite: they have no codes.
  [[nodiscard]] bool run(ThreadPool& pool, const float* x, const StoredWeight& weight, float* y,
                         std::byte* scratch) const;

 private:
  [[nodiscard]] Int8Row row(std::int64_t m, std::byte* scratch) const;
  [[nodiscard]] bool round_row(const float* x, const Int8Row& to) const;

  PackedShape shape_;
};

}  // namespace ricci::cpu
