#include "ricci/build/indexing.h"

#include <algorithm>

#include <fmt/format.h>

#include "build/composed.h"
#include "support/float_environment.h"
#include "support/machine_memory.h"

namespace ricci {
namespace {

// `dims` with the first `count` axes as one.
Dims with_rows(const Dims& dims, std::size_t count, const Dim& rows) {
  Dims out{rows};
  out.insert(out.end(), dims.begin() + static_cast<std::ptrdiff_t>(count), dims.end());
  return out;
}

// Indices into `size` places as i64, each checked as gather does it.
Value checked(Value indices, std::int64_t size) {
  const Value places = iota(indices.graph(), {.shape = {size}, .dtype = DType::I64});
  return gather(places, indices, {.axis = 0});
}

// Index tuples [k…, r] as rows of x with its first r axes as one.
struct FlatRows {
  std::size_t axes = 0;
  Dim rows = 1;
  Value indices;
};
FlatRows flat_rows(const ComposedScope& scope, Value x, Value indices) {
  if (indices.rank() == 0) scope.fail(ErrorCode::Shape, "indices have no axis of tuples");
  const std::int64_t length = scope.known(indices.dims().back());
  if (length < 1 || std::cmp_greater(length, x.rank())) {
    scope.fail(ErrorCode::Shape,
               fmt::format("tuples of {} do not index {}", length, x.type().to_string()),
               "the last axis of indices has one entry for each axis of x that is indexed");
  }
  FlatRows out{static_cast<std::size_t>(length)};
  const Dims each(indices.dims().begin(), indices.dims().end() - 1);
  for (std::size_t a = 0; a < out.axes; ++a) {
    const std::int64_t size = scope.known(x.dims()[a]);
    const Value one = cut(indices, indices.rank() - 1, static_cast<std::int64_t>(a), 1);
    const Value place = checked(reshape_to(one, each), size);
    out.indices = a == 0 ? place : out.indices * static_cast<double>(size) + place;
    out.rows = out.rows * Dim(size);
  }
  return out;
}

}  // namespace

Value gather_nd(Value x, Value indices, std::source_location loc) {
  const ComposedScope scope(x, "gather_nd", loc);
  const FlatRows flat = flat_rows(scope, x, indices);
  const Value table = reshape_to(x, with_rows(x.dims(), flat.axes, flat.rows));
  return gather(table, flat.indices, {.axis = 0});
}

Value scatter_nd(ScatterKind kind, Value x, Value updates, Value indices,
                 std::source_location loc) {
  const ComposedScope scope(x, "scatter_nd", loc);
  const FlatRows flat = flat_rows(scope, x, indices);
  const Value table = reshape_to(x, with_rows(x.dims(), flat.axes, flat.rows));
  return reshape_to(scatter(table, updates, flat.indices, {.kind = kind}), x.dims());
}

Value scatter_along_axis(ScatterKind kind, Value x, Value updates, Value indices, Axis axis,
                         std::source_location loc) {
  const ComposedScope scope(x, "scatter_along_axis", loc);
  const std::size_t along = scope.axis(axis, x.rank());
  if (updates.dims() != indices.dims() || updates.rank() != x.rank()) {
    scope.fail(ErrorCode::Shape,
               fmt::format("updates {} and indices {} do not meet x {}", updates.type().to_string(),
                           indices.type().to_string(), x.type().to_string()));
  }
  Value place;
  for (std::size_t a = 0; a < x.rank(); ++a) {
    const std::int64_t size = scope.known(x.dims()[a]);
    if (a != along && !indices.dims()[a].is(size)) {
      scope.fail(ErrorCode::Shape, fmt::format("indices are {}, but x is {}",
                                               indices.type().to_string(), x.type().to_string()));
    }
    const op::Iota position{.shape = indices.dims(), .axis = axis_of(a), .dtype = DType::I64};
    const Value at = a == along ? checked(indices, size) : iota(x.graph(), position);
    place = place.valid() ? place * static_cast<double>(size) + at : at;
  }
  const Value flat = reshape_to(x, {product(x.dims())});
  return reshape_to(scatter(flat, updates, place, {.kind = kind}), x.dims());
}

Value one_hot(Value indices, const Dim& depth, OneHotOptions options, std::source_location loc) {
  const ComposedScope scope(indices, "one_hot", loc);
  const std::size_t axis = scope.axis(options.axis, indices.rank() + 1);
  Dims apart = indices.dims();
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis), Dim(1));
  Dims along(apart.size(), Dim(1));
  along[axis] = depth;
  // There may be more classes than the dtype of the indices can tell apart.
  const DType wide = is_float(indices.dtype()) ? DType::F64 : promote(indices.dtype(), DType::I32);
  const Value classes =
      iota(indices.graph(), {.shape = along, .axis = axis_of(axis), .dtype = wide});
  return cast_to(eq(cast_to(reshape_to(indices, apart), wide), classes), options.dtype);
}

