#include "schedule/kernel_axes.h"

#include <algorithm>

namespace ricci::schedule {
namespace {

bool is_accumulated(const Group& group, std::int64_t behind) {
  return std::ranges::any_of(group.accumulated, [&](const auto& interval) {
    return interval.first <= behind && behind < interval.second;
  });
}

}  // namespace

Axes axes_of(const Group& group) {
  Axes axes;
  std::vector<std::size_t> kept;
  std::vector<std::size_t> accumulated;
  std::vector<std::size_t> inner;
  const std::vector<std::int64_t>& b = group.boundaries;
  for (std::size_t i = b.size(); i-- > 1;) {
    const std::int64_t behind = b[i - 1];
    if (group.row > 1 && behind < group.row) {
      inner.push_back(i - 1);
    } else {
      (is_accumulated(group, behind) ? accumulated : kept).push_back(i - 1);
    }
  }
  for (const auto* zone : {&kept, &accumulated, &inner}) {
    for (const std::size_t i : *zone) {
      axes.behind.push_back(b[i]);
      axes.extents.push_back(b[i + 1] / b[i]);
    }
  }
  axes.kept = kept.size();
  axes.outer = kept.size() + accumulated.size();
  return axes;
}

std::vector<std::int64_t> spread(const loop::Layout& layout, const StaticDims& dims,
                                 const Axes& axes, std::int64_t unit) {
  std::vector<std::int64_t> strides(axes.extents.size(), 0);
  std::int64_t behind = unit;
  for (std::size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) continue;
    for (std::size_t a = 0; a < strides.size(); ++a) {
      if (axes.behind[a] >= behind && axes.behind[a] < behind * dims[d]) {
        strides[a] = layout.strides[d] * (axes.behind[a] / behind);
      }
    }
    behind *= dims[d];
  }
  return strides;
}

}  // namespace ricci::schedule
