// A weight in few bits as the processor reads it: a matrix of rows whose numbers adjoin, decoded
// piece by piece. Block formats have the n outputs as rows, the other schemes the depth k.
#pragma once

#include <cstdint>

#include "ricci/quant/scheme.h"

#include "backend/cpu/kernels/vector_kernels.h"

namespace ricci::cpu {

class StoredWeight {
 public:
  struct Parts {
    const std::uint8_t* codes = nullptr;
    const float* scales = nullptr;             ///< f32 scales, or null
    const std::uint8_t* fp8_scales = nullptr;  ///< of nvfp4_block
    const float* zeros = nullptr;              ///< zero points, or null
    float global = 1;
  };
  StoredWeight(const quant::Scheme& scheme, std::int64_t k, std::int64_t n, const Parts& parts);

  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::int64_t columns() const noexcept { return columns_; }
  /// Pieces of rows begin and end at multiples of this, or with the row.
  [[nodiscard]] std::int64_t unit() const noexcept { return unit_; }
  [[nodiscard]] static bool rows_are_outputs(const quant::Scheme& scheme) {
    return scheme.is_packed();
  }
  /// Rows [row0, row1) from column0 to column1, `stride` apart.
  void decode(std::int64_t row0, std::int64_t row1, std::int64_t column0, std::int64_t column1,
              float* to, std::int64_t stride) const;

  /// Is there a product with a row that decodes in registers?
  [[nodiscard]] static bool has_dots(const quant::Scheme& scheme);
  /// y[r - row0] = Σ of row r times x; `sums` are those of 16 neighbours of x each.
  void dots(std::int64_t row0, std::int64_t row1, const float* x, const float* sums,
            float* y) const;

  /// The same with x in 8 bits.
  [[nodiscard]] static bool has_int8_dots(const quant::Scheme& scheme);
  [[nodiscard]] float dot(std::int64_t row, const Int8Row& x) const;

  /// Are rows of codes added up before they are scaled?
  [[nodiscard]] static bool has_row_sums(const quant::Scheme& scheme);
  /// y[j] = Σ_r x[r]·w[r, j] for columns [column0, column1); `part` has room for as many.
  void add_rows(const float* x, std::int64_t column0, std::int64_t column1, float* part,
                float* y) const;

 private:
  /// The byte where the codes from an element on begin.
  [[nodiscard]] std::int64_t code_place(std::int64_t row, std::int64_t column) const;
  void decode_row(std::int64_t row, std::int64_t column0, std::int64_t column1, float* to) const;
  void decode_blocks(std::int64_t row, std::int64_t column0, std::int64_t column1, float* to) const;
  void decode_nibbles(std::int64_t row, std::int64_t column0, std::int64_t count, float* to) const;

  quant::Scheme scheme_;
  Parts parts_;
  std::int64_t rows_;
  std::int64_t columns_;
  std::int64_t unit_;
  PackedKernels::Blocks blocks_ = nullptr;
};

}  // namespace ricci::cpu
