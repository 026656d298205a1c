#include "schedule/bounds.h"

#include <algorithm>

namespace ricci::schedule {
namespace {

using loop::Bound;

// The same bound, its first stride positive, so that bounds in one direction look alike.
Bound directed(Bound b, const StaticDims& dims) {
  for (std::size_t a = 0; a < dims.size(); ++a) {
    if (dims[a] == 1) b.place.strides[a] = 0;
  }
  const auto first = std::ranges::find_if(b.place.strides, [](std::int64_t s) { return s != 0; });
  if (first == b.place.strides.end() || *first > 0) return b;
  for (std::int64_t& s : b.place.strides) s = -s;
  b.place.offset = b.limit - 1 - b.place.offset;
  return b;
}

// Both, which have the same strides.
Bound both(const Bound& a, const Bound& b) {
  const std::int64_t low = std::max(-a.place.offset, -b.place.offset);
  const std::int64_t high = std::min(a.limit - a.place.offset, b.limit - b.place.offset);
  return {{-low, a.place.strides}, std::max<std::int64_t>(high - low, 0)};
}

struct Range {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
Range range_of(const loop::Layout& place, const StaticDims& dims) {
  Range r{place.offset, place.offset};
  for (std::size_t a = 0; a < dims.size(); ++a) {
    (place.strides[a] < 0 ? r.low : r.high) += place.strides[a] * (dims[a] - 1);
  }
  return r;
}

}  // namespace

std::optional<std::vector<Bound>> needed_bounds(std::vector<Bound> bounds, const StaticDims& dims) {
  std::vector<Bound> needed;
  if (loop::element_count(dims) == 0) return needed;
  for (Bound& one : bounds) {
    Bound b = directed(std::move(one), dims);
    const auto same = std::ranges::find_if(
        needed, [&](const Bound& other) { return other.place.strides == b.place.strides; });
    if (same == needed.end()) {
      needed.push_back(std::move(b));
    } else {
      *same = both(*same, b);
    }
  }
  for (const Bound& b : needed) {
    const Range r = range_of(b.place, dims);
    if (b.limit <= 0 || r.high < 0 || r.low >= b.limit) return std::nullopt;
  }
  std::erase_if(needed, [&](const Bound& b) {
    const Range r = range_of(b.place, dims);
    return r.low >= 0 && r.high < b.limit;
  });
  return needed;
}

}  // namespace ricci::schedule
