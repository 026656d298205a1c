#include "ricci/build/shape.h"

#include <algorithm>

#include <fmt/format.h>

#include "build/composed.h"

namespace ricci {
namespace {

std::int64_t modulo(std::int64_t a, std::int64_t n) { return (a % n + n) % n; }

// Element `at` of an axis, so many times.
Value repeated(Value x, std::size_t axis, std::int64_t at, std::int64_t times) {
  Dims dims = x.dims();
  dims[axis] = times;
  return broadcast_to(cut(x, axis, at, 1), dims);
}
Value backwards(Value x, std::size_t axis, std::int64_t start, std::int64_t len) {
  return reverse(cut(x, axis, start, len), {.axes = {axis_of(axis)}});
}

// What is put before and behind one axis of n, or, where negative, taken from it.
struct Padding {
  PadMode mode = PadMode::Edge;
  std::int64_t low = 0;
  std::int64_t n = 0;
  std::int64_t high = 0;

  [[nodiscard]] std::int64_t length() const { return n + low + high; }
  [[nodiscard]] std::int64_t before() const { return std::clamp<std::int64_t>(low, 0, length()); }
  [[nodiscard]] std::int64_t behind() const { return std::clamp<std::int64_t>(high, 0, length()); }
  // Does each end hold parts of the axis, at most once?
  [[nodiscard]] bool is_short() const {
    const std::int64_t most = mode == PadMode::Reflect ? n - 1 : n;
    return mode == PadMode::Edge || (std::max(low, high) <= most && std::min(low, high) >= -n);
  }
};

// What lies before, or behind, an axis in a short padding.
Value end_of(Value x, std::size_t axis, const Padding& p, bool behind) {
  const std::int64_t count = behind ? p.behind() : p.before();
  switch (p.mode) {
    case PadMode::Edge: return repeated(x, axis, behind ? p.n - 1 : 0, count);
    case PadMode::Wrap: return cut(x, axis, behind ? 0 : p.n - count, count);
    case PadMode::Symmetric: return backwards(x, axis, behind ? p.n - count : 0, count);
    case PadMode::Reflect: break;
  }
  return backwards(x, axis, behind ? p.n - 1 - count : 1, count);
}

// One period of the endless axis that a padding shows a part of.
Value period_of(Value x, std::size_t axis, const Padding& p) {
  if (p.mode == PadMode::Symmetric) return joined({x, backwards(x, axis, 0, p.n)}, axis);
  if (p.mode != PadMode::Reflect || p.n <= 2) return x;
  return joined({x, backwards(x, axis, 1, p.n - 2)}, axis);
}

Value padded(Value x, std::size_t axis, const Padding& p) {
  if (p.length() == 0) return cut(x, axis, 0, 0);
  if (!p.is_short()) {
    const Value period = period_of(x, axis, p);
    const std::int64_t each = period.dims()[axis].value();
    const std::int64_t start = modulo(-p.low, each);
    std::vector<std::int64_t> counts(x.rank(), 1);
    counts[axis] = (start + p.length() - 1) / each + 1;
    return cut(tile(period, counts), axis, start, p.length());
  }
  std::vector<Value> parts;
  if (p.before() > 0) parts.push_back(end_of(x, axis, p, false));
  const std::int64_t first = std::max<std::int64_t>(0, -p.low);
  const std::int64_t last = std::min(p.n, p.n + p.high);
  if (last > first) parts.push_back(cut(x, axis, first, last - first));
  if (p.behind() > 0) parts.push_back(end_of(x, axis, p, true));
  return joined(parts, axis);
}

// x where row + k against column holds, zeros elsewhere.
Value triangle(Value x, std::int64_t k, bool lower, const char* name, std::source_location loc) {
  const ComposedScope scope(x, name, loc);
  if (x.rank() < 2) {
    scope.fail(ErrorCode::Shape, fmt::format("x is {}", x.type().to_string()),
               "a triangle is that of the last two axes");
  }
  const Dim rows = x.dims()[x.rank() - 2];
  const Dim columns = x.dims()[x.rank() - 1];
  const Value row = iota(x.graph(), {.shape = {rows, 1}, .axis = 0, .dtype = DType::I64});
  const Value column = iota(x.graph(), {.shape = {1, columns}, .axis = 1, .dtype = DType::I64});
  // No axis is longer; sums with larger numbers would wrap.
  constexpr std::int64_t Beyond = std::int64_t{1} << 50;
  const Value diagonal = row + static_cast<double>(std::clamp(k, -Beyond, Beyond));
  return where(lower ? le(column, diagonal) : ge(column, diagonal), x, scalar_like(x, 0));
}

// NumPy's start, count and distance between neighbours for an axis of n.
struct Walk {
  std::int64_t start = 0;
  std::int64_t count = 0;
  std::int64_t distance = 1;
};
Walk walk_of(const SliceRange& range, std::int64_t n) {
  const std::int64_t step = range.step;
  const std::int64_t lowest = step > 0 ? 0 : -1;
  const std::int64_t highest = step > 0 ? n : n - 1;
  const auto place = [&](std::optional<std::int64_t> given, std::int64_t otherwise) {
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? *given + n : *given, lowest, highest);
  };
  const std::int64_t start = place(range.start, step > 0 ? 0 : n - 1);
  const std::int64_t stop = place(range.stop, step > 0 ? n : -1);
  const std::int64_t reach = step > 0 ? stop - start : start - stop;
  // The distance of a step may be the largest number there is.
  const std::int64_t distance = step > 0 ? step : (step == INT64_MIN ? INT64_MAX : -step);
  return {start, reach <= 0 ? 0 : (reach - 1) / distance + 1, distance};
}

}  // namespace

