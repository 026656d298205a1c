// Ops whose operands say which elements are read or written.
#include "ricci/op/indexing.h"

#include <algorithm>

#include "rule/tables/eval_rules.h"

namespace ricci::rule {
namespace {

// `index` with `count` entries from `at` on replaced by one.
StaticDims merge_axes(const StaticDims& index, std::size_t at, std::size_t count, std::int64_t by) {
  StaticDims out(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(at));
  out.push_back(by);
  out.insert(out.end(), index.begin() + static_cast<std::ptrdiff_t>(at + count), index.end());
  return out;
}

std::span<const std::int64_t> part(const StaticDims& index, std::size_t at, std::size_t count) {
  return std::span(index).subspan(at, count);
}

// Adds every element of operand 0 to the place `place(index)` of a zero result.
template <class F>
void give_scattered(EvalContext& c, const F& place) {
  with_number_class(c.dtype(0), [&]<class N>() {
    const Nd<N> updates = c.numbers<N>(0);
    Nd<N> out(c.result_dims(0));
    for_each_index(updates.dims, [&](const StaticDims& index) {
      N& sum = out.at(place(index));
      sum = add_wrapping(sum, updates.at(index));
    });
    c.give(0, out);
  });
}

template <class N>
N combined(ScatterKind kind, N there, N update, DType dtype) {
  switch (kind) {
    case ScatterKind::Add: return add_wrapping(there, update);
    case ScatterKind::Mul: return mul_wrapping(there, update);
    case ScatterKind::Max: return eval_binary(BinaryKind::Max, there, update, dtype);
    case ScatterKind::Min: return eval_binary(BinaryKind::Min, there, update, dtype);
    case ScatterKind::Set: break;
  }
  return update;
}

// The start of a slice of `len` elements, moved inside an axis of `size`.
std::int64_t clamped_start(const EvalContext& c, std::size_t k, std::int64_t size,
                           std::int64_t len) {
  return std::clamp<std::int64_t>(c.integers(k).data[0], 0, size - len);
}

}  // namespace

// out[o…, k…, t…] = table[o…, indices[k…], t…]
void eval(const op::Gather& op, EvalContext& c) {
  const std::size_t axis = op.axis.index();
  const IntNd indices = c.indices(1, c.dims(0)[axis]);
  const std::size_t rank = indices.dims.size();
  c.give_moved(0, [&](const StaticDims& index) -> EvalContext::Source {
    const std::int64_t picked = indices.at(part(index, axis, rank));
    return {0, flat_index(c.dims(0), merge_axes(index, axis, rank, picked))};
  });
}

// dtable[o…, indices[k…], t…] += dy[o…, k…, t…]
void eval(const op::GatherBackward& op, EvalContext& c) {
  const std::size_t axis = op.axis.index();
  const IntNd indices = c.indices(1, op.axis_size.value());
  const std::size_t rank = indices.dims.size();
  give_scattered(c, [&](const StaticDims& index) {
    return merge_axes(index, axis, rank, indices.at(part(index, axis, rank)));
  });
}

// out[indices[k…], t…] += updates[k…, t…]
void eval(const op::ScatterAdd& op, EvalContext& c) {
  const IntNd indices = c.indices(1, op.out_dim.value());
  const std::size_t rank = indices.dims.size();
  give_scattered(c, [&](const StaticDims& index) {
    return merge_axes(index, 0, rank, indices.at(part(index, 0, rank)));
  });
}

// out = x; out[indices[k…], t…] = kind(out[indices[k…], t…], updates[k…, t…]) for every k in order
void eval(const op::Scatter& op, EvalContext& c) {
  const IntNd indices = c.indices(2, c.dims(0)[0]);
  const std::size_t rank = indices.dims.size();
  with_number_class(c.dtype(0), [&]<class N>() {
    const Nd<N> updates = c.numbers<N>(1);
    Nd<N> out = c.numbers<N>(0);
    for_each_index(updates.dims, [&](const StaticDims& index) {
      N& there = out.at(merge_axes(index, 0, rank, indices.at(part(index, 0, rank))));
      there = combined(op.kind, there, updates.at(index), c.dtype(0));
    });
    c.give(0, out);
  });
}

// out[o…, k, t…] = x[o…, indices[o…, k, t…], t…]
void eval(const op::TakeAlongAxis& op, EvalContext& c) {
  const IntNd indices = c.indices(1, c.dims(0)[op.axis.index()]);
  c.give_moved(0, [&](const StaticDims& index) -> EvalContext::Source {
    StaticDims from = index;
    from[op.axis.index()] = indices.at(index);
    return {0, flat_index(c.dims(0), from)};
  });
}

// out[o…, indices[o…, k, t…], t…] += updates[o…, k, t…]
void eval(const op::ScatterAddAlongAxis& op, EvalContext& c) {
  const IntNd indices = c.indices(1, op.axis_size.value());
  give_scattered(c, [&](const StaticDims& index) {
    StaticDims to = index;
    to[op.axis.index()] = indices.at(index);
    return to;
  });
}

// out[…, i, …] = x[…, s + i, …], s = start clamped to [0, size - len]
void eval(const op::DynamicNarrow& op, EvalContext& c) {
  const std::size_t axis = op.axis.index();
  const std::int64_t start = clamped_start(c, 1, c.dims(0)[axis], op.len.value());
  c.give_moved(0, [&](const StaticDims& index) -> EvalContext::Source {
    StaticDims from = index;
    from[axis] += start;
    return {0, flat_index(c.dims(0), from)};
  });
}

// out = x, but out[…, s + i, …] = update[…, i, …]
void eval(const op::DynamicUpdate& op, EvalContext& c) {
  const std::size_t axis = op.axis.index();
  const std::int64_t len = c.dims(1)[axis];
  const std::int64_t start = clamped_start(c, 2, c.dims(0)[axis], len);
  c.give_moved(0, [&](const StaticDims& index) -> EvalContext::Source {
    StaticDims from = index;
    from[axis] -= start;
    if (from[axis] < 0 || from[axis] >= len) return {0, flat_index(c.dims(0), index)};
    return {1, flat_index(c.dims(1), from)};
  });
}

}  // namespace ricci::rule
