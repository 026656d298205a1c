// Floats of 4 and 8 bits as they are stored in weights: FP4 (E2M1), FP8 (E4M3 in its finite
// variant, and E5M2), and E8M0, a power of two. Like f16 they only store: a value is rounded once,
// to nearest even.
#pragma once

#include <cstdint>

namespace ricci::quant {

/// 0, 0.5, 1, 1.5, 2, 3, 4, 6 for the codes 0 to 7, their negatives for 8 to 15; higher bits of
/// `code` are ignored.
[[nodiscard]] float fp4_value(std::uint8_t code) noexcept;
/// 1 sign, 4 exponent (bias 7), 3 fraction bits. No infinity: the largest are ±448, 0x7F and 0xFF
/// are NaN.
[[nodiscard]] float fp8_e4m3_value(std::uint8_t code) noexcept;
/// 1 sign, 5 exponent (bias 15), 2 fraction bits, with infinities and NaN as in IEEE formats.
[[nodiscard]] float fp8_e5m2_value(std::uint8_t code) noexcept;
/// 2^(code - 127); 255 is NaN.
[[nodiscard]] float e8m0_value(std::uint8_t code) noexcept;

/// The nearest code. What is too large becomes the largest finite value of its sign, infinities
/// too where the format has none.
[[nodiscard]] std::uint8_t to_fp8_e4m3(float value) noexcept;
[[nodiscard]] std::uint8_t to_fp8_e5m2(float value) noexcept;
/// The same; FP4 has no NaN either, which becomes 0.
[[nodiscard]] std::uint8_t to_fp4(float value) noexcept;

}  // namespace ricci::quant
