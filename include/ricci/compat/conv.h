// Another spelling of the gradient of max pooling.
#pragma once

#include "ricci/build/build.h"

namespace ricci {

/// max_pool2d_backward under the name many libraries give it.
inline Value maxpool2d_backward(Value x, Value dy, op::MaxPool2dBackward attrs,
                                std::source_location loc = std::source_location::current()) {
  return max_pool2d_backward(x, dy, std::move(attrs), loc);
}

}  // namespace ricci
