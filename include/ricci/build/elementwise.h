// Further builders of element-wise ops: other names and argument orders.
#pragma once

#include "ricci/build/build.h"

namespace ricci {

/// stop_gradient: the identity, through which no derivative passes.
inline Value detach(Value x, std::source_location loc = std::source_location::current()) {
  return stop_gradient(x, {}, loc);
}

/// elementwise_region with several results, named in `outputs`.
inline std::vector<Value> region_multi(const std::vector<Value>& inputs,
                                       op::ElementwiseRegion attrs,
                                       std::source_location loc = std::source_location::current()) {
  return elementwise_region(inputs, std::move(attrs), loc);
}

/// activation_backward with the function first.
inline Value activation_backward(UnaryKind kind, Value x, Value dy,
                                 std::source_location loc = std::source_location::current()) {
  return activation_backward(x, dy, {.kind = kind}, loc);
}

}  // namespace ricci
