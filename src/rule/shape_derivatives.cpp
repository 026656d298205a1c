// Reverse rules of the ops that change shapes; their forward rules follow from linearity.
#include "rule/derivative_parts.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

Dims negated(const Dims& dims) {
  Dims out;
  for (const Dim& d : dims) out.push_back(Dim(0) - d);
  return out;
}

}  // namespace

Cotangents vjp(const op::Reshape&, const VjpContext& c) {
  return {reshape_to(c.cotangent(), c[0].dims())};
}

Cotangents vjp(const op::Transpose& op, const VjpContext& c) {
  Axes inverse(op.perm.size());
  for (std::size_t i = 0; i < op.perm.size(); ++i) {
    inverse[op.perm[i].index()] = static_cast<std::int64_t>(i);
  }
  return {transpose(c.cotangent(), {.perm = inverse})};
}

Cotangents vjp(const op::Expand&, const VjpContext& c) {
  return {unbroadcast(c.cotangent(), c[0].type())};
}

// zeros around g
Cotangents vjp(const op::Narrow& op, const VjpContext& c) {
  const Value g = c.cotangent();
  Dims low(g.rank(), Dim(0));
  Dims high(g.rank(), Dim(0));
  low[op.axis.index()] = op.start;
  high[op.axis.index()] = c[0].dims()[op.axis.index()] - op.start - op.len;
  return {pad(g, zero_like(g), {.low = low, .high = high})};
}

// g's elements a stride apart, zeros between and behind them
Cotangents vjp(const op::TakeEvery& op, const VjpContext& c) {
  const Value g = c.cotangent();
  const std::size_t axis = op.axis.index();
  return {spread_apart(g, axis, op.stride, c[0].dims()[axis])};
}

Cotangents vjp(const op::Concat& op, const VjpContext& c) {
  Cotangents out = c.none();
  Dim offset = 0;
  for (std::size_t k = 0; k < c.size(); ++k) {
    const Dim len = c[k].dims()[op.axis.index()];
    if (c.needs(k)) out[k] = narrow(c.cotangent(), {.axis = op.axis, .start = offset, .len = len});
    offset += len;
  }
  return out;
}

Cotangents vjp(const op::Reverse& op, const VjpContext& c) {
  return {reverse(c.cotangent(), {.axes = op.axes})};
}

// x gets back what lay inside, the value the sum of what lay around it
Cotangents vjp(const op::Pad& op, const VjpContext& c) {
  Cotangents out = c.none();
  const Value g = c.cotangent();
  if (c.needs(0)) {
    out[0] = pad(g, zero_like(g), {.low = negated(op.low), .high = negated(op.high)});
  }
  if (c.needs(1)) {
    const Value inside = filled(c.graph(), Type{DType::Bool, c[0].dims()}, 1);
    const Value outside = scalar_like(inside, 0);
    const Value mask = pad(inside, outside, {.low = op.low, .high = op.high});
    out[1] = sum(where(mask, zero_like(g), g));
  }
  return out;
}

}  // namespace ricci::rule
