// The gradients of convolution, of max pooling and of gather, written in ops that are not
// gradients themselves.
#include "ricci/build/build.h"

#include "rule/derivative_parts.h"
#include "rule/tables/expand_rules.h"
#include "rule/window_taps.h"

namespace ricci::rule {
namespace {

Axis axis_at(std::size_t i) { return {static_cast<std::int64_t>(i)}; }

Dims with_dim(Dims dims, std::size_t axis, const Dim& size) {
  dims[axis] = size;
  return dims;
}

Value padded(Value x, std::size_t axis, const Dim& low, const Dim& high) {
  const Dims none(x.rank(), Dim(0));
  return pad(x, zero_like(x),
             {.low = with_dim(none, axis, low), .high = with_dim(none, axis, high)});
}

// [.., n, ..] → [.., n·stride, ..]: element i at i·stride, zeros between.
Value spread_apart(Value x, std::size_t axis, std::int64_t stride) {
  if (stride == 1) return x;
  Dims apart = x.dims();
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Dim(1));
  const Value each = padded(reshape_to(x, apart), axis + 1, 0, stride - 1);
  return reshape_to(each, with_dim(x.dims(), axis, x.dims()[axis] * Dim(stride)));
}

// Its transpose: `count` elements, one every `stride`, from `start` on.
Value every_nth(Value x, std::size_t axis, std::int64_t start, const Dim& count,
                std::int64_t stride) {
  const Value from = narrow(x, {.axis = axis_at(axis), .start = start, .len = count * Dim(stride)});
  const Dims picked = with_dim(x.dims(), axis, count);
  Dims apart = picked;
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Dim(stride));
  const Value first =
      narrow(reshape_to(from, apart), {.axis = axis_at(axis + 1), .start = 0, .len = 1});
  return reshape_to(first, picked);
}

// [a·b, …] with `groups` parts on an axis: that axis as [groups, rest].
Value split_groups(Value x, std::size_t axis, std::int64_t groups) {
  Dims dims = x.dims();
  dims[axis] = *Dim::divide(dims[axis], groups);
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), Dim(groups));
  return reshape_to(x, dims);
}
Value exchanged(Value x, std::size_t a, std::size_t b) {
  Axes perm;
  for (std::size_t i = 0; i < x.rank(); ++i) perm.push_back(axis_at(i));
  std::swap(perm[a], perm[b]);
  return transpose(x, {.perm = perm});
}
// Axes `axis` and the next one as one.
Value merge_axes(Value x, std::size_t axis) {
  Dims dims = x.dims();
  dims[axis] = dims[axis] * dims[axis + 1];
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
  return reshape_to(x, dims);
}

}  // namespace

// dx[a] = Σ_u dy'[a + p - u·d]·w[u], where dy' has dy's elements a stride apart: a convolution of
// dy', with zeros around it, with the kernel turned round and its channels exchanged.
std::vector<Value> expand(const op::Conv2dBackwardInput& op, const ExpandContext& c) {
  const Value w = c[1];
  Value image = c[0];
  for (std::size_t direction = 0; direction < op.stride.size(); ++direction) {
    const std::size_t axis = 2 + direction;
    const Dim reach = (w.dims()[axis] - Dim(1)) * Dim(op.dilation[direction]);
    image = padded(spread_apart(image, axis, op.stride[direction]), axis, reach, reach);
    image = narrow(image, {.axis = axis_at(axis),
                           .start = op.padding[direction],
                           .len = op.input_size[direction] + reach});
  }
  Value kernel = exchanged(split_groups(w, 0, op.groups), 1, 2);
  Axes mirrored;
  for (std::size_t a = 2; a < w.rank(); ++a) mirrored.push_back(axis_at(a));
  kernel = reverse(merge_axes(kernel, 0), {.axes = mirrored});
  return {conv(image, kernel, {.dilation = op.dilation, .groups = op.groups})};
}

// dw[u] = Σ_i x[i·s + u·d - p]·dy[i]: a convolution of x with dy, in which stride and dilation, and
// images and channels, have changed places.
std::vector<Value> expand(const op::Conv2dBackwardWeight& op, const ExpandContext& c) {
  const Value dy = c[1];
  Value image = c[0];
  for (std::size_t direction = 0; direction < op.stride.size(); ++direction) {
    const std::size_t axis = 2 + direction;
    image = padded(image, axis, op.padding[direction], op.padding[direction]);
    const Dim taps = (op.kernel_size[direction] - 1) * op.dilation[direction] + 1;
    const Dim steps = (dy.dims()[axis] - Dim(1)) * Dim(op.stride[direction]);
    image = narrow(image, {.axis = axis_at(axis), .start = 0, .len = steps + taps});
  }
  image = exchanged(split_groups(image, 1, op.groups), 0, 2);
  const Value dw = conv(merge_axes(image, 1), exchanged(dy, 0, 1),
                        {.stride = op.dilation, .dilation = op.stride, .groups = op.groups});
  return {exchanged(dw, 0, 1)};
}

