// The floats that are stored in sixteen bits and computed with in f32.
#pragma once

#include "ricci/type/dtype.h"

namespace ricci {

[[nodiscard]] inline bool is_small_float(DType d) { return d == DType::F16 || d == DType::BF16; }
/// What values of a dtype are held and summed in, to be rounded once.
[[nodiscard]] inline DType widened(DType d) { return is_small_float(d) ? DType::F32 : d; }

}  // namespace ricci
