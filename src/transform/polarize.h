// Mixed derivatives from derivatives along lines.
#pragma once

#include <string>

#include "ricci/transform/transformed.h"

namespace ricci {

/// D^n f(x)[v₁, …, vₙ] of the only output, n = `levels` ≥ 1, with new inputs `dir_1`, …. By the
/// polarisation formula it is the mean, over the signs ε with εₙ = 1, of
///   ε₁·…·εₙ · cₙ(ε₁v₁ + … + εₙvₙ),
/// where cₙ(w) is the n-th Taylor coefficient of f(x + s·w): one Taylor sweep, batched over 2^(n-1)
/// directions. The directions are first scaled to one size, so that a small one does not drown in a
/// large one. For real values; n < 64.
[[nodiscard]] Transformed polarized(const Graph& forward, const std::string& wrt,
                                    std::size_t levels);

}  // namespace ricci
