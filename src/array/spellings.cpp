#include "ricci/array/spellings.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "ricci/build/linalg.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "array/node.h"

namespace ricci {

namespace {

std::size_t place_of(std::int64_t axis, std::size_t rank, std::string_view what, Here where) {
  const auto a = normalized_axis(axis, rank);
  if (a) return static_cast<std::size_t>(*a);
  detail::refuse(ErrorCode::Attr, "shape",
                 fmt::format("'{}': there is no axis {} of {}", what, axis, rank), "", where);
}

// The axes that are named, in that order, before or behind all others.
Axes with_axes(std::size_t rank, const std::vector<std::int64_t>& named, bool in_front,
               std::string_view what, Here where) {
  std::vector<std::size_t> chosen;
  for (const std::int64_t a : named) {
    chosen.push_back(place_of(a, rank, what, where));
    if (std::ranges::count(chosen, chosen.back()) > 1) {
      detail::refuse(ErrorCode::Attr, "shape", fmt::format("'{}' of axis {} twice", what, a), "",
                     where);
    }
  }
  Axes others;
  for (std::size_t a = 0; a < rank; ++a) {
    if (std::ranges::count(chosen, a) == 0) others.emplace_back(static_cast<std::int64_t>(a));
  }
  Axes out;
  for (const std::size_t a : chosen) out.emplace_back(static_cast<std::int64_t>(a));
  out.insert(in_front ? out.end() : out.begin(), others.begin(), others.end());
  return out;
}

void require_as_many(std::size_t a, std::size_t b, std::string_view what, Here where) {
  if (a == b) return;
  detail::refuse(ErrorCode::Attr, "shape", fmt::format("'{}' of {} and {} axes", what, a, b),
                 "one for one", where);
}

Array places_array(const std::vector<std::int64_t>& places) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(places.size())}, places);
}

}  // namespace

Array mod(const Array& a, const Array& b, Here where) { return remainder(a, b, where); }
std::pair<Array, Array> divmod(const Array& a, const Array& b, Here where) {
  return {floor_divide(a, b, where), remainder(a, b, where)};
}
Array true_divide(const Array& a, const Array& b, Here where) { return div(a, b, where); }
Array left_shift(const Array& a, const Array& b, Here where) { return shift_left(a, b, where); }
Array right_shift(const Array& a, const Array& b, Here where) { return shift_right(a, b, where); }
Array invert(const Array& x, Here where) { return bitwise_not(x, where); }
Array positive(const Array& x, Here) { return x; }
Array rint(const Array& x, Here where) { return round(x, where); }
Array fix(const Array& x, Here where) { return trunc(x, where); }
Array round(const Array& x, int decimals, Here where) {
  // A power of ten is exact, its reciprocal is not.
  double scale = 1;
  for (int i = 0; i < std::abs(decimals); ++i) scale *= 10;
  if (decimals >= 0) return div(round(mul(x, scale, where), where), scale, where);
  return mul(round(div(x, scale, where), where), scale, where);
}
Array around(const Array& x, int decimals, Here where) {
  return decimals == 0 ? round(x, where) : round(x, decimals, where);
}
Array fabs(const Array& x, Here where) { return abs(x, where); }
Array arcsinh(const Array& x, Here where) { return asinh(x, where); }
Array arccosh(const Array& x, Here where) { return acosh(x, where); }
Array arctanh(const Array& x, Here where) { return atanh(x, where); }
Array radians(const Array& x, Here where) { return deg2rad(x, where); }
Array degrees(const Array& x, Here where) { return rad2deg(x, where); }
Array hardswish(const Array& x, Here where) { return hard_swish(x, where); }
Array expit(const Array& x, Here where) { return sigmoid(x, where); }
Array logsigmoid(const Array& x, Here where) { return log_sigmoid(x, where); }
Array celu(const Array& x, double alpha, Here where) {
  const Array below = mul(expm1(div(min(x, 0.0, where), alpha, where), where), alpha, where);
  return ricci::where(gt(x, 0.0, where), x, below, where);
}
Array clip(const Array& x, std::nullopt_t, const Array& high, Here where) {
  return minimum(x, high, where);
}
Array clip(const Array& x, const Array& low, std::nullopt_t, Here where) {
  return maximum(x, low, where);
}

Array average(const Array& x, Here where) { return mean(x, {}, false, where); }
Array quantile(const Array& x, const std::vector<double>& qs, std::optional<std::int64_t> axis,
               bool keep_dims, Here where) {
  std::vector<Array> out;
  for (const double q : qs) out.push_back(quantile(x, q, axis, keep_dims, where));
  return stack(out, 0, where);
}
Array digitize(const Array& x, const Array& edges, Here where) {
  return searchsorted(edges, x, true, where);
}

