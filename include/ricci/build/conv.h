// Transposed convolutions.
#pragma once

#include "ricci/build/build.h"

namespace ricci {

/// Geometry of a transposed convolution; an empty list is its default on every spatial axis.
struct ConvTransposeOptions {
  HeightWidth stride = {};
  HeightWidth padding = {};
  HeightWidth dilation = {};
  HeightWidth output_padding = {};  ///< added to the result's sizes at their end
  std::int64_t groups = 1;
};
/// The transpose of conv in its image, over any spatial axes: x [N, C_in, spatial…],
/// w [C_in, C_out/groups, kernel…] → [N, C_out, (n - 1)·s - 2p + d·(k - 1) + output_padding + 1,
/// …]. Built as conv2d_backward_input, which has its derivatives.
Value conv_transpose(Value x, Value w, const ConvTransposeOptions& options = {},
                     std::source_location loc = std::source_location::current());
/// The same for images [N, C, H, W].
Value conv_transpose2d(Value x, Value w, const ConvTransposeOptions& options = {},
                       std::source_location loc = std::source_location::current());

}  // namespace ricci
