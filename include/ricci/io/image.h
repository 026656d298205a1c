// Pictures: PNG and JPEG as arrays of bytes. Files from outside are not trusted: sizes are bounded
// before memory is taken, and what is malformed, cut short or not what it says gives
// UserError(file).
//
//   Tensor picture = io::read_image("photo.jpg", {.channels = 3});     // u8 [height, width, 3]
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ricci/type/tensor.h"

namespace ricci::io {

struct ImageLimits {
  std::int64_t max_file_bytes = std::int64_t{1} << 30;
  std::int64_t max_side = 65535;
  std::int64_t max_pixels = std::int64_t{1} << 26;
};

struct ImageOptions {
  int channels = 0;  ///< 1 (grey), 3, or 4 (with opacity); 0: as many as the file has
  ImageLimits limits = {};
};

/// Does this build read pictures (RICCI_IMAGES)? Otherwise the functions below are refused.
[[nodiscard]] bool reads_images() noexcept;

/// Which of the two formats they are in is seen by how the bytes begin. 16 bits a channel are
/// rounded to 8, palettes looked up.
[[nodiscard]] Tensor parse_image(std::span<const std::byte> bytes,
                                 const ImageOptions& options = {});
[[nodiscard]] Tensor read_image(const std::string& path, const ImageOptions& options = {});

}  // namespace ricci::io
