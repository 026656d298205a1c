// How dot_general sorts an operand's axes.
#pragma once

#include <cstddef>
#include <vector>

#include "ricci/op/attr.h"

namespace ricci {

/// The axes of a rank that are neither contracting nor batch, ascending.
[[nodiscard]] inline Axes free_axes(std::size_t rank, const Axes& contracting, const Axes& batch) {
  std::vector<bool> taken(rank, false);
  for (const Axis a : contracting) taken[a.index()] = true;
  for (const Axis a : batch) taken[a.index()] = true;
  Axes out;
  for (std::size_t i = 0; i < rank; ++i) {
    if (!taken[i]) out.emplace_back(static_cast<std::int64_t>(i));
  }
  return out;
}

/// The dims of some axes, in the axes' order.
[[nodiscard]] inline Dims dims_of(const Dims& dims, const Axes& axes) {
  Dims out;
  for (const Axis a : axes) out.push_back(dims[a.index()]);
  return out;
}

}  // namespace ricci
