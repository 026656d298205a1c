// Products written as trees of multiplications: their derivatives need no division, so they are
// exact where factors are zero, at any order, and the graph grows with the logarithm of the length.
#pragma once

#include "ricci/build/build.h"

namespace ricci::rule {

/// `reduce {op = prod}`; the reduced sizes must be known.
[[nodiscard]] Value product_tree(const op::Reduce& op, Value x);

/// A running combination along an axis in ⌈log₂ n⌉ steps: out[i] = f over x[j], j ≤ i (or j < i).
/// `identity` stands for nothing.
template <class F>
[[nodiscard]] Value running(Value x, Axis axis, bool exclusive, double identity, F&& combine) {
  const Dim& size = x.dims()[axis.index()];
  const std::int64_t n = size.value();
  // The value `by` places earlier; the identity where there is none.
  const auto earlier = [&](Value v, std::int64_t by) {
    Dims low(v.rank(), Dim(0));
    Dims high(v.rank(), Dim(0));
    low[axis.index()] = by;
    high[axis.index()] = -by;
    return pad(v, scalar_like(v, identity), {.low = low, .high = high});
  };
  if (exclusive && n > 0) x = earlier(x, 1);
  for (std::int64_t by = 1; by < n; by *= 2) x = combine(x, earlier(x, by));
  return x;
}

}  // namespace ricci::rule
