// Comparing tensors in tests: tolerances belong to the dtype, in this one table.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/type/tensor.h"

namespace ricci::testing {

struct Tolerance {
  double relative = 0;
  double absolute = 0;
};
/// What two computations of one thing may differ by after a few roundings in a dtype.
[[nodiscard]] Tolerance tolerance(DType dtype);

/// Same type, and values within tolerance; NaN equals NaN, infinities equal themselves.
[[nodiscard]] ::testing::AssertionResult close(const Tensor& actual, const Tensor& expected,
                                               Tolerance t);
[[nodiscard]] inline ::testing::AssertionResult close(const Tensor& actual,
                                                      const Tensor& expected) {
  return close(actual, expected, tolerance(expected.dtype()));
}
/// Same type and same bits: -0.0 is not 0.0. Any NaN equals any NaN.
[[nodiscard]] ::testing::AssertionResult same(const Tensor& actual, const Tensor& expected);

/// The same bits, NaNs included.
template <class T>
[[nodiscard]] bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return std::ranges::equal(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
}

/// Deterministic numbers in [low, high), from a seed.
[[nodiscard]] std::vector<double> random_numbers(std::uint64_t seed, std::size_t count, double low,
                                                 double high);
/// Random values of a type: floats in [low, high], integers rounded down, bools fair.
[[nodiscard]] Tensor random_tensor(std::uint64_t seed, const Type& type, double low = -2,
                                   double high = 2);

}  // namespace ricci::testing
