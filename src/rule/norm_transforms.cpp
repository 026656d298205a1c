// Reverse rules and batching of the normalisations.
#include <algorithm>

#include "ricci/op/norm.h"

#include "op/infer_rules.h"
#include "rule/derivative_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {

Cotangents vjp(const op::LayerNorm& op, const VjpContext& c) {
  return add_wanted(c.graph(), Op(op::LayerNormBackward{.axis = op.axis, .eps = op.eps}),
                    std::array{c[0], c[1], c.cotangent()}, c.needs());
}

Cotangents vjp(const op::RmsNorm& op, const VjpContext& c) {
  return add_wanted(c.graph(), Op(op::RmsNormBackward{.axis = op.axis, .eps = op.eps}),
                    std::array{c[0], c[1], c.cotangent()}, c.needs());
}

Cotangents vjp(const op::GroupNorm& op, const VjpContext& c) {
  return add_wanted(c.graph(),
                    Op(op::GroupNormBackward{.num_groups = op.num_groups, .eps = op.eps}),
                    std::array{c[0], c[1], c.cotangent()}, c.needs());
}

Cotangents vjp(const op::BatchNormInference& op, const VjpContext& c) {
  return add_wanted(c.graph(), Op(op::BatchNormInferenceBackward{.axis = op.axis, .eps = op.eps}),
                    std::array{c[0], c[1], c[3], c[4], c.cotangent()}, c.needs());
}

namespace {

// Operand k, a vector along `axis` of x, such that it broadcasts against the whole batch of x.
Value along_axis(const VmapContext& c, std::size_t k, std::size_t axis) {
  const std::size_t rank = c.type(0).rank();
  Dims dims(rank - axis, Dim(1));
  dims[0] = c.type(k).dims[0];
  if (c.batched(k)) {
    dims.insert(dims.begin(), axis, Dim(1));
    dims.insert(dims.begin(), c.batch());
  }
  return reshape_to(c[k], std::move(dims));
}

// A norm takes one γ and β for the whole batch. Those that differ between examples are 1 and 0
// there and applied afterwards, in the order and precision of the kernel.
struct SharedAffine {
  Value x;  // at least f32 when something follows
  Value gamma;
  Value beta;

  explicit SharedAffine(const VmapContext& c) : x(c[0]), gamma(c[1]), beta(c[2]) {
    if (!c.batched(1) && !c.batched(2)) return;
    const Type wide{at_least_f32(x.dtype()), c.type(1).dims};
    x = cast_to(x, wide.dtype);
    gamma = c.batched(1) ? filled(c.graph(), wide, 1) : cast_to(gamma, wide.dtype);
    beta = filled(c.graph(), wide, 0);
  }
};

// What is left to do after the norm itself. `y` has the batch in front when x has.
BatchedValues with_own_affine(const VmapContext& c, Value y, std::size_t axis) {
  if (!c.batched(1) && !c.batched(2)) return {y};
  if (c.batched(1)) y = y * cast_to(along_axis(c, 1, axis), y.dtype());
  y = y + cast_to(along_axis(c, 2, axis), y.dtype());
  return {cast_to(y, c.type(0).dtype)};
}

template <class O>
BatchedValues batch_along_axis(O op, const VmapContext& c) {
  const std::size_t axis = op.axis.index();
  if (c.batched(0)) op.axis = shifted(op.axis);
  const SharedAffine in(c);
  const Value y = c.emit(Op(op), std::array{in.x, in.gamma, in.beta})[0].value;
  return with_own_affine(c, y, axis);
}

}  // namespace

BatchedValues batch(const op::LayerNorm& op, const VmapContext& c) {
  return batch_along_axis(op, c);
}
BatchedValues batch(const op::RmsNorm& op, const VmapContext& c) { return batch_along_axis(op, c); }

// Examples of the batch are examples of the norm.
BatchedValues batch(const op::GroupNorm& op, const VmapContext& c) {
  SharedAffine in(c);
  if (c.batched(0)) {
    Dims dims = c.type(0).dims;
    dims[0] = c.batch() * dims[0];
    in.x = reshape_to(in.x, std::move(dims));
  }
  const Value y = c.emit(Op(op), std::array{in.x, in.gamma, in.beta})[0].value;
  return with_own_affine(c, c.batched(0) ? c.unfolded(y) : y, 1);
}

// With statistics of its own every example has channels of its own: [B, …, C, …] → […, B·C, …].
BatchedValues batch(const op::BatchNormInference& op, const VmapContext& c) {
  const std::vector<bool> batched = c.batched();
  if (std::find(batched.begin() + 1, batched.end(), true) == batched.end()) {
    return c.emit(Op(op::BatchNormInference{.axis = shifted(op.axis), .eps = op.eps}),
                  std::array{c[0], c[1], c[2], c[3], c[4]});
  }
  const std::size_t axis = op.axis.index();
  Dims folded = c.type(0).dims;
  folded[axis] = c.batch() * folded[axis];
  const Value x = reshape_to(move_axis(c.lifted(0), 0, axis), folded);
  const Value y =
      c.emit(Op(op), std::array{x, c.folded(1), c.folded(2), c.folded(3), c.folded(4)})[0].value;
  Dims apart = c.type(0).dims;
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis), c.batch());
  return {move_axis(reshape_to(y, std::move(apart)), axis, 0)};
}

}  // namespace ricci::rule
