// Functions of two numbers, for everything that runs them element by element.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include "ricci/op/elementwise.h"

namespace ricci::rule {

/// f(a, b) of integers of `width` bits, before wrapping. UserError(attr) for a division by zero and
/// for a negative exponent; the caller knows the op and its place.
[[nodiscard]] std::int64_t eval_binary(BinaryKind kind, std::int64_t a, std::int64_t b,
                                       std::int64_t width);

/// a ? b; complex numbers are equal or not.
template <class N>
[[nodiscard]] bool compare_numbers(CompareKind kind, N a, N b) {
  if constexpr (std::is_same_v<N, std::complex<double>>) {
    return kind == CompareKind::Eq ? a == b : a != b;
  } else {
    switch (kind) {
      case CompareKind::Eq: return a == b;
      case CompareKind::Ne: return a != b;
      case CompareKind::Lt: return a < b;
      case CompareKind::Le: return a <= b;
      case CompareKind::Gt: return a > b;
      case CompareKind::Ge: return a >= b;
    }
    return false;
  }
}

}  // namespace ricci::rule
