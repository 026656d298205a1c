// Derivatives and batching of pooling. Images are pooled one by one, so a batch is more images.
#include <algorithm>

#include "rule/derivative_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/jvp_rules.h"
#include "rule/tables/vjp_rules.h"
#include "rule/window_taps.h"

namespace ricci::rule {
namespace {

// The two directions of choosing maxima, with the windows of any pooling op.
template <class Op>
Value add_at_maxima(const Op& op, Value x, Value dy) {
  return max_pool2d_backward(
      x, dy, {.kernel_size = op.kernel_size, .stride = op.stride, .padding = op.padding});
}
template <class Op>
Value take_at_maxima(const Op& op, Value x, Value v) {
  return max_pool2d_select(
      x, v, {.kernel_size = op.kernel_size, .stride = op.stride, .padding = op.padding});
}

// What choosing by max sees when the op chooses by min.
Value as_for_max(const op::Pool& op, Value x) { return op.kind == ReduceKind::Min ? -x : x; }

// g / (size of the window), [CV-05] by the count inside the image when padding does not count.
Value divided_by_count(const op::Pool& op, Value g, const Type& x) {
  if (op.count_include_pad) {
    return g / (static_cast<double>(op.kernel_size[0]) * static_cast<double>(op.kernel_size[1]));
  }
  op::Pool count = op;
  count.kind = ReduceKind::Sum;
  return g / pool(filled(g.graph(), x.with({1, 1, x.dims[2], x.dims[3]}), 1), count);
}

// Windows side by side that leave nothing out but what is behind the last.
bool is_tiling(const op::Pool& op) {
  return op.stride == op.kernel_size && op.padding[0] == 0 && op.padding[1] == 0;
}

// g for every element of its window, where windows do not overlap.
Value repeated_in_windows(const op::Pool& op, Value g, const Dims& image) {
  const Dims& d = g.dims();
  const Dim height = op.kernel_size[0];
  const Dim width = op.kernel_size[1];
  const Value every = expand(reshape_to(g, {d[0], d[1], d[2], 1, d[3], 1}),
                             {.target_shape = {d[0], d[1], d[2], height, d[3], width}});
  const Value inside = reshape_to(every, {d[0], d[1], d[2] * height, d[3] * width});
  const Dims behind{0, 0, image[2] - d[2] * height, image[3] - d[3] * width};
  if (behind[2].is(0) && behind[3].is(0)) return inside;
  return pad(inside, zero_like(g), {.low = Dims(4, Dim(0)), .high = behind});
}

// What an element is given by the windows around it lies side by side where windows are 1 apart,
// and otherwise once zeros are between: windows of them are added up.
Value summed_around(const op::Pool& op, Value g, const Dims& image) {
  op::Pool around{.kind = ReduceKind::Sum, .kernel_size = op.kernel_size};
  Dims low(4, Dim(0));
  for (std::size_t direction = 0; direction < 2; ++direction) {
    const std::int64_t before = op.kernel_size[direction] - 1 - op.padding[direction];
    if (op.stride == HeightWidth{1, 1}) {
      around.padding[direction] = before;
      continue;
    }
    const std::size_t axis = 2 + direction;
    low[axis] = before;
    g = spread_apart(g, axis, op.stride[direction], image[axis] + Dim(op.padding[direction]));
  }
  if (op.stride != HeightWidth{1, 1}) {
    g = pad(g, zero_like(g), {.low = std::move(low), .high = Dims(4, Dim(0))});
  }
  return pool(g, around);
}

// Is there not much more padding around than there is image?
bool has_small_windows(const op::Pool& op, const Dims& image) {
  constexpr std::int64_t Small = 16;
  const auto fits = [&](std::size_t direction) {
    const auto size = image[2 + direction].try_value();
    return size && op.kernel_size[direction] <= std::max(Small, *size);
  };
  return fits(0) && fits(1);
}

// Adds g to every position of its window: the transpose of convolving with ones, and that where
// nothing simpler will do. Channels are images of their own here, so that their number need not be
// known.
Value spread_over_windows(const op::Pool& op, Value g, const Type& x) {
  if (is_tiling(op)) return repeated_in_windows(op, g, x.dims);
  if (has_small_windows(op, x.dims)) return summed_around(op, g, x.dims);
  const auto alone = [](const Dims& d) { return Dims{d[0] * d[1], 1, d[2], d[3]}; };
  const Dims kernel{1, 1, op.kernel_size[0], op.kernel_size[1]};
  const Value dx = conv2d_backward_input(
      reshape_to(g, alone(g.dims())), filled(g.graph(), g.type().with(kernel), 1),
      {.input_size = {x.dims[2], x.dims[3]}, .stride = op.stride, .padding = op.padding});
  return reshape_to(dx, x.dims);
}

// The product of windows along one axis: tap by tap, every stride-th element from there on.
// The padding is ones, and reaches as far as whole strides need.
Value multiply_windows(const op::Pool& op, Value x, std::size_t direction, const Dim& windows) {
  const std::size_t axis = 2 + direction;
  const Dim kernel = op.kernel_size[direction];
  const Dim stride = op.stride[direction];
  const Dim padding = op.padding[direction];
  const Dim reach = windows * stride;
  Dims low(4, Dim(0));
  Dims high(4, Dim(0));
  low[axis] = padding;
  high[axis] = reach + kernel - 1 - x.dims()[axis] - padding;
  const Value padded = pad(x, scalar_like(x, 1), {.low = low, .high = high});
  Dims pooled = x.dims();
  pooled[axis] = windows;
  Dims strides = pooled;
  strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(axis) + 1, stride);
  const auto at = [](std::size_t i) { return Axis(static_cast<std::int64_t>(i)); };
  const TapRange taps = taps_of_all(op, direction, x.dims()[axis], windows);
  Value product;
  for (std::int64_t tap = taps.first; tap < taps.last; ++tap) {
    const Value from = narrow(padded, {.axis = at(axis), .start = tap, .len = reach});
    const Value every =
        narrow(reshape_to(from, strides), {.axis = at(axis + 1), .start = 0, .len = 1});
    const Value factor = reshape_to(every, pooled);
    product = product.valid() ? product * factor : factor;
  }
  return product;
}

// Products written as multiplications: their derivatives divide by nothing, so zeros are exact.
Rewriting product_of_windows(const op::Pool& op, const Type& pooled) {
  return [op, dims = pooled.dims](Graph&, std::span<const Value> in) {
    const Value rows = multiply_windows(op, in[0], 1, dims[3]);
    return std::vector{multiply_windows(op, rows, 0, dims[2])};
  };
}

}  // namespace

