#include "ricci/array/counting.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "ricci/array/create.h"
#include "ricci/array/ops.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "array/node.h"
#include "array/wide.h"
#include "support/float_environment.h"

namespace ricci {

namespace {

// What every number is at least (or at most).
Array bound_of(DType dtype, bool least, Here where) {
  if (is_float(dtype)) {
    const double inf = std::numeric_limits<double>::infinity();
    return cast(array(least ? -inf : inf), dtype, where);
  }
  const auto bits = static_cast<int>(8 * size_of(dtype));
  if (dtype == DType::Bool || dtype == DType::U8 || dtype == DType::U32) {
    const std::int64_t most = dtype == DType::Bool ? 1 : (std::int64_t{1} << bits) - 1;
    return full({}, least ? std::int64_t{0} : most, {.dtype = dtype}, where);
  }
  const std::int64_t most =
      bits == 64 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << (bits - 1)) - 1;
  return full({}, least ? -most - 1 : most, {.dtype = dtype}, where);
}

Array segments_of(ScatterKind kind, const Array& data, const Array& segments, std::int64_t count,
                  const Array& start, Here where) {
  detail::require_valid(data, "segments", where);
  detail::require_valid(segments, "segments", where);
  if (data.rank() == 0 || segments.shape() != Dims{data.dim(0)}) {
    detail::refuse(ErrorCode::Shape, "segments",
                   fmt::format("{} segments for the rows of {}", segments.type().to_string(),
                               data.type().to_string()),
                   "one number a row", where);
  }
  Dims shape = data.shape();
  shape[0] = count;
  return detail::apply(Op(op::Scatter{.kind = kind}),
                       {broadcast_to(start, shape, where), data, segments}, where);
}

Array number_of(const Array& data, std::int64_t value, Here where) {
  return full({}, value, {.dtype = data.dtype()}, where);
}

std::pair<Array, Array> places_in(const Array& mask, Here where) {
  const std::vector<Array> found = nonzero(mask, {}, 0, where);
  return {found[0], found[1]};
}

}  // namespace

Array segment_sum(const Array& data, const Array& segments, std::int64_t count, Here where) {
  const Array x = detail::strengthened(data, where);
  return segments_of(ScatterKind::Add, x, segments, count, number_of(x, 0, where), where);
}
Array segment_prod(const Array& data, const Array& segments, std::int64_t count, Here where) {
  const Array x = detail::strengthened(data, where);
  return segments_of(ScatterKind::Mul, x, segments, count, number_of(x, 1, where), where);
}
Array segment_max(const Array& data, const Array& segments, std::int64_t count, Here where) {
  const Array x = detail::strengthened(data, where);
  return segments_of(ScatterKind::Max, x, segments, count, bound_of(x.dtype(), true, where), where);
}
Array segment_min(const Array& data, const Array& segments, std::int64_t count, Here where) {
  const Array x = detail::strengthened(data, where);
  return segments_of(ScatterKind::Min, x, segments, count, bound_of(x.dtype(), false, where),
                     where);
}
Array segment_mean(const Array& data, const Array& segments, std::int64_t count, Here where) {
  const auto of = [&](const Array& rows) {
    const Array total = segment_sum(rows, segments, count, where);
    const Array each = ones(segments.shape(), {.dtype = total.dtype()}, where);
    const Array many = max(segment_sum(each, segments, count, where), 1, where);
    Dims shape(total.rank(), 1);
    shape[0] = count;
    return div(total, reshape(many, shape, where), where);
  };
  detail::require_valid(data, "segments", where);
  return detail::in_wide(where, of, data);
}

