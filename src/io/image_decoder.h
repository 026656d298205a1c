// What reads one format of pictures.
#pragma once

#include <cstddef>
#include <string>

#include "ricci/io/image.h"

#include "io/fault.h"

namespace ricci::io {

/// UserError(file.image_size) for pictures that are larger than the limits, or have no pixel.
void require_size(std::uint64_t width, std::uint64_t height, const ImageLimits& limits);
[[noreturn]] void image_fault(std::string_view format, std::string_view message);

/// u8 [height, width, channels], as many channels as there are: 1 to 4.
[[nodiscard]] Tensor parse_png(ByteSpan bytes, const ImageLimits& limits);
[[nodiscard]] Tensor parse_jpeg(ByteSpan bytes, const ImageLimits& limits);

}  // namespace ricci::io
