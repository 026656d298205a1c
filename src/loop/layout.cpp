#include "ricci/compiler/loop/layout.h"

#include <algorithm>

#include "ricci/support/error.h"

namespace ricci::loop {

std::int64_t element_count(std::span<const std::int64_t> dims) {
  std::int64_t n = 1;
  for (const std::int64_t d : dims) n *= d;
  return n;
}

Layout contiguous(std::span<const std::int64_t> dims) {
  Layout l{0, std::vector<std::int64_t>(dims.size())};
  std::int64_t stride = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    l.strides[i] = stride;
    stride *= dims[i];
  }
  return l;
}

bool is_contiguous(const Layout& layout, std::span<const std::int64_t> dims) {
  return is_per_row(layout, dims, 1);
}

bool is_per_row(const Layout& layout, std::span<const std::int64_t> dims, std::int64_t row) {
  if (layout.offset != 0) return false;
  std::int64_t after = 1;  // elements behind this axis
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == 1) continue;
    if (after * dims[i] <= row) {
      if (layout.strides[i] != 0) return false;
    } else if (after % row != 0 || layout.strides[i] != after / row) {
      return false;
    }
    after *= dims[i];
  }
  return row == 1 || after >= row;
}

std::optional<Layout> reshaped(const Layout& layout, std::span<const std::int64_t> from,
                               std::span<const std::int64_t> to) {
  Layout result{layout.offset, std::vector<std::int64_t>(to.size(), 0)};
  if (element_count(to) == 0) return result;
  // Walks both shapes from the back, in blocks of equal element counts.
  std::size_t f = from.size();
  std::size_t t = to.size();
  while (t > 0 || f > 0) {
    while (f > 0 && from[f - 1] == 1) --f;
    if (t > 0 && to[t - 1] == 1) {
      --t;
      continue;
    }
    if (f == 0 || t == 0) break;
    // One block: the smallest number of axes on either side with the same product.
    std::size_t f_begin = f - 1;
    std::size_t t_begin = t - 1;
    std::int64_t f_count = from[f_begin];
    std::int64_t t_count = to[t_begin];
    while (f_count != t_count) {
      if (f_count < t_count) {
        if (f_begin == 0) return std::nullopt;
        f_count *= from[--f_begin];
      } else {
        if (t_begin == 0) return std::nullopt;
        t_count *= to[--t_begin];
      }
    }
    // The old axes of the block must be one run.
    std::int64_t unit = 0;
    std::int64_t expected = 0;
    for (std::size_t i = f; i-- > f_begin;) {
      if (from[i] == 1) continue;
      if (expected == 0) {
        unit = layout.strides[i];
      } else if (layout.strides[i] != unit * expected) {
        return std::nullopt;
      }
      expected = (expected == 0 ? 1 : expected) * from[i];
    }
    std::int64_t stride = unit;
    for (std::size_t i = t; i-- > t_begin;) {
      result.strides[i] = stride;
      stride *= to[i];
    }
    f = f_begin;
    t = t_begin;
  }
  return result;
}

Layout broadcast(const Layout& layout, std::span<const std::int64_t> from,
                 std::span<const std::int64_t> to) {
  check_internal(from.size() <= to.size(), "a value is broadcast to a lower rank");
  Layout result{layout.offset, std::vector<std::int64_t>(to.size(), 0)};
  const std::size_t shift = to.size() - from.size();
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] == to[shift + i]) result.strides[shift + i] = layout.strides[i];
  }
  return result;
}

}  // namespace ricci::loop