Array expand_dims(const Array& x, const AxisList& axes, Here where) {
  const std::size_t rank = x.rank() + axes.axes.size();
  std::vector<bool> fresh(rank, false);
  for (const Axis a : axes.axes) {
    const std::size_t k = place_of(a.value, rank, "expand_dims", where);
    if (fresh[k]) {
      detail::refuse(ErrorCode::Attr, "shape",
                     fmt::format("'expand_dims' of axis {} twice", a.value), "", where);
    }
    fresh[k] = true;
  }
  Dims shape;
  std::size_t from = 0;
  for (std::size_t k = 0; k < rank; ++k) shape.push_back(fresh[k] ? Dim(1) : x.shape()[from++]);
  return reshape(x, shape, where);
}
Array expand(const Array& x, const Dims& shape, Here where) {
  return broadcast_to(x, shape, where);
}
Array permute_dims(const Array& x, const Axes& perm, Here where) {
  return transpose(x, perm, where);
}
Array moveaxis(const Array& x, const std::vector<std::int64_t>& from,
               const std::vector<std::int64_t>& to, Here where) {
  require_as_many(from.size(), to.size(), "moveaxis", where);
  const Axes others = with_axes(x.rank(), from, true, "moveaxis", where);
  Axes perm(x.rank(), Axis(-1));
  std::vector<bool> taken(x.rank(), false);
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::size_t k = place_of(to[i], x.rank(), "moveaxis", where);
    if (taken[k]) {
      detail::refuse(ErrorCode::Attr, "shape", fmt::format("'moveaxis' to axis {} twice", to[i]),
                     "", where);
    }
    taken[k] = true;
    perm[k] = others[i];
  }
  std::size_t next = from.size();
  for (std::size_t k = 0; k < perm.size(); ++k) {
    if (!taken[k]) perm[k] = others[next++];
  }
  return transpose(x, perm, where);
}
Array roll(const Array& x, const std::vector<std::int64_t>& shifts,
           const std::vector<std::int64_t>& axes, Here where) {
  require_as_many(shifts.size(), axes.size(), "roll", where);
  Array out = x;
  for (std::size_t i = 0; i < axes.size(); ++i) out = roll(out, shifts[i], axes[i], where);
  return out;
}
std::vector<Array> unstack(const Array& x, std::int64_t axis, Here where) {
  return unbind(x, axis, where);
}
std::vector<Array> hsplit(const Array& x, std::int64_t parts, Here where) {
  return split(x, parts, x.rank() == 1 ? 0 : 1, where);
}
std::vector<Array> vsplit(const Array& x, std::int64_t parts, Here where) {
  return split(x, parts, 0, where);
}
Array take(const Array& x, const std::vector<std::int64_t>& places, std::int64_t axis, Here where) {
  return take(x, places_array(places), axis, where);
}
Array masked_select(const Array& x, const Array& mask, Here) { return x[mask]; }
std::vector<Array> where(const Array& condition, Here at) { return nonzero(condition, {}, 0, at); }

Array tensordot(const Array& a, const Array& b,
                const std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>& axes,
                Here where) {
  require_as_many(axes.first.size(), axes.second.size(), "tensordot", where);
  const Axes left = with_axes(a.rank(), axes.first, false, "tensordot", where);
  const Axes right = with_axes(b.rank(), axes.second, true, "tensordot", where);
  return tensordot(transpose(a, left, where), transpose(b, right, where),
                   static_cast<std::int64_t>(axes.first.size()), where);
}
namespace linalg {
Array eigvalsh(const Array& a, Here where) {
  return detail::lift_one({a}, where, [&](auto v) { return ricci::eigvalsh(v[0], where); });
}
Array svdvals(const Array& a, Here where) {
  return detail::lift_one({a}, where, [&](auto v) { return ricci::svdvals(v[0], where); });
}
Array matrix_rank(const Array& a, Here where) {
  return detail::lift_one({a}, where, [&](auto v) { return ricci::matrix_rank(v[0], {}, where); });
}
}  // namespace linalg

Array cross_entropy(const Array& logits, const Array& target, CrossEntropyOptions options,
                    Here where) {
  const double share = options.label_smoothing;
  if (!(share >= 0 && share <= 1)) {
    detail::refuse(ErrorCode::Attr, "cross_entropy",
                   fmt::format("'cross_entropy' with label_smoothing {}", share),
                   "it is between 0 and 1", where);
  }
  const Array hit = mul(cross_entropy(logits, target, where), 1 - share, where);
  const Array all = mean(log_softmax(logits, -1, where), {}, false, where);
  return sub(hit, mul(all, share, where), where);
}
Array identity(std::int64_t n, Here where) { return eye(n, std::nullopt, {}, where); }
Array logspace(double first, double last, std::int64_t count, Here where) {
  return pow(10.0, linspace(first, last, count, {}, where), where);
}
Array randint(std::int64_t low, std::int64_t high, const Dims& shape, Here where) {
  return randint(shape, low, high, where);
}
Array shuffle(const Key& key, const Array& x, Here where) { return permutation(key, x, where); }

}  // namespace ricci