std::pair<Array, Array> histogram(const Array& x, std::int64_t bins,
                                  std::optional<std::pair<double, double>> range, Here where) {
  const DefaultFloatEnvironment floats;
  detail::require_valid(x, "histogram", where);
  if (bins < 1 || (range && !(range->first <= range->second))) {
    detail::refuse(ErrorCode::Attr, "histogram",
                   range ? fmt::format("'histogram' of {} parts of [{}, {}]", bins, range->first,
                                       range->second)
                         : fmt::format("'histogram' of {} parts", bins),
                   "one part or more, of a range that goes up", where);
  }
  const Array flat = reshape(detail::strengthened(x, where), {-1}, where);
  if (!range) {
    range = flat.size() == 0 ? std::pair{0.0, 1.0}
                             : std::pair{amin(flat, {}, false, where).item(where),
                                         amax(flat, {}, false, where).item(where)};
  }
  if (!std::isfinite(range->first) || !std::isfinite(range->second)) {
    detail::refuse(ErrorCode::Attr, "histogram",
                   fmt::format("'histogram' of numbers from {} to {}", range->first, range->second),
                   "give the range to be counted", where);
  }
  if (range->first == range->second) range = {range->first - 0.5, range->second + 0.5};
  const auto [low, high] = *range;
  const DType real = flat.dtype() == DType::F64 ? DType::F64 : DType::F32;
  const Array values = cast(flat, real, where);
  const Array edges = linspace(low, high, bins + 1, {.dtype = real}, where);
  // Found by the edges, so that a number on one of them is where it says.
  const Array at = sub(searchsorted(edges, values, true, where), 1, where);
  const Array within =
      logical_and(ge(values, edges[0], where), le(values, edges[-1], where), where);
  const Array part = clip(at, 0, bins - 1, where);
  const Array places = ricci::where(within, part, bins, where);
  return {bincount(places, bins + 1, where)(slice(0, bins)), edges};
}

Array unique(const Array& x, Here where) {
  detail::require_valid(x, "unique", where);
  const Array sorted = sort(reshape(detail::strengthened(x, where), {-1}, where), 0, false, where);
  if (sorted.size() == 0) return sorted;
  const Array next = sorted[slice(1, {})];
  const Array before = sorted[slice(-1)];
  Array differs = ne(next, before, where);
  if (is_float(sorted.dtype())) {  // NaN is one of them
    differs =
        logical_and(differs, !logical_and(isnan(next, where), isnan(before, where), where), where);
  }
  const Array first = concat({ones({1}, {.dtype = DType::Bool}, where), differs}, 0, where);
  return take(sorted, nonzero(first, {}, 0, where)[0], 0, where);
}

Array isin(const Array& x, const Array& those, Here where) {
  Array a = x;
  Array b = those;
  detail::unify("isin", a, b, where);
  const Array one = expand_dims(a, -1, where);
  return any(eq(one, reshape(b, {-1}, where), where), -1, false, where);
}

Array argwhere(const Array& x, Here where) {
  const std::vector<Array> places = nonzero(x, {}, 0, where);
  return places.empty() ? zeros({x.item(where) != 0 ? 1 : 0, 0}, {.dtype = DType::I32}, where)
                        : stack(places, 1, where);
}

std::pair<Array, Array> tril_indices(std::int64_t n, std::int64_t k, Here where) {
  return places_in(tril(ones({n, n}, {.dtype = DType::Bool}, where), k, where), where);
}
std::pair<Array, Array> triu_indices(std::int64_t n, std::int64_t k, Here where) {
  return places_in(triu(ones({n, n}, {.dtype = DType::Bool}, where), k, where), where);
}

std::vector<Array> unravel_index(const Array& indices, const std::vector<std::int64_t>& shape,
                                 Here where) {
  std::vector<Array> out(shape.size());
  Array left = detail::strengthened(indices, where);
  for (std::size_t i = shape.size(); i-- > 0;) {
    out[i] = i == 0 ? left : remainder(left, shape[i], where);
    left = floor_divide(left, shape[i], where);
  }
  return out;
}
Array ravel_multi_index(const std::vector<Array>& places, const std::vector<std::int64_t>& shape,
                        Here where) {
  if (places.empty() || places.size() != shape.size()) {
    detail::refuse(
        ErrorCode::Shape, "ravel_multi_index",
        fmt::format("{} arrays of places in a shape of {} axes", places.size(), shape.size()),
        "one an axis", where);
  }
  Array out = places[0];
  for (std::size_t i = 1; i < shape.size(); ++i) {
    out = add(mul(out, shape[i], where), places[i], where);
  }
  return out;
}

Array select(const std::vector<Array>& conditions, const std::vector<Array>& choices,
             const Array& otherwise, Here where) {
  if (conditions.size() != choices.size()) {
    detail::refuse(ErrorCode::Shape, "select",
                   fmt::format("{} conditions for {} choices", conditions.size(), choices.size()),
                   "one for each", where);
  }
  Array out = otherwise;
  for (std::size_t i = conditions.size(); i-- > 0;) {
    out = ricci::where(conditions[i], choices[i], out, where);
  }
  return out;
}

}  // namespace ricci
