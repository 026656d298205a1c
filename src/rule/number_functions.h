// Functions of numbers, for everything that runs ops element by element.
#pragma once

#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ricci/compiler/rule/nd.h"
#include "ricci/op/elementwise.h"

namespace ricci::rule {

/// f(x) of one number, before rounding or wrapping.
[[nodiscard]] double eval_unary(UnaryKind kind, double x);
[[nodiscard]] std::int64_t eval_unary(UnaryKind kind, std::int64_t x);
[[nodiscard]] std::complex<double> eval_unary(UnaryKind kind, std::complex<double> x);
/// The same of an element of a dtype.
template <class N>
[[nodiscard]] N eval_unary(UnaryKind kind, N x, DType dtype) {
  const N y = eval_unary(kind, x);
  // ~true is not a bool: flip the truth value instead.
  if (dtype == DType::Bool && kind == UnaryKind::BitwiseNot) return add_wrapping(y, N(2));
  return y;
}

[[nodiscard]] double eval_binary(BinaryKind kind, double a, double b);
/// a^b on the principal branch.
[[nodiscard]] std::complex<double> complex_power(std::complex<double> a, std::complex<double> b);
[[nodiscard]] std::complex<double> eval_binary(BinaryKind kind, std::complex<double> a,
                                               std::complex<double> b);

/// f(a, b) of integers of `width` bits, before wrapping. UserError(attr) for a division by zero and
/// for a negative exponent; the caller knows the op and its place.
[[nodiscard]] std::int64_t eval_binary(BinaryKind kind, std::int64_t a, std::int64_t b,
                                       std::int64_t width);

/// f(a, b) of elements of a dtype, in its class.
template <class N>
[[nodiscard]] N eval_binary(BinaryKind kind, N a, N b, DType dtype) {
  if constexpr (std::is_same_v<N, std::int64_t>) {
    return eval_binary(kind, a, b, size_of(dtype) * 8);
  } else {
    return eval_binary(kind, a, b);
  }
}

/// What the largest of no elements is; of the smallest, the other end.
template <class N>
[[nodiscard]] N extreme_of_nothing(DType dtype, bool largest) {
  if constexpr (std::is_floating_point_v<N>) {
    constexpr double Inf = std::numeric_limits<double>::infinity();
    return largest ? -Inf : Inf;
  } else if constexpr (std::is_same_v<N, std::int64_t>) {
    if (dtype == DType::Bool) return largest ? 0 : 1;
    return with_element_type(dtype, [&]<class T>() -> N {
      if constexpr (std::is_integral_v<T>) {
        return largest ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
      } else {
        return N{};
      }
    });
  } else {
    return N{};  // complex numbers have no order
  }
}

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
