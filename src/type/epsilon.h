// How far the numbers of a floating or complex dtype lie apart.
#pragma once

#include "ricci/type/dtype.h"

namespace ricci {

/// The distance from 1 to the next larger number of what a dtype is computed in.
[[nodiscard]] inline double epsilon_of(DType dtype) {
  const DType real = real_part_of(dtype);
  return real == DType::F64 ? 0x1p-52 : 0x1p-23;
}

}  // namespace ricci
