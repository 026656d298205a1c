// Images as PNG files, without compression: what a viewer needs and nothing else.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace splats {

/// The bytes of a PNG of RGB pixels, row by row, 3 bytes each.
[[nodiscard]] std::string png_bytes(std::span<const std::uint8_t> rgb, std::uint32_t width,
                                    std::uint32_t height);

}  // namespace splats
