// What constructors of layers share.
#pragma once

#include <string_view>

#include "ricci/nn/initializers.h"

namespace ricci::nn {

/// A weight drawn with the next key of the generator. UserError(shape) when a size is not positive
/// or the initialiser gives another shape.
[[nodiscard]] Array drawn_weight(std::string_view layer, const Initializer& init, const Dims& shape,
                                 DType dtype);

/// UserError(attr) with what a layer asks for.
void require_setting(bool holds, std::string_view layer, std::string_view what);

/// Of x [rows, places, width] what is at the last of each row's first `count` places, [rows,
/// width].
[[nodiscard]] Array last_counted(const Array& x, const Array& count, Here where);

}  // namespace ricci::nn
