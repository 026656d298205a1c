// Ops that move elements: each says, for every index of the result, where the element comes from.
#include "ricci/op/shape.h"

#include <algorithm>

#include "rule/tables/eval_rules.h"

namespace ricci::rule {

void eval(const op::Reshape&, EvalContext& c) {
  const StaticDims dims = c.result_dims(0);
  c.give_moved(0, [&](const StaticDims& index) -> EvalContext::Source {
    return {0, flat_index(dims, index)};
  });
}

// out[i_0, …] = x[j_0, …] with j_perm[k] = i_k
void eval(const op::Transpose& op, EvalContext& c) {
  c.give_moved(0, [&](const StaticDims& index) -> EvalContext::Source {
    StaticDims from(index.size());
    for (std::size_t k = 0; k < index.size(); ++k) from[op.perm[k].index()] = index[k];
    return {0, flat_index(c.dims(0), from)};
  });
}

void eval(const op::Expand&, EvalContext& c) {
  c.give_moved(0, [&](const StaticDims& index) -> EvalContext::Source {
    return {0, flat_index(c.dims(0), index)};
  });
}

// out[…, i, …] = x[…, start + i, …]
void eval(const op::Narrow& op, EvalContext& c) {
  c.give_moved(0, [&](const StaticDims& index) -> EvalContext::Source {
    StaticDims from = index;
    from[op.axis.index()] += op.start.value();
    return {0, flat_index(c.dims(0), from)};
  });
}

// out[…, i, …] = x[…, i·stride, …]
void eval(const op::TakeEvery& op, EvalContext& c) {
  c.give_moved(0, [&](const StaticDims& index) -> EvalContext::Source {
    StaticDims from = index;
    from[op.axis.index()] *= op.stride;
    return {0, flat_index(c.dims(0), from)};
  });
}

// out[…, offset_k + i, …] = inputs[k][…, i, …]
void eval(const op::Concat& op, EvalContext& c) {
  const std::size_t axis = op.axis.index();
  std::vector<std::int64_t> ends;  // of the operands, along the axis
  for (std::size_t k = 0; k < c.operands(); ++k) {
    ends.push_back((k == 0 ? 0 : ends.back()) + c.dims(k)[axis]);
  }
  c.give_moved(0, [&](const StaticDims& index) -> EvalContext::Source {
    const auto k =
        static_cast<std::size_t>(std::ranges::upper_bound(ends, index[axis]) - ends.begin());
    StaticDims from = index;
    from[axis] -= k == 0 ? 0 : ends[k - 1];
    return {k, flat_index(c.dims(k), from)};
  });
}

// out[i] = x[j] with j_a = x.dim(a) - 1 - i_a for the listed axes
void eval(const op::Reverse& op, EvalContext& c) {
  c.give_moved(0, [&](const StaticDims& index) -> EvalContext::Source {
    StaticDims from = index;
    for (const Axis a : op.axes) from[a.index()] = c.dims(0)[a.index()] - 1 - index[a.index()];
    return {0, flat_index(c.dims(0), from)};
  });
}

// out[i] = x[i - low] where that is inside x, value elsewhere
void eval(const op::Pad& op, EvalContext& c) {
  c.give_moved(0, [&](const StaticDims& index) -> EvalContext::Source {
    StaticDims from = index;
    for (std::size_t a = 0; a < from.size(); ++a) {
      from[a] -= op.low[a].value();
      if (from[a] < 0 || from[a] >= c.dims(0)[a]) return {1, 0};
    }
    return {0, flat_index(c.dims(0), from)};
  });
}

}  // namespace ricci::rule
