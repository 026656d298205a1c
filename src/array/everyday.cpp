#include "ricci/array/everyday.h"

#include <cmath>
#include <numbers>

#include "ricci/array/create.h"
#include "ricci/array/ops.h"

#include "array/node.h"
#include "array/wide.h"
#include "support/float_environment.h"

namespace ricci {

Array cbrt(const Array& x, Here where) {
  return mul(sign(x, where), pow(abs(x, where), 1.0 / 3.0, where), where);
}
Array signbit(const Array& x, Here where) {
  // The quotient tells the zeros apart.
  return lt(ricci::where(eq(x, 0, where), reciprocal(x, where), x, where), 0, where);
}
Array copysign(const Array& a, const Array& b, Here where) {
  const Array size = abs(a, where);
  return ricci::where(signbit(b, where), neg(size, where), size, where);
}
Array deg2rad(const Array& x, Here where) { return mul(x, std::numbers::pi / 180, where); }
Array rad2deg(const Array& x, Here where) { return mul(x, 180 / std::numbers::pi, where); }
Array frac(const Array& x, Here where) { return sub(x, trunc(x, where), where); }
Array heaviside(const Array& x, const Array& at_zero, Here where) {
  const Array step =
      ricci::where(eq(x, 0, where), at_zero, cast(gt(x, 0, where), x.dtype(), where), where);
  return ricci::where(is_nan(x, where), x, step, where);
}
Array fmax(const Array& a, const Array& b, Here where) {
  return ricci::where(is_nan(a, where), b,
                      ricci::where(is_nan(b, where), a, max(a, b, where), where), where);
}
Array fmin(const Array& a, const Array& b, Here where) {
  return ricci::where(is_nan(a, where), b,
                      ricci::where(is_nan(b, where), a, min(a, b, where), where), where);
}
Array isposinf(const Array& x, Here where) {
  return logical_and(isinf(x, where), gt(x, 0, where), where);
}
Array isneginf(const Array& x, Here where) {
  return logical_and(isinf(x, where), lt(x, 0, where), where);
}
Array logit(const Array& p, Here where) {
  return sub(log(p, where), log1p(neg(p, where), where), where);
}
Array sinc(const Array& x, Here where) {
  // Near 0 the quotient is seen at another place, so that its derivative is a number.
  const Array t = mul(x, std::numbers::pi, where);
  const Array zero = eq(t, 0, where);
  const Array safe = ricci::where(zero, 1.0, t, where);
  return ricci::where(zero, 1.0, div(sin(safe, where), safe, where), where);
}
Array xlogy(const Array& x, const Array& y, Here where) {
  const Array nothing = eq(x, 0, where);
  const Array product = mul(x, log(ricci::where(nothing, 1.0, y, where), where), where);
  return ricci::where(is_nan(y, where), y, product, where);
}
Array polyval(const Array& coefficients, const Array& x, Here where) {
  Array out = zeros_like(x, where);
  const std::int64_t count = coefficients.dim(0).value();
  for (std::int64_t i = 0; i < count; ++i) {
    out = add(mul(out, x, where), take(coefficients, i, 0, where), where);
  }
  return out;
}

namespace {

// An extreme of what is no NaN; NaN where there is nothing else.
Array extreme(const Array& x, const AxisList& axes, bool keep_dims, bool largest, Here where) {
  if (!is_float(x.dtype())) {
    return largest ? amax(x, axes, keep_dims, where) : amin(x, axes, keep_dims, where);
  }
  const double nothing = largest ? -INFINITY : INFINITY;
  const Array gap = is_nan(x, where);
  const Array filled = ricci::where(gap, nothing, x, where);
  const Array found =
      largest ? amax(filled, axes, keep_dims, where) : amin(filled, axes, keep_dims, where);
  return ricci::where(all(gap, axes, keep_dims, where), NAN, found, where);
}

}  // namespace

Array nanmax(const Array& x, const AxisList& axes, bool keep_dims, Here where) {
  return extreme(x, axes, keep_dims, true, where);
}
Array nanmin(const Array& x, const AxisList& axes, bool keep_dims, Here where) {
  return extreme(x, axes, keep_dims, false, where);
}
Array nanvar(const Array& x, const AxisList& axes, bool keep_dims, Here where) {
  const auto of = [&](const Array& v) {
    const Array centred = sub(v, nanmean(v, axes, true, where), where);
    return nanmean(square(centred, where), axes, keep_dims, where);
  };
  return detail::in_wide(where, of, x);
}
Array nanstd(const Array& x, const AxisList& axes, bool keep_dims, Here where) {
  const auto of = [&](const Array& v) { return sqrt(nanvar(v, axes, keep_dims, where), where); };
  return detail::in_wide(where, of, x);
}
std::pair<Array, Array> aminmax(const Array& x, const AxisList& axes, bool keep_dims, Here where) {
  return {amin(x, axes, keep_dims, where), amax(x, axes, keep_dims, where)};
}
Array logmeanexp(const Array& x, const AxisList& axes, bool keep_dims, Here where) {
  const DefaultFloatEnvironment floats;
  const auto of = [&](const Array& v) {
    const Array total = logsumexp(v, axes, keep_dims, where);
    const double count = static_cast<double>(v.size()) / static_cast<double>(total.size());
    return sub(total, std::log(count), where);
  };
  return detail::in_wide(where, of, x);
}
Array trapezoid(const Array& y, double dx, std::int64_t axis, Here where) {
  const Dim rest = y.dim(axis) - Dim(1);
  const auto of = [&](const Array& v) {
    const Array pairs =
        add(narrow(v, axis, 1, rest, where), narrow(v, axis, 0, rest, where), where);
    return mul(sum(pairs, axis, false, where), dx / 2, where);
  };
  return detail::in_wide(where, of, y);
}
Array cov(const Array& x, Here where) {
  const auto of = [&](const Array& rows) {
    const Array centred = sub(rows, mean(rows, 1, true, where), where);
    const Array products = matmul(centred, conj(transpose(centred, {}, where), where), where);
    return div(products, static_cast<double>(rows.dim(1).value() - 1), where);
  };
  const Array out = detail::in_wide(where, of, atleast_2d(x, where));
  return x.rank() < 2 ? reshape(out, {}, where) : out;
}
Array corrcoef(const Array& x, Here where) {
  const auto of = [&](const Array& v) {
    const Array c = cov(v, where);
    if (c.rank() == 0) return div(c, c, where);
    const Array deviations = sqrt(diagonal(c, 0, where), where);
    return div(div(c, expand_dims(deviations, 1, where), where), deviations, where);
  };
  return detail::in_wide(where, of, x);
}

Array atleast_1d(const Array& x, Here where) { return x.rank() < 1 ? reshape(x, {1}, where) : x; }
Array atleast_2d(const Array& x, Here where) {
  return x.rank() < 2 ? expand_dims(atleast_1d(x, where), 0, where) : x;
}
Array atleast_3d(const Array& x, Here where) {
  return x.rank() < 3 ? expand_dims(atleast_2d(x, where), -1, where) : x;
}
std::vector<Array> broadcast_arrays(const std::vector<Array>& arrays, Here where) {
  if (arrays.empty()) return {};
  Array all = zeros_like(arrays[0], where);
  for (const Array& x : arrays) {
    all = logical_or(ne(all, 0, where), ne(zeros_like(x, where), 0, where), where);
  }
  std::vector<Array> out;
  for (const Array& x : arrays) out.push_back(broadcast_to(x, all.shape(), where));
  return out;
}
Array column_stack(const std::vector<Array>& arrays, Here where) {
  std::vector<Array> columns;
  for (const Array& x : arrays) {
    columns.push_back(x.rank() < 2 ? expand_dims(atleast_1d(x, where), 1, where) : x);
  }
  return concat(columns, 1, where);
}
Array dstack(const std::vector<Array>& arrays, Here where) {
  std::vector<Array> deep;
  for (const Array& x : arrays) deep.push_back(atleast_3d(x, where));
  return concat(deep, 2, where);
}
std::vector<Array> array_split(const Array& x, std::int64_t parts, std::int64_t axis, Here where) {
  if (parts < 1) {
    detail::refuse(ErrorCode::Attr, "array_split", "'array_split' into no part",
                   "there is one part or more", where);
  }
  const std::int64_t size = x.dim(axis).value();
  std::vector<Array> out;
  std::int64_t from = 0;
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t length = size / parts + (i < size % parts ? 1 : 0);
    out.push_back(narrow(x, axis, from, length, where));
    from += length;
  }
  return out;
}
Array unflatten(const Array& x, std::int64_t axis, const Dims& sizes, Here where) {
  (void)x.dim(axis);
  const auto at =
      static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(x.rank()) : axis);
  Dims shape(x.shape().begin(), x.shape().begin() + static_cast<std::ptrdiff_t>(at));
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  shape.insert(shape.end(), x.shape().begin() + static_cast<std::ptrdiff_t>(at) + 1,
               x.shape().end());
  return reshape(x, shape, where);
}
Array matrix_transpose(const Array& x, Here where) { return swapaxes(x, -2, -1, where); }
Array block_diag(const std::vector<Array>& blocks, Here where) {
  Dim columns = 0;
  for (const Array& b : blocks) columns = columns + atleast_2d(b, where).dim(1);
  std::vector<Array> rows;
  Dim left = 0;
  for (const Array& b : blocks) {
    const Array block = atleast_2d(b, where);
    const Dim right = columns - left - block.dim(1);
    rows.push_back(pad(block, {{0, 0}, {left, right}}, 0, where));
    left = left + block.dim(1);
  }
  return concat(rows, 0, where);
}
Array vander(const Array& x, std::int64_t columns, Here where) {
  std::vector<Array> powers;
  Array power = ones_like(x, where);
  for (std::int64_t i = 0; i < columns; ++i) {
    powers.insert(powers.begin(), power);
    power = mul(power, x, where);
  }
  return stack(powers, -1, where);
}

}  // namespace ricci
