// What the scheduler is told about the device a program is for. It decides by this alone: no
// instruction set, no vendor and no number of threads is named in schedule/.
#pragma once

#include "ricci/ir/graph.h"

namespace ricci::schedule {

class Target {
 public:
  virtual ~Target() = default;
  /// Does the device serve this structured op with a call? What it does not claim, and can be
  /// expanded, is. Asked before attention in a small dtype is widened.
  [[nodiscard]] virtual bool claims(const Graph& graph, const Node& node) const = 0;
  /// Is a call of this op served by more than the reference's kernel? For reports.
  [[nodiscard]] virtual bool has_kernel(const Graph& graph, const Node& node) const = 0;
};

}  // namespace ricci::schedule
