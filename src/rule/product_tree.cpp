#include "rule/product_tree.h"

#include <algorithm>

#include "rule/derivative_parts.h"

namespace ricci::rule {

RunningLoop running_loop(Value x, Axis axis, bool exclusive, double identity,
                         const Combine& combine) {
  const Value rows = move_axis(x, axis.index(), 0);
  Type row = rows.type();
  row.dims.erase(row.dims.begin());
  const std::vector<Value> done = scan(std::array{filled(x.graph(), row, identity)}, {.xs = {rows}},
                                       [&](Graph&, std::span<const Value> in) {
                                         const Value next = combine(in[0], in[1]);
                                         return std::vector{next, exclusive ? in[0] : next};
                                       });
  Dims kept = x.dims();
  kept[axis.index()] = 1;
  return {move_axis(done[1], 0, axis.index()), reshape_to(done[0], std::move(kept))};
}

Value product_tree(const op::Reduce& op, Value x) {
  for (const Axis axis : op.axes) {
    if (!x.dims()[axis.index()].is_static()) {
      const auto times = [](Value so_far, Value next) { return so_far * next; };
      x = running_loop(x, axis, false, 1, times).last;
      continue;
    }
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