namespace {

// The windows of pooling, tap by tap in row-major order, as far as taps see the image.
class Taps {
 public:
  Taps(const op::MaxPool2dBackward& op, Value x, Value dy)
      : op_(op),
        x_(x),
        windows_(dy.dims()),
        rows_(taps_of_all(op, 0, x.dims()[2], windows_[2])),
        columns_(taps_of_all(op, 1, x.dims()[3], windows_[3])) {}

  [[nodiscard]] std::int64_t count() const { return rows_.count() * columns_.count(); }
  // The element of every window that a tap sees, 0 outside of the image.
  [[nodiscard]] Value seen(Value image, std::int64_t tap) const {
    for (std::size_t direction = 0; direction < 2; ++direction) {
      const std::size_t axis = 2 + direction;
      image = padded(image, axis, op_.padding[direction], behind(direction));
      image = every_nth(image, axis, offset(tap, direction), windows_[axis], op_.stride[direction]);
    }
    return image;
  }
  // Its transpose: an image with v's elements where the tap sees them.
  [[nodiscard]] Value put_back(Value v, std::int64_t tap) const {
    for (std::size_t direction = 0; direction < 2; ++direction) {
      const std::size_t axis = 2 + direction;
      const std::int64_t start = offset(tap, direction);
      v = padded(spread_apart(v, axis, op_.stride[direction]), axis, start,
                 op_.kernel_size[direction] - 1 - start);
      v = narrow(v,
                 {.axis = axis_at(axis), .start = op_.padding[direction], .len = x_.dims()[axis]});
    }
    return v;
  }

 private:
  [[nodiscard]] std::int64_t offset(std::int64_t tap, std::size_t direction) const {
    return direction == 0 ? rows_.first + tap / columns_.count()
                          : columns_.first + tap % columns_.count();
  }
  // Zeros behind the image, as far as whole strides reach.
  [[nodiscard]] Dim behind(std::size_t direction) const {
    const std::size_t axis = 2 + direction;
    return windows_[axis] * Dim(op_.stride[direction]) + Dim(op_.kernel_size[direction] - 1) -
           x_.dims()[axis] - Dim(op_.padding[direction]);
  }

  const op::MaxPool2dBackward& op_;
  Value x_;
  Dims windows_;
  TapRange rows_;
  TapRange columns_;
};

}  // namespace

// Each window remembers which tap saw its first maximum; a NaN is before all others.
std::vector<Value> expand(const op::MaxPool2dBackward& op, const ExpandContext& c) {
  const Value x = c[0];
  const Value dy = c[1];
  const Taps taps(op, x, dy);
  const Value inside = filled(c.graph, {DType::I32, {1, 1, x.dims()[2], x.dims()[3]}}, 1);
  const auto is_nan = [](Value v) { return ne(v, v); };
  Value best = filled(c.graph, dy.type(), 0);
  Value chosen = filled(c.graph, {DType::I32, dy.dims()}, -1);
  for (std::int64_t tap = 0; tap < taps.count(); ++tap) {
    const Value here = taps.seen(x, tap);
    const Value exists = ne(taps.seen(inside, tap), zero_like(inside));
    const Value greater =
        logical_and(logical_not(is_nan(best)), logical_or(is_nan(here), gt(here, best)));
    const Value first = lt(chosen, zero_like(chosen));
    const Value better = logical_and(exists, logical_or(first, greater));
    best = where(better, here, best);
    chosen = where(better, scalar_like(chosen, static_cast<double>(tap)), chosen);
  }
  Value dx;
  for (std::int64_t tap = 0; tap < taps.count(); ++tap) {
    const Value picked = eq(chosen, scalar_like(chosen, static_cast<double>(tap)));
    const Value part = taps.put_back(where(picked, dy, zero_like(dy)), tap);
    dx = dx.valid() ? dx + part : part;
  }
  return {dx};
}

// Slices move to the front, are added up there, and the axis moves back to its place.
std::vector<Value> expand(const op::GatherBackward& op, const ExpandContext& c) {
  const Value dy = c[0];
  Value indices = c[1];
  const std::size_t axis = op.axis.index();
  const std::size_t picks = indices.rank();
  Axes to_front;
  for (std::size_t i = 0; i < picks; ++i) to_front.push_back(axis_at(axis + i));
  for (std::size_t i = 0; i < dy.rank(); ++i) {
    if (i < axis || i >= axis + picks) to_front.push_back(axis_at(i));
  }
  Value slices = transpose(dy, {.perm = to_front});
  if (picks == 0) {
    indices = reshape_to(indices, {1});
    Dims one{1};
    one.insert(one.end(), slices.dims().begin(), slices.dims().end());
    slices = reshape_to(slices, one);
  }
  const Value rows = scatter_add(slices, indices, {.out_dim = op.axis_size});
  Axes back;
  for (std::size_t i = 1; i <= axis; ++i) back.push_back(axis_at(i));
  back.push_back(axis_at(0));
  for (std::size_t i = axis + 1; i < rows.rank(); ++i) back.push_back(axis_at(i));
  return {transpose(rows, {.perm = back})};
}

}  // namespace ricci::rule