// [CV-06]
Cotangents vjp(const op::Pool& op, const VjpContext& c) {
  const Value x = c[0];
  if (is_small_float(x.dtype()) && op.kind == ReduceKind::Mean) {
    return c.through([&](Graph&, std::span<const Value> in) {
      return std::vector{cast_to(pool(cast_to(in[0], DType::F32), op), in[0].dtype())};
    });
  }
  const Value g = c.cotangent();
  switch (op.kind) {
    case ReduceKind::Max:
    case ReduceKind::Min: return {add_at_maxima(op, as_for_max(op, x), g)};
    case ReduceKind::Sum: return {spread_over_windows(op, g, x.type())};
    case ReduceKind::Mean:
      return {spread_over_windows(op, divided_by_count(op, g, x.type()), x.type())};
    case ReduceKind::Prod: return c.through(product_of_windows(op, c.node().types[0]));
    case ReduceKind::Any:
    case ReduceKind::All:
    case ReduceKind::LogSumExp: break;
  }
  throw InternalError("windows are not pooled by this reduction");
}

Tangents jvp(const op::Pool& op, JvpContext& c) {
  const Value t = c.tangent(0);
  switch (op.kind) {
    case ReduceKind::Max:
    case ReduceKind::Min: return {take_at_maxima(op, as_for_max(op, c[0]), t)};
    case ReduceKind::Sum:
    case ReduceKind::Mean: return {pool(t, op)};
    case ReduceKind::Prod: return c.through(product_of_windows(op, c.node().types[0]));
    case ReduceKind::Any:
    case ReduceKind::All:
    case ReduceKind::LogSumExp: break;
  }
  throw InternalError("windows are not pooled by this reduction");
}

// Which element is chosen does not change under small steps of x, so x carries no derivative.
Cotangents vjp(const op::MaxPool2dBackward& op, const VjpContext& c) {
  Cotangents out = c.none();
  if (c.needs(1)) out[1] = take_at_maxima(op, c[0], c.cotangent());
  return out;
}
Cotangents vjp(const op::MaxPool2dSelect& op, const VjpContext& c) {
  Cotangents out = c.none();
  if (c.needs(1)) out[1] = add_at_maxima(op, c[0], c.cotangent());
  return out;
}

Tangents jvp(const op::MaxPool2dBackward& op, JvpContext& c) {
  if (!c.live(1)) return c.none();
  return {add_at_maxima(op, c[0], c.tangent(1))};
}
Tangents jvp(const op::MaxPool2dSelect& op, JvpContext& c) {
  if (!c.live(1)) return c.none();
  return {take_at_maxima(op, c[0], c.tangent(1))};
}

BatchedValues batch(const op::Pool& op, const VmapContext& c) {
  return {c.unfolded(pool(c.folded(0), op))};
}
BatchedValues batch(const op::MaxPool2dBackward& op, const VmapContext& c) {
  return {c.unfolded(max_pool2d_backward(c.folded(0), c.folded(1), op))};
}
BatchedValues batch(const op::MaxPool2dSelect& op, const VmapContext& c) {
  return {c.unfolded(max_pool2d_select(c.folded(0), c.folded(1), op))};
}

}  // namespace ricci::rule
