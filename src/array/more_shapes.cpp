// Shapes, places and products: the second half of ricci/array/more.h.
#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "ricci/array/create.h"
#include "ricci/array/more.h"
#include "ricci/array/ops.h"
#include "ricci/build/linalg.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "array/node.h"
#include "support/machine_memory.h"

namespace ricci {

using detail::apply;

namespace {

// Arrays with at least so many axes, new ones in front.
std::vector<Array> with_rank(const std::vector<Array>& arrays, std::size_t rank, Here where) {
  std::vector<Array> out;
  for (const Array& x : arrays) {
    Dims shape = x.shape();
    if (shape.size() < rank) shape.insert(shape.begin(), rank - shape.size(), Dim(1));
    out.push_back(reshape(x, shape, where));
  }
  return out;
}

std::int64_t axis_of(const Array& x, std::int64_t axis, std::string_view what, Here where) {
  const auto a = normalized_axis(axis, x.rank());
  if (a) return *a;
  detail::refuse(ErrorCode::Attr, "shape",
                 fmt::format("'{}' of {}: there is no axis {}", what, x.type().to_string(), axis),
                 "", where);
}

// A computed place, moved so that a box of this size fits.
Array fitting(const Array& start, std::int64_t size, std::int64_t box, Here where) {
  // What is far outside stays so.
  const bool wide = start.dtype() == DType::I64 || start.dtype() == DType::U32 ||
                    size > std::numeric_limits<std::int32_t>::max();
  const Array i = cast(start, wide ? DType::I64 : DType::I32, where);
  const Array from_start = ricci::where(lt(i, 0, where), add(i, size, where), i, where);
  // A box that is none is refused by what cuts it out.
  return clip(from_start, 0, box < 0 ? size : size - box, where);
}

void require_starts(const Array& x, std::size_t starts, std::string_view what, Here where) {
  if (starts == x.rank()) return;
  detail::refuse(ErrorCode::Shape, "shape",
                 fmt::format("'{}' of {} is given {} starts", what, x.type().to_string(), starts),
                 "one an axis", where);
}

}  // namespace

Array vstack(const std::vector<Array>& arrays, Here where) {
  return concat(with_rank(arrays, 2, where), 0, where);
}
Array hstack(const std::vector<Array>& arrays, Here where) {
  const std::vector<Array> all = with_rank(arrays, 1, where);
  return concat(all, all.empty() || all[0].rank() == 1 ? 0 : 1, where);
}
std::vector<Array> chunk(const Array& x, std::int64_t parts, std::int64_t axis, Here where) {
  const std::int64_t size = x.dim(axis_of(x, axis, "chunk", where)).value();
  if (parts < 1) {
    detail::refuse(ErrorCode::Attr, "shape", fmt::format("'chunk' into {} parts", parts),
                   "one or more", where);
  }
  const std::int64_t each = std::max<std::int64_t>(1, size / parts + (size % parts != 0 ? 1 : 0));
  require_memory(size / each, detail::ArrayBytes, "the number of chunks");
  std::vector<Array> out;
  for (std::int64_t at = 0; at < std::max<std::int64_t>(size, 1); at += each) {
    out.push_back(narrow(x, axis, at, std::min(each, size - at), where));
  }
  return out;
}
std::vector<Array> split(const Array& x, const std::vector<std::int64_t>& starts, std::int64_t axis,
                         Here where) {
  const std::int64_t size = x.dim(axis_of(x, axis, "split", where)).value();
  std::vector<Array> out;
  std::int64_t from = 0;
  for (std::size_t i = 0; i <= starts.size(); ++i) {
    const std::int64_t to =
        i < starts.size() ? std::clamp<std::int64_t>(starts[i], from, size) : size;
    out.push_back(narrow(x, axis, from, to - from, where));
    from = to;
  }
  return out;
}
std::vector<Array> unbind(const Array& x, std::int64_t axis, Here where) {
  const std::int64_t a = axis_of(x, axis, "unbind", where);
  require_memory(x.dim(a).value(), detail::ArrayBytes, "the size of the axis");
  std::vector<Array> out;
  for (std::int64_t i = 0; i < x.dim(a).value(); ++i) {
    out.push_back(squeeze(narrow(x, a, i, 1, where), a, where));
  }
  return out;
}
Array fliplr(const Array& x, Here where) { return flip(x, 1, where); }
Array flipud(const Array& x, Here where) { return flip(x, 0, where); }
Array rot90(const Array& x, std::int64_t times, Here where) {
  switch ((times % 4 + 4) % 4) {
    case 1: return flip(swapaxes(x, 0, 1, where), 0, where);
    case 2: return flip(x, {0, 1}, where);
    case 3: return swapaxes(flip(x, 0, where), 0, 1, where);
    default: return x;
  }
}
Array diagonal(const Array& x, std::int64_t k, Here where) {
  if (x.rank() < 2) {
    detail::refuse(ErrorCode::Shape, "shape", fmt::format("'diagonal' of {}", x.type().to_string()),
                   "it has two axes or more", where);
  }
  const std::int64_t rows = x.dim(-2).value();
  const std::int64_t columns = x.dim(-1).value();
  const std::int64_t row = k < 0 ? -std::max(k, -rows) : 0;
  const std::int64_t column = k > 0 ? std::min(k, columns) : 0;
  const std::int64_t n = std::max<std::int64_t>(0, std::min(rows - row, columns - column));
  Dims flat(x.shape().begin(), x.shape().end() - 2);
  flat.push_back(rows * columns);
  const Array places = arange(static_cast<double>(row * columns + column),
                              static_cast<double>(row * columns + column + n * (columns + 1)),
                              static_cast<double>(columns + 1), {.dtype = DType::I64}, where);
  return take(reshape(x, flat, where), narrow(places, 0, 0, n, where), -1, where);
}
Array diag(const Array& x, std::int64_t k, Here where) {
  if (x.rank() != 1) return diagonal(x, k, where);
  const Array square_one = eye(x.dim(0).value(), {}, {.dtype = DType::Bool}, where);
  const Array on = ricci::where(square_one, x, 0, where);
  // Matrices of this size have been refused.
  constexpr std::int64_t Beyond = std::int64_t{1} << 50;
  const std::int64_t low = k < 0 ? -std::max(k, -Beyond) : 0;
  const std::int64_t left = k > 0 ? std::min(k, Beyond) : 0;
  return k == 0 ? on : pad(on, {{low, left}, {left, low}}, 0, where);
}
Array index_select(const Array& x, std::int64_t axis, const Array& indices, Here where) {
  return take(x, indices, axis, where);
}
Array dynamic_slice(const Array& x, const std::vector<Array>& starts,
                    const std::vector<std::int64_t>& sizes, Here where) {
  require_starts(x, starts.size(), "dynamic_slice", where);
  require_starts(x, sizes.size(), "dynamic_slice", where);
  Array out = x;
  for (std::size_t a = 0; a < starts.size(); ++a) {
    const auto axis = static_cast<std::int64_t>(a);
    const std::int64_t size = x.dim(axis).value();
    if (sizes[a] == size) continue;
    out = apply(Op(op::DynamicNarrow{.axis = axis, .len = sizes[a]}),
                {out, fitting(starts[a], size, sizes[a], where)}, where);
  }
  return out;
}
Array dynamic_update_slice(const Array& x, const Array& update, const std::vector<Array>& starts,
                           Here where) {
  require_starts(x, starts.size(), "dynamic_update_slice", where);
  require_starts(x, update.rank(), "dynamic_update_slice", where);
  // Axis by axis: what is put in is the box with its own box updated.
  const auto within = [&](auto&& self, const Array& into, std::size_t a) -> Array {
    if (a == starts.size()) return update;
    const auto axis = static_cast<std::int64_t>(a);
    const std::int64_t size = into.dim(axis).value();
    const std::int64_t box = update.dim(axis).value();
    if (box == size) return self(self, into, a + 1);
    const Array start = fitting(starts[a], size, box, where);
    const Array part = apply(Op(op::DynamicNarrow{.axis = axis, .len = box}), {into, start}, where);
    return apply(Op(op::DynamicUpdate{.axis = axis}), {into, self(self, part, a + 1), start},
                 where);
  };
  return within(within, x, 0);
}
std::vector<Array> nonzero(const Array& x, std::optional<std::int64_t> size, std::int64_t fill,
                           Here where) {
  detail::require_valid(x, "nonzero", where);
  const Array there = reshape(ne(x, 0, where), {-1}, where);
  Array places;
  Array missing;
  if (size) {
    // The places in order, those that are not there behind all others.
    const std::int64_t all = there.dim(0).value();
    const Array number = arange(all, {}, where);
    const Array sorted = sort(ricci::where(there, number, all, where), 0, false, where);
    const std::int64_t kept = std::min(*size, all);
    places = pad(narrow(sorted, 0, 0, kept, where), {{0, *size - kept}}, all, where);
    missing = eq(places, all, where);
  } else {
    if (x.node()->trace) {
      detail::refuse(ErrorCode::Refused, "index",
                     fmt::format("'nonzero' of what '{}' traces: how many there are is not known",
                                 x.node()->trace->what),
                     "say how many places you want: nonzero(x, size)", where);
    }
    places = arange(there.dim(0).value(), {}, where)[there];
  }
  std::vector<Array> out(x.rank());
  for (std::size_t a = x.rank(); a-- > 0;) {
    const std::int64_t n = x.shape()[a].value();
    out[a] = n == 0 ? places : rem(places, n, where);
    if (n != 0) places = div(sub(places, out[a], where), n, where);
    if (size) out[a] = ricci::where(missing, fill, out[a], where);
  }
  return out;
}
Array bincount(const Array& x, std::int64_t length, Here where) {
  return zeros({length}, {.dtype = DType::I32}, where).at(reshape(x, {-1}, where)).add(1, where);
}
Array searchsorted(const Array& sorted, const Array& values, bool right, Here where) {
  const Array v = expand_dims(values, -1, where);
  const Array below = right ? le(sorted, v, where) : lt(sorted, v, where);
  return sum(below, -1, false, where);
}
Array interp(const Array& x, const Array& xp, const Array& fp, Here where) {
  const std::int64_t n = xp.dim(0).value();
  if (n < 2) {
    detail::refuse(ErrorCode::Shape, "shape", fmt::format("'interp' between {} points", n),
                   "two or more", where);
  }
  const Array i = clip(sub(searchsorted(xp, x, true, where), 1, where), 0, n - 2, where);
  const Array next = add(i, 1, where);
  const Array x0 = take(xp, i, 0, where);
  const Array x1 = take(xp, next, 0, where);
  const Array t = clip(div(sub(x, x0, where), sub(x1, x0, where), where), 0.0, 1.0, where);
  return lerp(take(fp, i, 0, where), take(fp, next, 0, where), t, where);
}

Array inner(const Array& a, const Array& b, Here where) {
  return matmul(a, b.rank() < 2 ? b : swapaxes(b, -1, -2, where), where);
}
Array vdot(const Array& a, const Array& b, Here where) {
  return sum(mul(conj(reshape(a, {-1}, where), where), reshape(b, {-1}, where), where), {}, false,
             where);
}
Array tensordot(const Array& a, const Array& b, std::int64_t axes, Here where) {
  const auto n = static_cast<std::size_t>(axes);
  if (axes < 0 || n > a.rank() || n > b.rank()) {
    detail::refuse(ErrorCode::Shape, "shape",
                   fmt::format("'tensordot' of {} and {} over {} axes", a.type().to_string(),
                               b.type().to_string(), axes),
                   "both have as many axes", where);
  }
  Dims shape(a.shape().begin(), a.shape().end() - axes);
  shape.insert(shape.end(), b.shape().begin() + axes, b.shape().end());
  const Dim common = product(std::span(b.shape()).first(n));
  const Dim rows = product(std::span(a.shape()).first(a.rank() - n));
  const Dim columns = product(std::span(b.shape()).subspan(n));
  return reshape(
      matmul(reshape(a, {rows, common}, where), reshape(b, {common, columns}, where), where), shape,
      where);
}
Array kron(const Array& a, const Array& b, Here where) {
  const std::size_t rank = std::max(a.rank(), b.rank());
  const std::vector<Array> both = with_rank({a, b}, rank, where);
  Dims left;
  Dims right;
  Dims shape;
  for (std::size_t i = 0; i < rank; ++i) {
    const Dim m = both[0].shape()[i];
    const Dim n = both[1].shape()[i];
    left.insert(left.end(), {m, 1});
    right.insert(right.end(), {1, n});
    shape.push_back(m * n);
  }
  return reshape(mul(reshape(both[0], left, where), reshape(both[1], right, where), where), shape,
                 where);
}
Array cross(const Array& a, const Array& b, Here where) {
  const auto turned = [&](const Array& x, std::int64_t by) { return roll(x, -by, -1, where); };
  return sub(mul(turned(a, 1), turned(b, 2), where), mul(turned(a, 2), turned(b, 1), where), where);
}
Array matrix_power(const Array& a, std::int64_t n, Here where) {
  return detail::lift_one({a}, where, [&](auto v) { return ricci::matrix_power(v[0], n, where); });
}
Array lstsq(const Array& a, const Array& b, Here where) {
  return detail::lift_one({a, b}, where,
                          [&](auto v) { return ricci::lstsq(v[0], v[1], {}, where); });
}
std::pair<Array, Array> slogdet(const Array& a, Here where) {
  const std::vector<Array> both =
      detail::lift_all(std::array{a}, where, [&](Graph&, std::span<const Value> v) {
        const SignAndLog d = ricci::slogdet(v[0], where);
        return std::vector<Value>{d.sign, d.log_abs};
      });
  return {both[0], both[1]};
}

}  // namespace ricci
