// Largest and smallest: a NaN is more extreme than any number.
#pragma once

#include <cmath>
#include <limits>

#include "backend/cpu/host/element.h"
#include "backend/cpu/host/simd.h"

namespace ricci::cpu {

/// The more extreme of `best` and `x`; `best` when they are equal, and a NaN when either is.
template <class N>
[[nodiscard]] RICCI_INLINE inline N more_extreme(N best, N x, bool largest) {
  if constexpr (ricci::detail::is_complex_type<N>) {
    return best;  // complex numbers have no order; no op asks for one
  } else {
    if constexpr (std::is_floating_point_v<N>) {
      if (x != x) return x;
    }
    return (largest ? x > best : x < best) ? x : best;
  }
}

/// What max (or min) of no elements of T is.
template <class T>
[[nodiscard]] Wide<T> extreme_of_nothing(bool largest) {
  if constexpr (is_any_float<T>) {
    constexpr double Inf = std::numeric_limits<double>::infinity();
    return largest ? -Inf : Inf;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<std::int64_t>(largest ? std::numeric_limits<T>::min()
                                             : std::numeric_limits<T>::max());
  } else {
    return {};
  }
}

}  // namespace ricci::cpu
