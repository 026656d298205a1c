// What a scan keeps for its gradient: its policy, or what fits its budget.
#pragma once

#include <optional>

#include "ricci/compiler/rule/vjp.h"

namespace ricci::rule {

struct ScanPlan {
  /// The policy that was found: never Auto, and without a budget.
  ScanSave policy = ScanSave::Carries;
  std::int64_t checkpoints = 0;      ///< carries that are kept; 0 when all are
  std::optional<BodyHalves> halves;  ///< the body's gradient cut where values are saved
};

[[nodiscard]] ScanPlan plan_saving(const op::Scan& op, const ForwardContext& c);

}  // namespace ricci::rule
