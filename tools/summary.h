// One line about a tensor: its values when they are few, otherwise what they range over.
#pragma once

#include <string>

#include "ricci/type/tensor.h"

namespace ricci::tool {

/// `[[1, 2], [3, 4]]`, or `min -0.98  max 0.99  mean 0.01`, and how many are not finite.
[[nodiscard]] std::string summary(const Tensor& tensor);

}  // namespace ricci::tool
