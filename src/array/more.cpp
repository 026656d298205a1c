#include "ricci/array/more.h"

#include <cmath>
#include <limits>
#include <numbers>

#include <fmt/format.h>

#include "ricci/array/create.h"
#include "ricci/array/ops.h"
#include "ricci/build/elementwise.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "array/node.h"
#include "array/wide.h"

namespace ricci {

using detail::apply;

// Other names.
Array absolute(const Array& x, Here where) { return abs(x, where); }
Array negative(const Array& x, Here where) { return neg(x, where); }
Array multiply(const Array& a, const Array& b, Here where) { return mul(a, b, where); }
Array subtract(const Array& a, const Array& b, Here where) { return sub(a, b, where); }
Array divide(const Array& a, const Array& b, Here where) {
  Array x = a;
  Array y = b;
  detail::unify("div", x, y, where);
  if (!is_differentiable(x.dtype())) {
    detail::refuse(ErrorCode::DType, "integer_quotient",
                   fmt::format("'/' of {} and {}: libraries do not agree what that is",
                               a.type().to_string(), b.type().to_string()),
                   "floor_divide rounds down, trunc_divide towards 0; for a float cast one of "
                   "them: cast(x, DType::F32)",
                   where);
  }
  return div(x, y, where);
}
Array equal(const Array& a, const Array& b, Here where) { return eq(a, b, where); }
Array not_equal(const Array& a, const Array& b, Here where) { return ne(a, b, where); }
Array greater(const Array& a, const Array& b, Here where) { return gt(a, b, where); }
Array greater_equal(const Array& a, const Array& b, Here where) { return ge(a, b, where); }
Array less(const Array& a, const Array& b, Here where) { return lt(a, b, where); }
Array less_equal(const Array& a, const Array& b, Here where) { return le(a, b, where); }
Array arctan(const Array& x, Here where) { return atan(x, where); }
Array arcsin(const Array& x, Here where) { return asin(x, where); }
Array arccos(const Array& x, Here where) { return acos(x, where); }
Array arctan2(const Array& y, const Array& x, Here where) { return atan2(y, x, where); }
Array conj(const Array& x, Here where) { return is_complex(x.dtype()) ? conjugate(x, where) : x; }
Array real(const Array& x, Here where) {
  if (!is_complex(x.dtype())) return x;
  return detail::lift_one({x}, where, [&](auto v) { return ricci::real(v[0], where); });
}
Array swish(const Array& x, Here where) { return silu(x, where); }
Array cat(const std::vector<Array>& arrays, std::int64_t axis, Here where) {
  return concat(arrays, axis, where);
}
Array permute(const Array& x, const Axes& perm, Here where) { return transpose(x, perm, where); }
Array view(const Array& x, const Dims& shape, Here where) { return reshape(x, shape, where); }
Array ravel(const Array& x, Here where) { return reshape(x, {-1}, where); }
Array detach(const Array& x, Here where) { return stop_gradient(x, where); }
Array clamp(const Array& x, const Array& low, const Array& high, Here where) {
  return clip(x, low, high, where);
}
Array mm(const Array& a, const Array& b, Here where) { return matmul(a, b, where); }
Array bmm(const Array& a, const Array& b, Here where) { return matmul(a, b, where); }
Array mv(const Array& a, const Array& x, Here where) { return matvec(a, x, where); }

Array floor_divide(const Array& a, const Array& b, Here where) {
  Array x = a;
  Array y = b;
  detail::unify("floor_divide", x, y, where);
  if (is_float(x.dtype())) return floor(div(x, y, where), where);
  // div first, so that what is wrong with y is said of a division.
  const Array q = div(x, y, where);
  const Array rest = sub(x, mul(q, y, where), where);
  const Array below = ne(lt(rest, 0, where), lt(y, 0, where), where);
  return ricci::where(logical_and(ne(rest, 0, where), below, where), sub(q, 1, where), q, where);
}
Array trunc_divide(const Array& a, const Array& b, Here where) {
  Array x = a;
  Array y = b;
  detail::unify("trunc_divide", x, y, where);
  const Array q = div(x, y, where);
  if (!is_float(x.dtype())) return q;
  return ricci::where(lt(q, 0, where), ceil(q, where), floor(q, where), where);
}
Array fmod(const Array& a, const Array& b, Here where) { return rem(a, b, where); }
Array remainder(const Array& a, const Array& b, Here where) {
  Array x = a;
  Array y = b;
  detail::unify("remainder", x, y, where);
  const Array r = rem(x, y, where);
  // The op's is of the sign of a.
  const Array other =
      logical_and(ne(r, 0, where), ne(lt(r, 0, where), lt(y, 0, where), where), where);
  return ricci::where(other, add(r, y, where), r, where);
}
Array log10(const Array& x, Here where) {
  return mul(log(x, where), 1 / std::numbers::ln10, where);
}
Array logaddexp(const Array& a, const Array& b, Here where) {
  const Array high = max(a, b, where);
  const Array gap = neg(abs(sub(a, b, where), where), where);
  // Of two equal infinities the gap is NaN; there the higher is the answer.
  return ricci::where(is_nan(gap, where), add(a, b, where),
                      add(high, log1p(exp(gap, where), where), where), where);
}
Array leaky_relu(const Array& x, double slope, Here where) {
  return ricci::where(gt(x, 0, where), x, mul(x, slope, where), where);
}
Array relu6(const Array& x, Here where) { return min(relu(x, where), 6, where); }
Array lerp(const Array& a, const Array& b, const Array& t, Here where) {
  return add(a, mul(t, sub(b, a, where), where), where);
}
Array nan_to_num(const Array& x, double value, Here where) {
  detail::require_valid(x, "nan_to_num", where);
  if (!is_float(x.dtype())) return x;
  const double most = x.dtype() == DType::F64   ? std::numeric_limits<double>::max()
                      : x.dtype() == DType::F16 ? 65504.0
                      : x.dtype() == DType::BF16
                          ? 3.3895313892515355e38
                          : static_cast<double>(std::numeric_limits<float>::max());
  return ricci::where(is_nan(x, where), value, clip(x, -most, most, where), where);
}
Array isclose(const Array& a, const Array& b, double rtol, double atol, Here where) {
  Array x = a;
  Array y = b;
  detail::unify("isclose", x, y, where);
  if (!is_differentiable(x.dtype())) {
    x = cast(x, DType::F64, where);
    y = cast(y, DType::F64, where);
  }
  const Array near =
      le(abs(sub(x, y, where), where), add(mul(abs(y, where), rtol, where), atol, where), where);
  return logical_or(eq(x, y, where), logical_and(near, is_finite(abs(y, where), where), where),
                    where);
}
Array masked_fill(const Array& x, const Array& mask, const Array& value, Here where) {
  return ricci::where(mask, value, x, where);
}
bool allclose(const Array& a, const Array& b, double rtol, double atol, Here where) {
  return all(isclose(a, b, rtol, atol, where), {}, false, where).item(where) != 0;
}
bool array_equal(const Array& a, const Array& b, Here where) {
  return a.shape() == b.shape() && all(eq(a, b, where), {}, false, where).item(where) != 0;
}

Array average(const Array& x, const Array& weights, std::int64_t axis, Here where) {
  Array w = weights;
  if (w.rank() == 1 && x.rank() > 1) {
    Dims shape(x.rank(), 1);
    shape[static_cast<std::size_t>(normalized_axis(axis, x.rank()).value_or(0))] = w.dim(0);
    w = reshape(w, shape, where);
  }
  const Array spread = broadcast_to(w, x.shape(), where);
  const auto of = [&](const Array& v, const Array& weight) {
    return div(sum(mul(v, weight, where), axis, false, where), sum(weight, axis, false, where),
               where);
  };
  return detail::in_wide(where, of, x, spread);
}
Array count_nonzero(const Array& x, const AxisList& axes, bool keep_dims, Here where) {
  return sum(ne(x, 0, where), axes, keep_dims, where);
}
Array ptp(const Array& x, const AxisList& axes, bool keep_dims, Here where) {
  return sub(amax(x, axes, keep_dims, where), amin(x, axes, keep_dims, where), where);
}
Array nansum(const Array& x, const AxisList& axes, bool keep_dims, Here where) {
  return sum(ricci::where(is_nan(x, where), 0.0, x, where), axes, keep_dims, where);
}
Array nanmean(const Array& x, const AxisList& axes, bool keep_dims, Here where) {
  const auto of = [&](const Array& v) {
    const Array there = logical_not(is_nan(v, where), where);
    const Array count = cast(sum(there, axes, keep_dims, where), v.dtype(), where);
    return div(nansum(v, axes, keep_dims, where), count, where);
  };
  return detail::in_wide(where, of, x);
}
Array percentile(const Array& x, double q, std::optional<std::int64_t> axis, bool keep_dims,
                 Here where) {
  return quantile(x, q / 100, axis, keep_dims, where);
}
Array cummax(const Array& x, std::int64_t axis, Here where) {
  return apply(Op(op::Cumulative{.kind = CumulativeKind::Cummax, .axis = axis}), {x}, where);
}
Array cummin(const Array& x, std::int64_t axis, Here where) {
  return apply(Op(op::Cumulative{.kind = CumulativeKind::Cummin, .axis = axis}), {x}, where);
}
Array diff(const Array& x, std::int64_t n, std::int64_t axis, Here where) {
  Array out = x;
  for (std::int64_t i = 0; i < n; ++i) {
    const Dim rest = out.dim(axis) - Dim(1);
    out = sub(narrow(out, axis, 1, rest, where), narrow(out, axis, 0, rest, where), where);
  }
  return out;
}

}  // namespace ricci
