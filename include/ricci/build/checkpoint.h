// Builders that say what a gradient keeps: of a sub-graph, and of a scan.
//
//   std::vector<Value> y = checkpoint(std::array{x, w}, layer, {.policy =
//   CheckpointPolicy::Matmuls});
#pragma once

#include <cstdint>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "ricci/build/control.h"

namespace ricci {

/// What a gradient of a checkpointed sub-graph keeps of it.
struct CheckpointOptions {
  CheckpointPolicy policy = CheckpointPolicy::Nothing;
  std::vector<std::string> names = {};  ///< values of the body, for the policy Named
};
/// The outputs of `body`, whose inner values a gradient computes again instead of keeping them.
/// Values and gradients are those of the body without it. UserError(name) when the body has no
/// value of a name.
std::vector<Value> checkpoint(std::span<const Value> inputs, const BodySource& body,
                              const CheckpointOptions& options = {},
                              std::source_location loc = std::source_location::current());

/// How many carries a scan should keep (ScanOptions::checkpoints) so that a gradient stays within
/// `bytes`. The strategies differ in what is kept of a scan of L steps:
///   all carries (0): L rows, and each step of the body runs once;
///   K of them: K rows and the ⌈L/K⌉ of the segment being recomputed, and each step runs twice.
/// Gives 0 when all carries fit, otherwise the largest K whose rows fit; √L, which needs the
/// fewest rows, when no K does. Sizes of `carries` must be known.
[[nodiscard]] std::int64_t checkpoints_for_budget(std::span<const Type> carries,
                                                  std::int64_t length, std::int64_t bytes);

}  // namespace ricci
