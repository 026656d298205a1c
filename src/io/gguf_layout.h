// What the reader and the writer of GGUF share.
#pragma once

#include <cstdint>
#include <string_view>

namespace ricci::io {

inline constexpr std::uint32_t GgufMagic = 0x46554747;  // "GGUF"
inline constexpr std::uint32_t GgufArrayTag = 9;
inline constexpr std::uint32_t UsualGgufAlignment = 32;
inline constexpr std::string_view GgufAlignmentKey = "general.alignment";

}  // namespace ricci::io
