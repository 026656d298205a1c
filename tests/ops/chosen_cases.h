// Which cases of the ops a run of the tests takes, where it does not take them all.
#pragma once

#include <cstdlib>
#include <string>

#include "ricci/op/ops.h"
#include "ricci/op/table.h"
#include "ricci/support/hash.h"

#include "ops/cases.h"

namespace ricci::testing {

/// The first case of an op in each dtype (`place` counts them), and one in so many of the others;
/// all of them with RICCI_ALL_CASES=1.
inline bool is_chosen(const OpDescriptor& d, std::size_t place, const Case& c, DType dtype) {
  static const bool all = std::getenv("RICCI_ALL_CASES") != nullptr;
  constexpr std::uint64_t OneIn = 6;
  if (all || place == 0) return true;
  Hasher hash;
  hash.add(d.info->name).add(c.name).add(static_cast<std::uint64_t>(dtype));
  return hash.value() % OneIn == 0;
}

/// A loop whose trips nobody counts has no gradient.
inline bool is_unbounded(const Case& c) {
  const auto* loop = c.op->as<op::While>();
  return loop != nullptr && !loop->max_iterations;
}

}  // namespace ricci::testing
