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

/// Do tests of the reference alone take this op? One in so many with RICCI_OPS_ONE_IN, for builds
/// that differ from one that takes all of them in their devices only.
inline bool is_chosen(const OpDescriptor& d) {
  static const char* const given = std::getenv("RICCI_OPS_ONE_IN");
  const std::uint64_t one_in = given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  return one_in <= 1 || Hasher().add(d.info->name).value() % one_in == 0;
}

/// A loop whose trips nobody counts has no gradient.
inline bool is_unbounded(const Case& c) {
  const auto* loop = c.op->as<op::While>();
  return loop != nullptr && !loop->max_iterations;
}

}  // namespace ricci::testing
