// Products written as trees of multiplications: their derivatives need no division, so they are
// exact where factors are zero, at any order, and the graph grows with the logarithm of the length.
#pragma once

#include <functional>

#include "ricci/build/build.h"

namespace ricci::rule {

/// `reduce {op = prod}`. Over an axis whose size is not known yet it is a loop.
[[nodiscard]] Value product_tree(const op::Reduce& op, Value x);

using Combine = std::function<Value(Value so_far, Value next)>;
/// A running combination along an axis as a loop, for sizes that are not known yet: the values of
/// every step, and the last one (with size 1 along the axis).
struct RunningLoop {
  Value every;
  Value last;
};
[[nodiscard]] RunningLoop running_loop(Value x, Axis axis, bool exclusive, double identity,
                                       const Combine& combine);

/// A running combination along an axis in ⌈log₂ n⌉ steps: out[i] = f over x[j], j ≤ i (or j < i).
/// `identity` stands for nothing.
template <class F>
[[nodiscard]] Value running(Value x, Axis axis, bool exclusive, double identity, F&& combine) {
  const Dim& size = x.dims()[axis.index()];
  if (!size.is_static()) return running_loop(x, axis, exclusive, identity, combine).every;
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
