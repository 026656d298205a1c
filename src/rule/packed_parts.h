// The parts of a weight in few bits as values of a graph, for derivatives by them:
//   Ŵ = (code - zero)·scale, each scale and zero point for a block of rows
#pragma once

#include <vector>

#include "ricci/build/build.h"

#include "op/packed_weight.h"

namespace ricci::rule {

class WeightParts {
 public:
  /// The operands of the weight: codes, scales, zero points (or the scale of all).
  WeightParts(const PackedWeight& size, std::vector<Value> parts)
      : size_(size), parts_(std::move(parts)) {}

  // From dŴ [k, n] in f32 to the cotangent of a part; invalid where it has none.
  [[nodiscard]] Value by_codes(Value dw) const;
  [[nodiscard]] Value by_scales(Value dw) const;
  [[nodiscard]] Value by_offsets(Value dw) const;
  /// t_Ŵ from the tangents of the parts, any of which may be invalid.
  [[nodiscard]] Value tangent(Value codes, Value scales, Value offsets) const;

 private:
  [[nodiscard]] bool has_codes() const;          ///< whole numbers with a derivative
  [[nodiscard]] Value codes() const;             ///< [k, n] as numbers, zero points subtracted
  [[nodiscard]] Value scales() const;            ///< [k, n]; invalid where all are 1
  [[nodiscard]] Value nibbles() const;           ///< [k, n], u8
  [[nodiscard]] Value spread(Value part) const;  ///< [blocks, n] or [n] → [k, n]
  /// [k, n] → sums over the rows that share a scale, in the shape of `like`
  [[nodiscard]] Value gathered(Value v, Value like) const;

  PackedWeight size_;
  std::vector<Value> parts_;
};

}  // namespace ricci::rule
