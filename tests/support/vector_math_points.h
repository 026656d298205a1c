// What the vector functions are measured against, and where.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ricci/op/elementwise.h"

namespace ricci::testing {

/// How far a function may be off, in units of the last place of the exact result; 0 means the
/// result is the reference's to the bit.
struct AccuracyBound {
  double f32;
  double f64;
};

struct UnaryRow {
  UnaryKind kind;
  AccuracyBound bound;
  double range;  ///< where it is interesting: ±range gets a third of the points
};
struct BinaryRow {
  BinaryKind kind;
  AccuracyBound bound;
};

[[nodiscard]] const std::vector<UnaryRow>& unary_rows();
[[nodiscard]] const std::vector<BinaryRow>& binary_rows();

/// The function itself, worked out in extended precision.
[[nodiscard]] long double exact_unary(UnaryKind kind, long double x);
[[nodiscard]] long double exact_binary(BinaryKind kind, long double a, long double b);

/// |got − exact| in units of the last place of T near `exact`; infinite where one of them is NaN or
/// overflowed and the other is not.
template <class T>
[[nodiscard]] double ulps(T got, long double exact);

/// Zeros, infinities, NaN, the smallest and largest numbers, and the points where a function
/// changes its form.
template <class T>
[[nodiscard]] const std::vector<T>& special_points();

/// `count` numbers: any bit pattern, ±range evenly, ±range by magnitude, and near one; the special
/// points first.
template <class T>
[[nodiscard]] std::vector<T> sample_points(double range, std::size_t count, std::uint64_t seed);

}  // namespace ricci::testing
