// Images: other names of resize, and windows as columns.
#pragma once

#include "ricci/build/build.h"

namespace ricci {

/// Every pixel twice in both directions: resize of [N, C, H, W] to twice its height and width.
Value resize_nearest2x(Value x, std::source_location loc = std::source_location::current());

struct WindowOptions {
  HeightWidth stride = {};    ///< absent: 1 everywhere
  HeightWidth padding = {};   ///< absent: 0
  HeightWidth dilation = {};  ///< absent: 1
};
/// The windows a convolution sees, as columns: [N, C, spatial…] → [N, C·Π kernel, Π windows], zeros
/// in the padding. A convolution is a product of its weight [C_out, C·Π kernel] with them. Spatial
/// sizes are known.
Value im2col(Value x, HeightWidth kernel, const WindowOptions& options = {},
             std::source_location loc = std::source_location::current());

}  // namespace ricci
