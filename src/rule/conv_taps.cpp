#include "rule/conv_taps.h"

#include <algorithm>

#include "ricci/op/conv.h"

#include "rule/derivative_parts.h"

namespace ricci::rule {
namespace {

constexpr std::size_t Depth = 2;  // the axis whose taps are taken one by one
constexpr Axis DepthAxis = 2;

HeightWidth behind_first(const HeightWidth& list) { return {list.begin() + 1, list.end()}; }

Dims without(Dims dims, std::size_t axis) {
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  return dims;
}

Value cut(Value v, std::size_t axis, std::int64_t start, std::int64_t len) {
  return narrow(v, {.axis = static_cast<std::int64_t>(axis), .start = start, .len = len});
}

// [N, C, n, rest…] → [N·n, C, rest…]
Value as_images(Value v) {
  const Value apart = move_axis(v, Depth, 1);
  Dims dims = without(apart.dims(), 1);
  dims[0] = v.dims()[0] * v.dims()[Depth];
  return reshape_to(apart, dims);
}
// The way back.
Value as_planes(Value v, const Dim& images, std::int64_t planes) {
  Dims dims = v.dims();
  dims[0] = images;
  dims.insert(dims.begin() + 1, Dim(planes));
  return move_axis(reshape_to(v, dims), 1, Depth);
}

// Zeros before and behind the planes.
Value placed(Value v, std::int64_t low, std::int64_t high) {
  Dims before(v.rank(), Dim(0));
  Dims after(v.rank(), Dim(0));
  before[Depth] = low;
  after[Depth] = high;
  return pad(v, zero_like(v), {.low = before, .high = after});
}

// The windows of the first axis that have a tap inside the image, and the planes it sees there.
struct Tap {
  std::int64_t index = 0;
  std::int64_t window = 0;  ///< first of `count`
  std::int64_t count = 0;
  std::int64_t plane = 0;  ///< first of as many, a stride apart
};

template <class Op>
std::vector<Tap> depth_taps(const Op& op, std::int64_t kernel, std::int64_t planes,
                            std::int64_t windows) {
  const std::int64_t stride = op.stride[0];
  std::vector<Tap> taps;
  for (std::int64_t u = 0; u < kernel; ++u) {
    const std::int64_t shift = u * op.dilation[0] - op.padding[0];  // plane = i·stride + shift
    const std::int64_t first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    const std::int64_t room = planes - 1 - shift;
    const std::int64_t last = room < 0 ? -1 : std::min(windows - 1, room / stride);
    if (first <= last) taps.push_back({u, first, last - first + 1, first * stride + shift});
  }
  return taps;
}

// The planes of x a tap sees, as images.
Value seen(Value x, const Tap& tap, std::int64_t stride) {
  const Value range = cut(x, Depth, tap.plane, (tap.count - 1) * stride + 1);
  return as_images(stride == 1 || tap.count == 1
                       ? range
                       : take_every(range, {.axis = DepthAxis, .stride = stride}));
}

Value kernel_at(Value w, const Tap& tap) {
  return reshape_to(cut(w, Depth, tap.index, 1), without(w.dims(), Depth));
}

Value zeros_or(Value sum, const Type& type, Graph& graph) {
  return sum.valid() ? sum : filled(graph, type, 0);
}

Value by_taps(const op::Conv& op, Value x, Value w, const Type& type) {
  const std::int64_t windows = type.dims[Depth].value();
  Value y;
  for (const Tap& tap : depth_taps(op, w.dims()[Depth].value(), x.dims()[Depth].value(), windows)) {
    const Value part = conv(seen(x, tap, op.stride[0]), kernel_at(w, tap),
                            {.stride = behind_first(op.stride),
                             .padding = behind_first(op.padding),
                             .dilation = behind_first(op.dilation),
                             .groups = op.groups});
    const Value planes = as_planes(part, x.dims()[0], tap.count);
    y = sum_of(y, placed(planes, tap.window, windows - tap.window - tap.count));
  }
  return zeros_or(y, type.with(x.dtype()), x.graph());
}

Value by_taps(const op::Conv2dBackwardInput& op, Value dy, Value w, const Type& type) {
  const std::int64_t planes = type.dims[Depth].value();
  const Dims rest(op.input_size.begin() + 1, op.input_size.end());
  Value dx;
  for (const Tap& tap : depth_taps(op, w.dims()[Depth].value(), planes, dy.dims()[Depth].value())) {
    const Value part =
        conv2d_backward_input(as_images(cut(dy, Depth, tap.window, tap.count)), kernel_at(w, tap),
                              {.input_size = rest,
                               .stride = behind_first(op.stride),
                               .padding = behind_first(op.padding),
                               .dilation = behind_first(op.dilation),
                               .groups = op.groups});
    const std::int64_t reach = (tap.count - 1) * op.stride[0] + 1;
    const Value apart =
        spread_apart(as_planes(part, dy.dims()[0], tap.count), Depth, op.stride[0], reach);
    dx = sum_of(dx, placed(apart, tap.plane, planes - tap.plane - reach));
  }
  return zeros_or(dx, type.with(dy.dtype()), dy.graph());
}

Value by_taps(const op::Conv2dBackwardWeight& op, Value x, Value dy, const Type& type) {
  Dims one = type.dims;
  one[Depth] = 1;
  const Value nothing = filled(x.graph(), {x.dtype(), one}, 0);
  std::vector<Value> parts(static_cast<std::size_t>(op.kernel_size[0]), nothing);
  for (const Tap& tap :
       depth_taps(op, op.kernel_size[0], x.dims()[Depth].value(), dy.dims()[Depth].value())) {
    const Value part = conv2d_backward_weight(seen(x, tap, op.stride[0]),
                                              as_images(cut(dy, Depth, tap.window, tap.count)),
                                              {.kernel_size = behind_first(op.kernel_size),
                                               .stride = behind_first(op.stride),
                                               .padding = behind_first(op.padding),
                                               .dilation = behind_first(op.dilation),
                                               .groups = op.groups});
    parts[static_cast<std::size_t>(tap.index)] = reshape_to(part, one);
  }
  return concat(parts, {.axis = DepthAxis});
}

template <class Op>
std::optional<std::vector<Value>> if_deep(const Node& node, std::span<const Value> operands) {
  const auto* op = node.op.as<Op>();
  if (op == nullptr || operands[0].rank() <= 4) return std::nullopt;
  const Type& type = node.types[0];
  // The sum over taps is rounded once.
  const DType wide = widened(type.dtype);
  const Value out = by_taps(*op, cast_to(operands[0], wide), cast_to(operands[1], wide), type);
  return std::vector{cast_to(out, type.dtype)};
}

}  // namespace

bool is_by_taps(const Node& node) {
  const bool is_conv = node.op.is<op::Conv>() || node.op.is<op::Conv2dBackwardInput>() ||
                       node.op.is<op::Conv2dBackwardWeight>();
  return is_conv && node.types[0].rank() > 4;
}

std::optional<std::vector<Value>> convolution_by_taps(const Node& node,
                                                      std::span<const Value> operands) {
  if (auto y = if_deep<op::Conv>(node, operands)) return y;
  if (auto dx = if_deep<op::Conv2dBackwardInput>(node, operands)) return dx;
  return if_deep<op::Conv2dBackwardWeight>(node, operands);
}

}  // namespace ricci::rule
