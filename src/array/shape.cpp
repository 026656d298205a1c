#include "ricci/array/shape.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/build/indexing.h"
#include "ricci/build/shape.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "array/node.h"
#include "support/machine_memory.h"

namespace ricci {

using detail::apply;

namespace {

std::size_t axis_in(const Array& x, std::int64_t axis, std::size_t rank, std::string_view what,
                    std::source_location where) {
  const auto a = normalized_axis(axis, rank);
  if (a) return static_cast<std::size_t>(*a);
  detail::refuse(ErrorCode::Attr, "shape",
                 fmt::format("'{}' of {}: there is no axis {}", what, x.type().to_string(), axis),
                 "", where);
}

// All arrays of a list with one dtype.
std::vector<Array> unified(const std::vector<Array>& arrays, std::string_view what,
                           std::source_location where) {
  std::vector<Array> out = arrays;
  for (std::size_t i = 1; i < out.size(); ++i) detail::unify(what, out[0], out[i], where);
  for (std::size_t i = 1; i < out.size(); ++i) detail::unify(what, out[0], out[i], where);
  return out;
}

}  // namespace

Array reshape(const Array& x, const Dims& shape, Here where) {
  return apply(Op(op::Reshape{.new_shape = shape}), {x}, where);
}

Array flatten(const Array& x, std::int64_t first, Here where) {
  if (x.rank() == 0) return reshape(x, {1}, where);
  const std::size_t from = axis_in(x, first, x.rank(), "flatten", where);
  Dims shape(x.shape().begin(), x.shape().begin() + static_cast<std::ptrdiff_t>(from));
  shape.push_back(product(std::span(x.shape()).subspan(from)));
  return reshape(x, shape, where);
}

Array transpose(const Array& x, const Axes& perm, Here where) {
  Axes order = perm;
  if (order.empty()) {
    for (std::size_t a = x.rank(); a-- > 0;) order.emplace_back(static_cast<std::int64_t>(a));
  }
  return apply(Op(op::Transpose{.perm = std::move(order)}), {x}, where);
}

Array swapaxes(const Array& x, std::int64_t a, std::int64_t b, Here where) {
  Axes perm;
  for (std::size_t k = 0; k < x.rank(); ++k) perm.emplace_back(static_cast<std::int64_t>(k));
  std::swap(perm[axis_in(x, a, x.rank(), "swapaxes", where)],
            perm[axis_in(x, b, x.rank(), "swapaxes", where)]);
  return transpose(x, perm, where);
}

Array moveaxis(const Array& x, std::int64_t from, std::int64_t to, Here where) {
  const std::size_t f = axis_in(x, from, x.rank(), "moveaxis", where);
  const std::size_t t = axis_in(x, to, x.rank(), "moveaxis", where);
  Axes perm;
  for (std::size_t k = 0; k < x.rank(); ++k) {
    if (k != f) perm.emplace_back(static_cast<std::int64_t>(k));
  }
  perm.insert(perm.begin() + static_cast<std::ptrdiff_t>(t), Axis(static_cast<std::int64_t>(f)));
  return transpose(x, perm, where);
}

Array squeeze(const Array& x, const AxisList& axes, Here where) {
  std::vector<bool> gone(x.rank(), false);
  for (std::size_t a = 0; a < x.rank(); ++a) gone[a] = axes.axes.empty() && x.shape()[a].is(1);
  for (const Axis a : axes.axes) {
    const std::size_t k = axis_in(x, a, x.rank(), "squeeze", where);
    if (!x.shape()[k].is(1)) {
      detail::refuse(
          ErrorCode::Shape, "shape",
          fmt::format("'squeeze' of axis {} of {}, which is not 1", a.value, x.type().to_string()),
          "", where);
    }
    gone[k] = true;
  }
  Dims shape;
  for (std::size_t a = 0; a < x.rank(); ++a) {
    if (!gone[a]) shape.push_back(x.shape()[a]);
  }
  return reshape(x, shape, where);
}

Array expand_dims(const Array& x, std::int64_t axis, Here where) {
  Dims shape = x.shape();
  const std::size_t a = axis_in(x, axis, x.rank() + 1, "expand_dims", where);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(a), Dim(1));
  return reshape(x, shape, where);
}
Array unsqueeze(const Array& x, std::int64_t axis, Here where) {
  return expand_dims(x, axis, where);
}

Array broadcast_to(const Array& x, const Dims& shape, Here where) {
  return apply(Op(op::Expand{.target_shape = shape}), {x}, where);
}

