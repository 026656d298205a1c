#include "ricci/build/shape.h"

#include <algorithm>

#include <fmt/format.h>

#include "build/composed.h"

namespace ricci {
namespace {

std::int64_t modulo(std::int64_t a, std::int64_t n) { return (a % n + n) % n; }

// Where element `i` of the padded axis comes from, for an axis of n.
std::int64_t source(PadMode mode, std::int64_t i, std::int64_t n) {
  switch (mode) {
    case PadMode::Edge: return std::clamp<std::int64_t>(i, 0, n - 1);
    case PadMode::Wrap: return modulo(i, n);
    case PadMode::Symmetric: {
      const std::int64_t at = modulo(i, 2 * n);
      return at < n ? at : 2 * n - 1 - at;
    }
    case PadMode::Reflect: break;
  }
  if (n == 1) return 0;
  const std::int64_t at = modulo(i, 2 * (n - 1));
  return at < n ? at : 2 * (n - 1) - at;
}

// Neighbouring places whose sources are neighbours, ascending, descending or all the same.
struct Run {
  std::int64_t first = 0;
  std::int64_t direction = 0;
  std::int64_t length = 1;
};
std::vector<Run> runs_of(PadMode mode, std::int64_t low, std::int64_t n, std::int64_t high) {
  std::vector<Run> runs;
  std::int64_t last = 0;
  for (std::int64_t i = -low; i < n + high; ++i) {
    const std::int64_t at = source(mode, i, n);
    const std::int64_t step = at - last;
    const bool joins = !runs.empty() && step >= -1 && step <= 1 &&
                       (runs.back().length == 1 || runs.back().direction == step);
    if (joins) {
      runs.back().direction = step;
      ++runs.back().length;
    } else {
      runs.push_back({at});
    }
    last = at;
  }
  return runs;
}

Value run_of(Value x, std::size_t axis, const Run& run) {
  if (run.length == 1 || run.direction == 1) return cut(x, axis, run.first, run.length);
  if (run.direction == -1) {
    const Value range = cut(x, axis, run.first - run.length + 1, run.length);
    return reverse(range, {.axes = {axis_of(axis)}});
  }
  Dims dims = x.dims();
  dims[axis] = run.length;
  return broadcast_to(cut(x, axis, run.first, 1), dims);
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
  const Value diagonal = row + static_cast<double>(k);
  return where(lower ? le(column, diagonal) : ge(column, diagonal), x, scalar_like(x, 0));
}

// NumPy's start, count and step for an axis of n.
struct Walk {
  std::int64_t start = 0;
  std::int64_t count = 0;
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
  return {start, reach <= 0 ? 0 : (reach - 1) / distance + 1};
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
    const std::int64_t step = forwards ? range.step : -range.step;
    const std::int64_t count = walk.count;
    x = cut(x, axis, count == 0 ? 0 : start, count == 0 ? 0 : (count - 1) * step + 1);
    if (count > 1 && step > 1) x = take_every(x, {.axis = axis_of(axis), .stride = step});
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
    std::vector<Value> parts;
    for (const Run& run : runs_of(mode, low[axis], n, high[axis])) {
      parts.push_back(run_of(x, axis, run));
    }
    x = parts.empty() ? cut(x, axis, 0, 0) : joined(parts, axis);
  }
  return x;
}

}  // namespace ricci
