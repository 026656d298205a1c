// Other names of the convolution and pooling builders.
#pragma once

#include "ricci/build/build.h"

namespace ricci {

/// max_pool2d_backward under the name many libraries give it.
inline constexpr detail::BuilderFor<op::MaxPool2dBackward> maxpool2d_backward{};

}  // namespace ricci
