// Transposes that rules think of as moving one axis.
#pragma once

#include <algorithm>

#include "ricci/build/build.h"

namespace ricci::rule {

/// `count` axes, from `first` on.
[[nodiscard]] inline Axes counted(std::size_t first, std::size_t count) {
  Axes out;
  for (std::size_t i = 0; i < count; ++i) out.emplace_back(static_cast<std::int64_t>(first + i));
  return out;
}

/// The transpose by `perm`; `v` itself when nothing moves.
[[nodiscard]] inline Value permuted(Value v, Axes perm) {
  if (perm == counted(0, v.rank())) return v;
  return transpose(v, {.perm = std::move(perm)});
}

/// Axis `from` taken out and put back as axis `to`; the others keep their order.
[[nodiscard]] inline Value with_axis_moved(Value v, std::size_t from, std::size_t to) {
  Axes perm = counted(0, v.rank());
  perm.erase(perm.begin() + static_cast<std::ptrdiff_t>(from));
  perm.insert(perm.begin() + static_cast<std::ptrdiff_t>(to), static_cast<std::int64_t>(from));
  return permuted(v, std::move(perm));
}

}  // namespace ricci::rule
