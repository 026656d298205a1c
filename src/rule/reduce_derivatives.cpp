// Derivatives of reductions and of softmax.
#include "rule/derivative_parts.h"
#include "rule/product_tree.h"
#include "rule/tables/jvp_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

Dim count_of(const Dims& dims, const Axes& axes) {
  Dim n = 1;
  for (const Axis a : axes) n = n * dims[a.index()];
  return n;
}

Value total(Value x, const op::Reduce& like) {
  return reduce(x, {.op = ReduceKind::Sum, .axes = like.axes, .keep_dim = like.keep_dim});
}

// Where x is what max or min chose: equal to it, or both NaN.
Value chosen(Value x, Value spread_result) {
  const Value equal = eq(x, spread_result);
  const Value mine = is_nan(x);
  return logical_or(equal, logical_and(mine, is_nan(spread_result)));
}

// How many positions share each result of max or min; 1 where there is nothing to choose from.
Value sharers(Value mask, const op::Reduce& op, DType dtype) {
  return max(total(cast_to(mask, dtype), op), 1.0);
}

// Each element's part of Σ e^x. Shifted by the largest one, as the result may be so large that
// e^(x - result) has no digits left; a row of nothing but -inf gives zeros.
Value shares_of(Value x, const Axes& axes) {
  const Value largest = reduce(x, {.op = ReduceKind::Max, .axes = axes, .keep_dim = true});
  const Value shift = where(is_finite(largest), largest, zero_like(x));
  const Value parts = exp(x - stop_gradient(shift));
  const Value all = reduce(parts, {.op = ReduceKind::Sum, .axes = axes, .keep_dim = true});
  return parts / where(eq(all, zero_like(all)), scalar_like(all, 1), all);
}

}  // namespace

namespace {

// The same with its inner sums and counts in f32.
Rewriting in_f32(const op::Reduce& op) {
  return [op](Graph&, std::span<const Value> in) {
    return std::vector{cast_to(reduce(cast_to(in[0], DType::F32), op), in[0].dtype())};
  };
}

}  // namespace

Cotangents vjp(const op::Reduce& op, const VjpContext& c) {
  const Value x = c[0];
  if (is_small_float(x.dtype()) && op.op != ReduceKind::Sum) return c.through(in_f32(op));
  const Value g = c.cotangent();
  const auto over_x = [&](Value v) { return spread(v, op.axes, x.dims()); };
  switch (op.op) {
    case ReduceKind::Sum: return {over_x(g)};
    case ReduceKind::Mean: {
      const Value n = size_as_number(count_of(x.dims(), op.axes), g);
      return {over_x(g) / n};
    }
    case ReduceKind::Max:
    case ReduceKind::Min: {
      const Value mask = chosen(x, over_x(c.result()));
      const Value part = g / sharers(mask, op, g.dtype());  // [RD-01]
      const Value parts = over_x(part);
      return {where(mask, parts, zero_like(g))};  // [RD-02]
    }
    case ReduceKind::Prod:
      return c.through([&](Graph&, std::span<const Value> in) {
        return std::vector{product_tree(op, in[0])};  // [RD-04]
      });
    case ReduceKind::LogSumExp: return {over_x(g) * shares_of(x, op.axes)};
    case ReduceKind::Any:
    case ReduceKind::All: break;
  }
  return c.none();
}

Tangents jvp(const op::Reduce& op, JvpContext& c) {
  const Value x = c[0];
  if (is_small_float(x.dtype()) && op.op != ReduceKind::Sum) return c.through(in_f32(op));
  const Value t = c.tangent(0);
  const auto over_x = [&](Value v) { return spread(v, op.axes, x.dims()); };
  switch (op.op) {
    case ReduceKind::Sum: return {total(t, op)};
    case ReduceKind::Mean: {
      const Dim n = count_of(x.dims(), op.axes);
      if (n.is_static() && !n.is(0)) return {reduce(t, op)};
      // The mean of nothing is NaN, and nothing moves it.
      const Value count = size_as_number(n, t);
      return {total(t, op) / where(eq(count, 0.0), scalar_like(count, 1), count)};
    }
    case ReduceKind::Max:
    case ReduceKind::Min: {
      const Value mask = chosen(x, over_x(c.result()));
      const Value sum_chosen = total(where(mask, t, zero_like(t)), op);
      return {sum_chosen / sharers(mask, op, t.dtype())};  // [RD-03]
    }
    case ReduceKind::Prod:
      return c.through([&](Graph&, std::span<const Value> in) {
        return std::vector{product_tree(op, in[0])};  // [RD-05]
      });
    case ReduceKind::LogSumExp: return {total(shares_of(x, op.axes) * t, op)};
    case ReduceKind::Any:
    case ReduceKind::All: break;
  }
  return c.none();
}

namespace {

// The Jacobian of softmax is symmetric: y·(v - Σ y·v).
Value softmax_slope_times(Value y, Value v, Axis axis) {
  return y * (v - sum(y * v, {axis}, true));
}

}  // namespace

Cotangents vjp(const op::Softmax& op, const VjpContext& c) {
  return {softmax_slope_times(c.result(), c.cotangent(), op.axis)};
}

Tangents jvp(const op::Softmax& op, JvpContext& c) {
  return {softmax_slope_times(c.result(), c.tangent(0), op.axis)};
}

}  // namespace ricci::rule
