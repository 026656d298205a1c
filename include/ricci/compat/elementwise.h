// Other spellings of element-wise ops.
#pragma once

#include <vector>

#include "ricci/build/build.h"

namespace ricci {

/// elementwise_region with several results, named in `outputs`.
inline std::vector<Value> region_multi(const std::vector<Value>& inputs,
                                       op::ElementwiseRegion attrs,
                                       std::source_location loc = std::source_location::current()) {
  return elementwise_region(inputs, std::move(attrs), loc);
}

/// The cotangent ∂L/∂z̄ of complex_norm_sq for the real cotangent g: g·z.
Value complex_norm_sq_backward(Value z, Value g,
                               std::source_location loc = std::source_location::current());

/// activation_backward with the function first.
inline Value activation_backward(UnaryKind kind, Value x, Value dy,
                                 std::source_location loc = std::source_location::current()) {
  return activation_backward(x, dy, {.kind = kind}, loc);
}

}  // namespace ricci
