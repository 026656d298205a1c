// How panels of a product are packed and multiplied: numbers as they are, or floats of 16 bits,
// which are widened or paired on the way.
#pragma once

#include <cstdint>
#include <type_traits>

#include "ricci/type/dtype.h"

#include "backend/cpu/kernels/vector_kernels.h"
#include "backend/cpu/structured/matmul_copy.h"

namespace ricci::cpu {

[[nodiscard]] inline const NarrowKernels& narrow_kernels(DType dtype) {
  return dtype == DType::BF16 ? bf16_kernels() : vector_kernels().f16;
}

template <class R>
class PanelMaker {
 public:
  /// `narrow`: the operands are floats of 16 bits.
  PanelMaker(DType dtype, bool narrow)
      : plain_(product_kernels<R>().panels), narrow_(narrow ? &narrow_kernels(dtype) : nullptr) {}

  /// The most of the depth that a block has.
  [[nodiscard]] std::int64_t depth() const { return plain_.depth * together(); }
  /// How many places of a strip so much of the depth takes.
  [[nodiscard]] std::int64_t places(std::int64_t depth) const {
    return (depth + together() - 1) / together();
  }

  /// From element [row0, k0] of A, or [k0, column0] of B.
  void pack_rows(const void* a, const MatmulLayout& at, std::int64_t row0, std::int64_t k0,
                 std::int64_t rows, std::int64_t depth, R* to) const {
    const std::int64_t first = row0 * at.row + k0 * at.column;
    if constexpr (std::is_same_v<R, float>) {
      if (narrow_ != nullptr) {
        return narrow_->pack_rows(static_cast<const std::uint16_t*>(a) + first, at.row, at.column,
                                  rows, depth, to);
      }
    }
    plain_.pack_rows(static_cast<const R*>(a) + first, at.row, at.column, rows, depth, to);
  }
  void pack_columns(const void* b, const MatmulLayout& at, std::int64_t k0, std::int64_t column0,
                    std::int64_t columns, std::int64_t depth, R* to) const {
    const std::int64_t first = k0 * at.row + column0 * at.column;
    if constexpr (std::is_same_v<R, float>) {
      if (narrow_ != nullptr) {
        return narrow_->pack_columns(static_cast<const std::uint16_t*>(b) + first, at.row,
                                     at.column, columns, depth, to);
      }
    }
    plain_.pack_columns(static_cast<const R*>(b) + first, at.row, at.column, columns, depth, to);
  }
  /// `depth` of the panels counts places.
  void multiply(const Panels<R>& panels) const {
    if constexpr (std::is_same_v<R, float>) {
      if (narrow_ != nullptr) return narrow_->multiply(panels);
    }
    plain_.multiply(panels);
  }

 private:
  [[nodiscard]] std::int64_t together() const { return narrow_ == nullptr ? 1 : narrow_->together; }

  const PanelKernels<R>& plain_;
  const NarrowKernels* narrow_;
};

}  // namespace ricci::cpu
