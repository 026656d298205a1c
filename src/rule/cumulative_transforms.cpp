// Derivatives and batching of running totals.
#include <limits>

#include "ricci/build/reduce.h"

#include "rule/derivative_parts.h"
#include "rule/product_tree.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/jvp_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

// Running products and extremes in binary steps, whose derivatives need no division and split ties.
Rewriting in_steps(const op::Cumulative& op) {
  return [op](Graph&, std::span<const Value> in) {
    constexpr double Inf = std::numeric_limits<double>::infinity();
    const auto steps = [&](double nothing, auto&& combine) {
      return std::vector{running(in[0], op.axis, op.exclusive, nothing, combine)};
    };
    switch (op.kind) {
      case CumulativeKind::Cumprod: return steps(1, [](Value a, Value b) { return mul(a, b); });
      case CumulativeKind::Cummax: return steps(-Inf, [](Value a, Value b) { return max(a, b); });
      case CumulativeKind::Cummin: return steps(Inf, [](Value a, Value b) { return min(a, b); });
      case CumulativeKind::Cumsum: break;
    }
    throw InternalError("cumsum is its own derivative");
  };
}

}  // namespace

Cotangents vjp(const op::Cumulative& op, const VjpContext& c) {
  switch (op.kind) {
    case CumulativeKind::Cumsum:
      return {cumsum_backward(c.cotangent(), {.axis = op.axis, .exclusive = op.exclusive})};
    case CumulativeKind::Cumprod:
    case CumulativeKind::Cummax:
    case CumulativeKind::Cummin: break;
  }
  return c.through(in_steps(op));
}

Tangents jvp(const op::Cumulative& op, JvpContext& c) {
  switch (op.kind) {
    case CumulativeKind::Cumsum:
      return {cumsum(c.tangent(0), {.axis = op.axis, .exclusive = op.exclusive})};
    case CumulativeKind::Cumprod:
    case CumulativeKind::Cummax:
    case CumulativeKind::Cummin: break;
  }
  return c.through(in_steps(op));
}

BatchedValues batch(const op::Cumulative& op, const VmapContext& c) {
  return {cumulative(op.kind, c[0], {.axis = shifted(op.axis), .exclusive = op.exclusive})};
}

Cotangents vjp(const op::CumsumBackward& op, const VjpContext& c) {
  return {cumsum(c.cotangent(), {.axis = op.axis, .exclusive = op.exclusive})};
}

BatchedValues batch(const op::CumsumBackward& op, const VmapContext& c) {
  return {cumsum_backward(c[0], {.axis = shifted(op.axis), .exclusive = op.exclusive})};
}

}  // namespace ricci::rule