namespace {

// The bin of every element, and whether it is in one.
struct Bins {
  Value index;
  Value inside;
};
Bins bins_of(const ComposedScope& scope, Value x, const HistogramOptions& o) {
  const DefaultFloatEnvironment floats;
  if (!dtypes::floats.has(x.dtype())) {
    scope.fail(ErrorCode::DType, fmt::format("x is {}", name(x.dtype())), "cast it to a float");
  }
  if (o.bins < 1 || !(o.low < o.high)) {
    scope.fail(ErrorCode::Attr, fmt::format("{} bins from {} to {}", o.bins, o.low, o.high),
               "there is at least one bin, and low is below high");
  }
  require_memory(o.bins, sizeof(double), "the number of bins");
  std::vector<double> edges;
  for (std::int64_t i = 0; i <= o.bins; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(o.bins);
    edges.push_back(i == o.bins ? o.high : o.low + part * (o.high - o.low));
  }
  const Type type{x.dtype() == DType::F64 ? DType::F64 : DType::F32, {o.bins + 1}};
  const Value wide = cast_to(x, type.dtype);
  const Value edge = x.graph().constant(Tensor::from_numbers<double>(type, edges));
  const Value inside = logical_and(ge(wide, cut(edge, 0, 0, 1)), le(wide, cut(edge, 0, o.bins, 1)));
  // A first guess by the quotient, at most one off; the edges decide.
  const double scale = static_cast<double>(o.bins) / (o.high - o.low);
  const Value quotient = floor((wide - o.low) * scale);
  const Value bounded = where(inside, quotient, scalar_like(wide, 0));
  const auto last = static_cast<double>(o.bins - 1);
  Value guess = cast_to(bounded, DType::I64);
  guess = min(max(guess, 0), last);
  const Value below = lt(wide, gather(edge, guess, {.axis = 0}));
  const Value above = ge(wide, gather(edge, guess + 1.0, {.axis = 0}));
  const Value index = guess - cast_to(below, DType::I64) + cast_to(above, DType::I64);
  return {min(max(index, 0), last), inside};
}

Value counted(Value x, Value weights, const HistogramOptions& options, const ComposedScope& scope) {
  const Dim count = product(x.dims());
  const Value flat = reshape_to(x, {count});
  const Bins bins = bins_of(scope, flat, options);
  const Value each =
      weights.valid() ? reshape_to(weights, {count}) : filled(x.graph(), {DType::I64, {count}}, 1);
  const Value kept = where(bins.inside, each, scalar_like(each, 0));
  return scatter_add(kept, bins.index, {.out_dim = options.bins});
}

}  // namespace

Value histogram(Value x, HistogramOptions options, std::source_location loc) {
  return counted(x, {}, options, ComposedScope(x, "histogram", loc));
}

Value histogram(Value x, Value weights, HistogramOptions options, std::source_location loc) {
  const ComposedScope scope(x, "histogram", loc);
  if (weights.dims() != x.dims()) {
    scope.fail(ErrorCode::Shape, fmt::format("weights are {}, but x is {}",
                                             weights.type().to_string(), x.type().to_string()));
  }
  return counted(x, weights, options, scope);
}

}  // namespace ricci
