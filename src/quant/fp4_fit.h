// FP4 values under a scale: codes, their error, and the best scale of 8 bits.
#pragma once

#include <cstdint>

#include "quant/fit.h"

namespace ricci::quant {

/// Σ w (x - scale·fp4)² with the nearest codes.
[[nodiscard]] double fp4_error(const Weighted& v, double scale);
void set_fp4_codes(const Weighted& v, double scale, std::uint8_t* codes);

/// The E4M3 code s, without its sign, for which codes under the scale unit·s have the least error.
[[nodiscard]] std::uint8_t best_e4m3_scale(const Weighted& v, double unit);

}  // namespace ricci::quant