Value roll(Value x, std::span<const std::int64_t> shifts, const Axes& axes,
           std::source_location loc) {
  const ComposedScope scope(x, "roll", loc);
  if (shifts.size() != axes.size()) {
    scope.fail(ErrorCode::Attr,
               fmt::format("there are {} shifts for {} axes", shifts.size(), axes.size()));
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = scope.axis(axes[i], x.rank());
    const std::int64_t n = scope.known(x.dims()[axis]);
    const std::int64_t shift = n == 0 ? 0 : modulo(shifts[i] % n, n);
    if (shift == 0) continue;
    x = joined({cut(x, axis, n - shift, shift), cut(x, axis, 0, n - shift)}, axis);
  }
  return x;
}

Value roll(Value x, std::int64_t shift, Axis axis, std::source_location loc) {
  return roll(x, std::array{shift}, {axis}, loc);
}

Value tile(Value x, std::span<const std::int64_t> counts, std::source_location loc) {
  const ComposedScope scope(x, "tile", loc);
  const std::size_t rank = std::max(x.rank(), counts.size());
  Dims apart;
  Dims wide;
  Dims out;
  for (std::size_t a = 0; a < rank; ++a) {
    const Dim size = a + x.rank() < rank ? Dim(1) : x.dims()[a + x.rank() - rank];
    const std::int64_t count = a + counts.size() < rank ? 1 : counts[a + counts.size() - rank];
    if (count < 0) scope.fail(ErrorCode::Attr, fmt::format("the count {} is negative", count));
    apart.insert(apart.end(), {Dim(1), size});
    wide.insert(wide.end(), {Dim(count), size});
    out.push_back(size * Dim(count));
  }
  return reshape_to(broadcast_to(reshape_to(x, apart), wide), out);
}

Value stack(std::span<const Value> values, Axis axis, std::source_location loc) {
  const ComposedScope scope(values.empty() ? Value() : values[0], "stack", loc);
  const std::size_t at = scope.axis(axis, values[0].rank() + 1);
  std::vector<Value> parts;
  for (const Value& v : values) {
    if (v.type() != values[0].type()) {
      scope.fail(v.dtype() == values[0].dtype() ? ErrorCode::Shape : ErrorCode::DType,
                 fmt::format("{} and {} do not stack", values[0].type().to_string(),
                             v.type().to_string()));
    }
    Dims dims = v.dims();
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at), Dim(1));
    parts.push_back(reshape_to(v, dims));
  }
  return joined(parts, at);
}

Value slice(Value x, std::span<const SliceRange> ranges, std::source_location loc) {
  const ComposedScope scope(x, "slice", loc);
  for (const SliceRange& range : ranges) {
    if (range.step == 0) scope.fail(ErrorCode::Attr, "a step of 0 goes nowhere");
    const std::size_t axis = scope.axis(range.axis, x.rank());
    const std::int64_t n = scope.known(x.dims()[axis]);
    const Walk walk = walk_of(range, n);
    const bool forwards = range.step > 0;
    if (!forwards) x = reverse(x, {.axes = {axis_of(axis)}});
    const std::int64_t start = forwards ? walk.start : n - 1 - walk.start;
    const std::int64_t count = walk.count;
    const std::int64_t len = count == 0 ? 0 : (count - 1) * walk.distance + 1;
    x = cut(x, axis, count == 0 ? 0 : start, len);
    if (count > 1 && walk.distance > 1) {
      x = take_every(x, {.axis = axis_of(axis), .stride = walk.distance});
    }
  }
  return x;
}

Value slice(Value x, const SliceRange& range, std::source_location loc) {
  return slice(x, std::span(&range, 1), loc);
}

Value tril(Value x, std::int64_t k, std::source_location loc) {
  return triangle(x, k, true, "tril", loc);
}
Value triu(Value x, std::int64_t k, std::source_location loc) {
  return triangle(x, k, false, "triu", loc);
}

Value pad_by(Value x, std::span<const std::int64_t> low, std::span<const std::int64_t> high,
             PadMode mode, std::source_location loc) {
  const ComposedScope scope(x, "pad_by", loc);
  if (low.size() != x.rank() || high.size() != x.rank()) {
    scope.fail(ErrorCode::Attr,
               fmt::format("low has {} entries and high {}, but {} has {} axes", low.size(),
                           high.size(), x.type().to_string(), x.rank()));
  }
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    if (low[axis] == 0 && high[axis] == 0) continue;
    const std::int64_t n = scope.known(x.dims()[axis]);
    constexpr std::int64_t Most = std::int64_t{1} << 31;
    if (std::max({n, low[axis], high[axis]}) > Most || std::min(low[axis], high[axis]) < -Most) {
      scope.fail(ErrorCode::Attr, fmt::format("{} before and {} behind an axis of {} are too many",
                                              low[axis], high[axis], n));
    }
    if (n + low[axis] + high[axis] < 0 || (n == 0 && n + low[axis] + high[axis] > 0)) {
      scope.fail(ErrorCode::Shape, fmt::format("an axis of {} cannot have {} before and {} behind",
                                               n, low[axis], high[axis]));
    }
    x = padded(x, axis, {mode, low[axis], n, high[axis]});
  }
  return x;
}

}  // namespace ricci
