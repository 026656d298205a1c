#include "ricci/array/math.h"

#include <cmath>

#include <fmt/format.h>

#include "ricci/array/ops.h"
#include "ricci/build/linalg.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "array/node.h"
#include "array/wide.h"
#include "support/float_environment.h"

namespace ricci {

using detail::apply;

namespace {

Array unary_at(UnaryKind kind, const Array& x, std::source_location where) {
  return apply(Op(op::Unary{kind}), {x}, where);
}
Array binary_at(BinaryKind kind, Array a, Array b, std::source_location where) {
  detail::unify(row(kind).name, a, b, where);
  return apply(Op(op::Binary{kind}), {std::move(a), std::move(b)}, where);
}
Array compare_at(CompareKind kind, Array a, Array b, std::source_location where) {
  detail::unify(row(kind).name, a, b, where);
  return apply(Op(op::Compare{kind}), {std::move(a), std::move(b)}, where);
}

// Powers are fast where programs know the exponent: a number of their own, as others may hold it.
Array power_at(Array a, Array b, std::source_location where) {
  detail::unify("pow", a, b, where);
  if (b.node()->kind == detail::ArrayNode::Kind::Number) {
    b = detail::number_array(b.node()->values[0]);
    b.node()->fixed = true;
  }
  return apply(Op(op::Binary{BinaryKind::Pow}), {std::move(a), std::move(b)}, where);
}

Array logic_at(BinaryKind kind, const Array& a, const Array& b, std::source_location where) {
  const auto truth = [&](const Array& x) {
    detail::require_valid(x, row(kind).name, where);
    return x.dtype() == DType::Bool ? x : compare_at(CompareKind::Ne, x, 0, where);
  };
  return binary_at(kind, truth(a), truth(b), where);
}

Array binary_named(BinaryKind kind, const Array& a, const Array& b, std::source_location where) {
  switch (kind) {
    case BinaryKind::Pow: return power_at(a, b, where);
    case BinaryKind::LogicalAnd:
    case BinaryKind::LogicalOr:
    case BinaryKind::LogicalXor: return logic_at(kind, a, b, where);
    default: return binary_at(kind, a, b, where);
  }
}

Axes axes_of(const Array& x, const AxisList& list) {
  if (!list.axes.empty()) return list.axes;
  Axes all;
  for (std::size_t a = 0; a < x.rank(); ++a) all.emplace_back(static_cast<std::int64_t>(a));
  return all;
}

Array reduce_at(ReduceKind kind, const Array& x, const AxisList& axes, bool keep,
                std::source_location where) {
  detail::require_valid(x, "reduce", where);
  const Array strong = detail::strengthened(x, where);
  return apply(Op(op::Reduce{.op = kind, .axes = axes_of(strong, axes), .keep_dim = keep}),
               {strong}, where);
}

// Integers and bools in a dtype that holds their mean.
Array as_float(const Array& x, std::source_location where) {
  detail::require_valid(x, "mean", where);
  return is_differentiable(x.dtype()) ? x : cast(x, DType::F32, where);
}

// How many elements each result of a reduction is made of.
double count_of(const Array& x, const AxisList& axes) {
  double n = 1;
  for (const Axis a : axes_of(x, axes)) n *= static_cast<double>(x.dim(a).value());
  return n;
}

}  // namespace

#define RICCI_UNARY(Kind, name)                            \
  Array name(const Array& x, std::source_location where) { \
    return unary_at(UnaryKind::Kind, x, where);            \
  }
#include "ricci/op/unary.def"
#define RICCI_BINARY(Kind, name)                                           \
  Array name(const Array& a, const Array& b, std::source_location where) { \
    return binary_named(BinaryKind::Kind, a, b, where);                    \
  }
#include "ricci/op/binary.def"
Array eq(const Array& a, const Array& b, std::source_location where) {
  return compare_at(CompareKind::Eq, a, b, where);
}
Array ne(const Array& a, const Array& b, std::source_location where) {
  return compare_at(CompareKind::Ne, a, b, where);
}
Array lt(const Array& a, const Array& b, std::source_location where) {
  return compare_at(CompareKind::Lt, a, b, where);
}
Array le(const Array& a, const Array& b, std::source_location where) {
  return compare_at(CompareKind::Le, a, b, where);
}
Array gt(const Array& a, const Array& b, std::source_location where) {
  return compare_at(CompareKind::Gt, a, b, where);
}
Array ge(const Array& a, const Array& b, std::source_location where) {
  return compare_at(CompareKind::Ge, a, b, where);
}

Array maximum(const Array& a, const Array& b, std::source_location where) {
  return max(a, b, where);
}
Array minimum(const Array& a, const Array& b, std::source_location where) {
  return min(a, b, where);
}
Array power(const Array& a, const Array& b, std::source_location where) { return pow(a, b, where); }
Array isnan(const Array& x, std::source_location where) { return is_nan(x, where); }
Array isfinite(const Array& x, std::source_location where) { return is_finite(x, where); }
Array isinf(const Array& x, std::source_location where) {
  return logical_not(logical_or(is_finite(x, where), is_nan(x, where), where), where);
}
Array clip(const Array& x, const Array& low, const Array& high, std::source_location where) {
  return min(max(x, low, where), high, where);
}

Array where(const Array& condition, const Array& a, const Array& b, std::source_location at) {
  Array x = a;
  Array y = b;
  detail::unify("where", x, y, at);
  return apply(Op(op::Where{}), {condition, std::move(x), std::move(y)}, at);
}

Array cast(const Array& x, DType dtype, std::source_location where) {
  detail::require_valid(x, "cast", where);
  if (x.node()->weak && x.node()->kind == detail::ArrayNode::Kind::Number) {
    return detail::strengthened(x, dtype, where);
  }
  if (!x.node()->weak && x.dtype() == dtype) return x;
  return apply(Op(op::Cast{.to = dtype}), {x}, where);
}
Array astype(const Array& x, DType dtype, std::source_location where) {
  return cast(x, dtype, where);
}
Array stop_gradient(const Array& x, std::source_location where) {
  return apply(Op(op::StopGradient{}), {x}, where);
}

Array sum(const Array& x, const AxisList& axes, bool keep_dims, std::source_location where) {
  detail::require_valid(x, "sum", where);
  const Array counted = x.dtype() == DType::Bool ? cast(x, DType::I32, where) : x;
  return reduce_at(ReduceKind::Sum, counted, axes, keep_dims, where);
}
Array mean(const Array& x, const AxisList& axes, bool keep_dims, std::source_location where) {
  return reduce_at(ReduceKind::Mean, as_float(x, where), axes, keep_dims, where);
}
Array prod(const Array& x, const AxisList& axes, bool keep_dims, std::source_location where) {
  return reduce_at(ReduceKind::Prod, x, axes, keep_dims, where);
}
Array amax(const Array& x, const AxisList& axes, bool keep_dims, std::source_location where) {
  return reduce_at(ReduceKind::Max, x, axes, keep_dims, where);
}
Array amin(const Array& x, const AxisList& axes, bool keep_dims, std::source_location where) {
  return reduce_at(ReduceKind::Min, x, axes, keep_dims, where);
}
Array max(const Array& x, std::source_location where) { return amax(x, {}, false, where); }
Array min(const Array& x, std::source_location where) { return amin(x, {}, false, where); }
Array any(const Array& x, const AxisList& axes, bool keep_dims, std::source_location where) {
  return cast(reduce_at(ReduceKind::Any, x, axes, keep_dims, where), DType::Bool, where);
}
Array all(const Array& x, const AxisList& axes, bool keep_dims, std::source_location where) {
  return cast(reduce_at(ReduceKind::All, x, axes, keep_dims, where), DType::Bool, where);
}
Array logsumexp(const Array& x, const AxisList& axes, bool keep_dims, std::source_location where) {
  return reduce_at(ReduceKind::LogSumExp, x, axes, keep_dims, where);
}

Array var(const Array& x, const AxisList& axes, bool keep_dims, std::int64_t ddof,
          std::source_location where) {
  const auto of = [&](const Array& real) {
    const Array centred = sub(real, mean(real, axes, true, where), where);
    const double n = count_of(real, axes);
    const Array total = sum(square(centred, where), axes, keep_dims, where);
    return div(total, n - static_cast<double>(ddof), where);
  };
  return detail::in_wide(where, of, as_float(x, where));
}
Array stddev(const Array& x, const AxisList& axes, bool keep_dims, std::int64_t ddof,
             std::source_location where) {
  const auto of = [&](const Array& real) {
    return sqrt(var(real, axes, keep_dims, ddof, where), where);
  };
  return detail::in_wide(where, of, as_float(x, where));
}
Array norm(const Array& x, const AxisList& axes, bool keep_dims, std::source_location where) {
  const auto of = [&](const Array& v) {
    const Array squares = sum(square(abs(v, where), where), axes, keep_dims, where);
    // The root's slope at 0 is none: both sides of `where` are kept away from it.
    const Array empty = eq(squares, 0, where);
    return ricci::where(empty, 0.0, sqrt(ricci::where(empty, 1.0, squares, where), where), where);
  };
  detail::require_valid(x, "norm", where);
  return detail::in_wide(where, of, x);
}

Array quantile(const Array& x, double q, std::optional<std::int64_t> axis, bool keep_dims,
               std::source_location where) {
  const DefaultFloatEnvironment floats;
  if (!(q >= 0 && q <= 1)) {
    throw UserError(ErrorCode::Attr, fmt::format("a quantile of {}: it is between 0 and 1", q));
  }
  const Array flat = axis ? as_float(x, where) : reshape(as_float(x, where), {-1}, where);
  const std::int64_t along = axis.value_or(0);
  const Array sorted = sort(flat, along, false, where);
  const double last = static_cast<double>(flat.dim(along).value() - 1);
  const double at = q * last;
  const double low = std::floor(at);
  const auto part = [&](double place) {
    return narrow(sorted, along, static_cast<std::int64_t>(place), 1, where);
  };
  const Array below = part(low);
  const Array above = part(std::min(low + 1, last));
  Array out = add(below, mul(sub(above, below, where), at - low, where), where);
  if (!keep_dims) return squeeze(out, along, where);
  return axis ? out : reshape(out, Dims(x.rank(), 1), where);
}
Array median(const Array& x, std::optional<std::int64_t> axis, bool keep_dims,
             std::source_location where) {
  return quantile(x, 0.5, axis, keep_dims, where);
}

Array argmax(const Array& x, std::int64_t axis, bool keep_dims, std::source_location where) {
  return apply(Op(op::ArgReduce{.kind = ArgKind::ArgMax, .axis = axis, .keep_dim = keep_dims}), {x},
               where);
}
Array argmin(const Array& x, std::int64_t axis, bool keep_dims, std::source_location where) {
  return apply(Op(op::ArgReduce{.kind = ArgKind::ArgMin, .axis = axis, .keep_dim = keep_dims}), {x},
               where);
}
Array sort(const Array& x, std::int64_t axis, bool descending, std::source_location where) {
  return apply(Op(op::Sort{.axis = axis, .descending = descending}), {x}, where);
}
Array argsort(const Array& x, std::int64_t axis, bool descending, std::source_location where) {
  return {detail::op_node(Op(op::Sort{.axis = axis, .descending = descending}), {x}, where), 1};
}
std::pair<Array, Array> topk(const Array& x, std::int64_t k, std::source_location where) {
  const auto node = detail::op_node(Op(op::TopK{.k = k}), {x}, where);
  return {Array(node, 0), Array(node, 1)};
}
Array cumsum(const Array& x, std::int64_t axis, std::source_location where) {
  return apply(Op(op::Cumulative{.kind = CumulativeKind::Cumsum, .axis = axis}), {x}, where);
}
Array cumprod(const Array& x, std::int64_t axis, std::source_location where) {
  return apply(Op(op::Cumulative{.kind = CumulativeKind::Cumprod, .axis = axis}), {x}, where);
}

Array solve(const Array& a, const Array& b, std::source_location where) {
  return detail::lift_one({a, b}, where, [&](auto v) { return ricci::solve(v[0], v[1], where); });
}
Array inv(const Array& a, std::source_location where) {
  return detail::lift_one({a}, where, [&](auto v) { return ricci::inv(v[0], where); });
}
Array det(const Array& a, std::source_location where) { return apply(Op(op::Det{}), {a}, where); }
Array cholesky(const Array& a, std::source_location where) {
  return apply(Op(op::Cholesky{}), {a}, where);
}
std::pair<Array, Array> eigh(const Array& a, std::source_location where) {
  const auto node = detail::op_node(Op(op::Eigh{}), {a}, where);
  return {Array(node, 0), Array(node, 1)};
}
Array trace(const Array& a, std::source_location where) {
  return detail::lift_one({a}, where, [&](auto v) { return ricci::trace(v[0], where); });
}

}  // namespace ricci
