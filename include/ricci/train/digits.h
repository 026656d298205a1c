// Images of digits that are drawn here, for trying things out without a file: the ten digits in a
// small font, moved about, larger and smaller, tilted, bright and dim, and covered in noise.
#pragma once

#include <cstdint>

#include "ricci/type/tensor.h"

namespace ricci {

struct DrawnDigits {
  Tensor images;  ///< f32 [count, 1, size, size], around 0
  Tensor labels;  ///< i32 [count], 0 to 9
};

/// The same seed gives the same images. UserError(attr) for a size below 8.
[[nodiscard]] DrawnDigits drawn_digits(std::int64_t count, std::uint64_t seed,
                                       std::int64_t size = 16);

}  // namespace ricci
