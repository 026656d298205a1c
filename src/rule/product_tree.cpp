#include "rule/product_tree.h"

#include <algorithm>

namespace ricci::rule {

Value product_tree(const op::Reduce& op, Value x) {
  for (const Axis axis : op.axes) {
    std::int64_t n = x.dims()[axis.index()].value();
    if (n == 0) {
      Type type = x.type();
      type.dims[axis.index()] = 1;
      x = filled(x.graph(), type, 1);
      continue;
    }
    const auto part = [&](std::int64_t start, std::int64_t len) {
      return narrow(x, {.axis = axis, .start = start, .len = len});
    };
    while (n > 1) {
      const std::int64_t half = n / 2;
      const Value paired = part(0, half) * part(half, half);
      const bool odd = n % 2 != 0;
      x = odd ? concat({paired, part(n - 1, 1)}, {.axis = axis}) : paired;
      n = half + (odd ? 1 : 0);
    }
  }
  Dims dims;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    const bool reduced =
        std::ranges::find(op.axes, Axis(static_cast<std::int64_t>(i))) != op.axes.end();
    if (op.keep_dim || !reduced) dims.push_back(x.dims()[i]);
  }
  return reshape_to(x, std::move(dims));
}

}  // namespace ricci::rule
