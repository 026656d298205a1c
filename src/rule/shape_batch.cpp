// Batching of the ops that change shapes: the batch is one more axis in front.
#include "rule/derivative_parts.h"
#include "rule/tables/batch_rules.h"

namespace ricci::rule {
namespace {

BatchedValues emit(Op op, const VmapContext& c, Value x) {
  return c.emit(std::move(op), std::array{x});
}

Dims with_zero_in_front(const Dims& dims) {
  Dims out{Dim(0)};
  out.insert(out.end(), dims.begin(), dims.end());
  return out;
}

}  // namespace

BatchedValues batch(const op::Reshape&, const VmapContext& c) {
  return {reshape_to(c[0], c.with_batch(c.node().types[0].dims))};
}

BatchedValues batch(const op::Transpose& op, const VmapContext& c) {
  Axes perm = shifted(op.perm);
  perm.insert(perm.begin(), Axis(0));
  return emit(Op(op::Transpose{.perm = perm}), c, c[0]);
}

// [SH-05] sizes 1 go between the batch and the example's axes
BatchedValues batch(const op::Expand&, const VmapContext& c) {
  const Dims& target = c.node().types[0].dims;
  return {broadcast_to(c.aligned(0, target.size()), c.with_batch(target))};
}

BatchedValues batch(const op::Narrow& op, const VmapContext& c) {
  return emit(Op(op::Narrow{.axis = shifted(op.axis), .start = op.start, .len = op.len}), c, c[0]);
}

BatchedValues batch(const op::TakeEvery& op, const VmapContext& c) {
  return emit(Op(op::TakeEvery{.axis = shifted(op.axis), .stride = op.stride}), c, c[0]);
}

BatchedValues batch(const op::Concat& op, const VmapContext& c) {
  std::vector<Value> operands;
  for (std::size_t k = 0; k < c.size(); ++k) operands.push_back(c.lifted(k));
  return c.emit(Op(op::Concat{.axis = shifted(op.axis)}), operands);
}

BatchedValues batch(const op::Reverse& op, const VmapContext& c) {
  return emit(Op(op::Reverse{.axes = shifted(op.axes)}), c, c[0]);
}

BatchedValues batch(const op::Pad& op, const VmapContext& c) {
  const op::Pad wide{.low = with_zero_in_front(op.low), .high = with_zero_in_front(op.high)};
  if (!c.batched(1)) return c.emit(Op(wide), std::array{c[0], c[1]});
  // A value per example: pad x with anything, then put the value where the padding is.
  const Value x = c.lifted(0);
  const Value padded = pad(x, zero_like(x), wide);
  const Value inside = filled(c.graph(), Type{DType::Bool, c.type(0).dims}, 1);
  const Value mask = pad(inside, scalar_like(inside, 0), op);
  return {where(mask, padded, c.aligned(1, c.node().types[0].rank()))};
}

}  // namespace ricci::rule