Array concat(const std::vector<Array>& arrays, std::int64_t axis, Here where) {
  return apply(Op(op::Concat{.axis = axis}), unified(arrays, "concat", where), where);
}
Array concatenate(const std::vector<Array>& arrays, std::int64_t axis, Here where) {
  return concat(arrays, axis, where);
}
Array stack(const std::vector<Array>& arrays, std::int64_t axis, Here where) {
  return detail::lift_all(unified(arrays, "stack", where), where,
                          [&](Graph&, std::span<const Value> v) {
                            return std::vector<Value>{ricci::stack(v, axis, where)};
                          })[0];
}

std::vector<Array> split(const Array& x, std::int64_t parts, std::int64_t axis, Here where) {
  const std::size_t a = axis_in(x, axis, x.rank(), "split", where);
  const auto each = parts > 0 ? Dim::divide(x.shape()[a], parts) : std::nullopt;
  if (!each) {
    detail::refuse(
        ErrorCode::Shape, "shape",
        fmt::format("'split' of axis {} of {} into {} parts", axis, x.type().to_string(), parts),
        "its size is a multiple of the number of parts", where);
  }
  require_memory(parts, detail::ArrayBytes, "the number of parts");
  std::vector<Array> out;
  for (std::int64_t i = 0; i < parts; ++i) out.push_back(narrow(x, axis, *each * i, *each, where));
  return out;
}

Array narrow(const Array& x, std::int64_t axis, const Dim& start, const Dim& len, Here where) {
  return apply(Op(op::Narrow{.axis = axis, .start = start, .len = len}), {x}, where);
}
Array tile(const Array& x, const std::vector<std::int64_t>& counts, Here where) {
  return detail::lift_one({x}, where, [&](auto v) { return ricci::tile(v[0], counts, where); });
}

Array repeat(const Array& x, std::int64_t count, std::int64_t axis, Here where) {
  const std::size_t a = axis_in(x, axis, x.rank(), "repeat", where);
  Dims shape = x.shape();
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(a) + 1, Dim(count));
  const Array wide = expand_dims(x, static_cast<std::int64_t>(a) + 1, where);
  Dims out = x.shape();
  out[a] = out[a] * Dim(count);
  return reshape(broadcast_to(wide, shape, where), out, where);
}

Array roll(const Array& x, std::int64_t shift, std::int64_t axis, Here where) {
  return detail::lift_one({x}, where,
                          [&](auto v) { return ricci::roll(v[0], shift, Axis(axis), where); });
}

Array flip(const Array& x, const AxisList& axes, Here where) {
  Axes all = axes.axes;
  if (all.empty()) {
    for (std::size_t a = 0; a < x.rank(); ++a) all.emplace_back(static_cast<std::int64_t>(a));
  }
  return apply(Op(op::Reverse{.axes = std::move(all)}), {x}, where);
}

Array pad(const Array& x, const std::vector<std::pair<Dim, Dim>>& amounts, const Array& value,
          Here where) {
  op::Pad op;
  for (const auto& [low, high] : amounts) {
    op.low.push_back(low);
    op.high.push_back(high);
  }
  Array a = x;
  Array fill = value;
  detail::unify("pad", a, fill, where);
  return apply(Op(std::move(op)), {a, fill}, where);
}

Array tril(const Array& x, std::int64_t k, Here where) {
  return detail::lift_one({x}, where, [&](auto v) { return ricci::tril(v[0], k, where); });
}
Array triu(const Array& x, std::int64_t k, Here where) {
  return detail::lift_one({x}, where, [&](auto v) { return ricci::triu(v[0], k, where); });
}
// Indices into an axis, counted from the start; the op says what is wrong with an axis.
static Array places_along(const Array& x, const Array& indices, std::int64_t axis, Here where) {
  detail::require_valid(x, "take", where);
  detail::require_valid(indices, "take", where);
  const auto a = normalized_axis(axis, x.rank());
  return a ? detail::from_start(indices, x.shape()[static_cast<std::size_t>(*a)], where) : indices;
}
Array take(const Array& x, const Array& indices, std::int64_t axis, Here where) {
  return apply(Op(op::Gather{.axis = axis}), {x, places_along(x, indices, axis, where)}, where);
}
Array take_along_axis(const Array& x, const Array& indices, std::int64_t axis, Here where) {
  return apply(Op(op::TakeAlongAxis{.axis = axis}), {x, places_along(x, indices, axis, where)},
               where);
}
Array one_hot(const Array& indices, std::int64_t depth, DType dtype, Here where) {
  return detail::lift_one({indices}, where, [&](auto v) {
    return ricci::one_hot(v[0], depth, {.axis = -1, .dtype = dtype}, where);
  });
}

}  // namespace ricci
