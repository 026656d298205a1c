// What models look at, out of pictures.
#pragma once

#include "ricci/type/tensor.h"

namespace ricci {

/// A picture of u8 [height, width, channels] as f32 [channels, height, width] in [0, 1].
void put_picture(const Tensor& picture, float* to);

}  // namespace ricci
