// Tensors as NumPy prints arrays.
#pragma once

#include <string>
#include <string_view>

#include "ricci/array/print.h"
#include "ricci/type/tensor.h"

namespace ricci::detail {

/// With a format for each number, or NumPy's own. fmt::format_error when it is not one.
[[nodiscard]] std::string printed(const Tensor& value, std::string_view format = {});

}  // namespace ricci::detail
