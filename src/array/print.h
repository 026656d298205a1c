// Elements as NumPy prints them.
#pragma once

#include <string>

#include "ricci/type/tensor.h"

namespace ricci::detail {

/// Columns are aligned; floats have up to 8 digits behind the point, or an exponent where the
/// smallest and the largest are far apart; of more than 1000 elements three at each end are shown.
[[nodiscard]] std::string printed(const Tensor& value);

}  // namespace ricci::detail
