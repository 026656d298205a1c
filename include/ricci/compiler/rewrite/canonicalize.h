// Simplification by rewrite rules. Each rule is exact to the bit (any NaN counts as any other):
// floats are never reassociated, and `x + 0` stays, because -0.0 + 0.0 is not -0.0.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ricci/compiler/rewrite/pass.h"

namespace ricci {

/// Applies all rules until none applies, then drops what died.
///   Before: any well-formed graph.
///   After: no rule applies anywhere, bodies included, and there is no dead node. No later pass may
///   need this for its correctness.
[[nodiscard]] PassResult canonicalize(const Graph& graph);

/// A rule, for documentation and tests.
struct RuleInfo {
  std::string_view name;
  std::string_view identity;  ///< `transpose(transpose(x, p), q) -> transpose(x, p∘q)`
};
[[nodiscard]] std::span<const RuleInfo> rewrite_rules();

/// What every rule shrinks: the sum over nodes of their weight and of how deep their operands lie.
/// It bounds the number of rewrites.
[[nodiscard]] std::uint64_t rewrite_measure(const Graph& graph);

}  // namespace ricci
