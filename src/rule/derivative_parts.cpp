#include "rule/derivative_parts.h"

#include <algorithm>

namespace ricci::rule {

Value unbroadcast(Value g, const Type& like) {
  const std::size_t extra = g.rank() - like.rank();
  Axes axes;
  for (std::size_t i = 0; i < g.rank(); ++i) {
    const bool repeated = i < extra || (like.dims[i - extra].is(1) && !g.dims()[i].is(1));
    if (repeated) axes.emplace_back(static_cast<std::int64_t>(i));
  }
  if (!axes.empty()) g = reduce(g, {.op = ReduceKind::Sum, .axes = axes, .keep_dim = true});
  return reshape_to(g, like.dims);
}

Value conj(Value v) { return is_complex(v.dtype()) ? conjugate(v) : v; }

Value sum_of(Value a, Value b) {
  if (!a.valid()) return b;
  if (!b.valid()) return a;
  return a + b;
}

Value size_as_number(const Dim& size, Value like) {
  if (const auto n = size.try_value()) return scalar_like(like, static_cast<double>(*n));
  const DType real = real_part_of(like.dtype());
  return cast_to(dim_size(like.graph(), {.dim = size, .dtype = real}), like.dtype());
}

Value spread(Value reduced, const Axes& axes, const Dims& dims) {
  if (reduced.rank() == 0) return broadcast_to(reduced, dims);
  Dims kept = dims;
  for (const Axis a : axes) kept[a.index()] = 1;
  return broadcast_to(reshape_to(reduced, std::move(kept)), dims);
}

std::vector<Value> add_wanted(Graph& graph, Op op, std::span<const Value> operands,
                              std::vector<bool> wanted) {
  NodeSpec spec{.op = std::move(op), .wanted = wanted};
  for (const Value& v : operands) spec.operands.push_back(v.id());
  const NodeId id = graph.add(std::move(spec));
  std::vector<Value> out(wanted.size());
  for (std::uint32_t r = 0; r < out.size(); ++r) {
    if (wanted[r]) out[r] = graph.value({id, r});
  }
  return out;
}

Value move_axis(Value v, std::size_t from, std::size_t to) {
  if (from == to) return v;
  Axes perm;
  for (std::size_t i = 0; i < v.rank(); ++i) {
    if (i != from) perm.emplace_back(static_cast<std::int64_t>(i));
  }
  perm.insert(perm.begin() + static_cast<std::ptrdiff_t>(to),
              Axis(static_cast<std::int64_t>(from)));
  return transpose(v, {.perm = perm});
}

Axes shifted(const Axes& axes) {
  Axes out;
  for (const Axis a : axes) out.push_back(shifted(a));
  return out;
}

Value spread_apart(Value v, std::size_t axis, std::int64_t stride, const Dim& size) {
  const auto padded = [](Value x, std::size_t at, const Dim& behind) {
    Dims high(x.rank(), Dim(0));
    high[at] = behind;
    return pad(x, zero_like(x), {.low = Dims(x.rank(), Dim(0)), .high = std::move(high)});
  };
  const Dim count = v.dims()[axis];
  // One element stays where it is, whatever the stride.
  if (count.is(1)) stride = 1;
  Value apart = v;
  if (stride > 1) {
    Dims dims = v.dims();
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Dim(1));
    apart = padded(reshape_to(v, dims), axis + 1, stride - 1);
    dims = v.dims();
    dims[axis] = count * Dim(stride);
    apart = reshape_to(apart, dims);
  }
  const Dim behind = size - count * Dim(stride);
  return behind.is(0) ? apart : padded(apart, axis, behind);
}

}  // namespace ricci::rule
