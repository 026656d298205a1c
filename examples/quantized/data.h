// A data set made here: the ten digits of a seven-segment display, moved about and covered in
// noise.
#pragma once

#include <cstdint>

#include "ricci/graph.h"
#include "ricci/model.h"
#include "ricci/ricci.h"

namespace quantized {

constexpr std::int64_t Height = 11;
constexpr std::int64_t Width = 8;
constexpr std::int64_t Pixels = Height * Width;
constexpr std::int64_t Classes = 10;

/// The same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  /// Below `end`.
  std::int64_t below(std::int64_t end);
  /// About normal: the sum of twelve uniform numbers.
  double normal();

 private:
  std::uint64_t next();
  std::uint64_t state_;
};

struct Batch {
  ricci::Tensor images;  ///< f32 [count, Pixels]
  ricci::Tensor labels;  ///< i32 [count]
};
[[nodiscard]] Batch make_batch(Random& random, std::int64_t count);

}  // namespace quantized
