// What the scheduler asks about calls: whose they are, whether they are what they say, and what
// they cost.
#pragma once

#include <optional>
#include <string>

#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"
#include "ricci/ir/graph.h"

namespace ricci::schedule {

/// Does the device serve this call of a node?
[[nodiscard]] bool is_claimed(const Target& target, const loop::Call& call, const Graph& graph,
                              const Node& node);

/// The call that an op is on these arrays: call_of of types that are known to fit.
[[nodiscard]] loop::Call call_on(const Op& op, const std::vector<BufferView>& operands,
                                 const std::vector<BufferView>& results);

/// Why an op cannot be called with these operands or does not give these results; nothing when it
/// can and does. Ops registered at run time are looked up in `registry`.
[[nodiscard]] std::optional<std::string> find_type_fault(const Op& op,
                                                         const std::vector<BufferView>& operands,
                                                         const std::vector<BufferView>& results,
                                                         const Registry& registry);

[[nodiscard]] double call_flops(const Program& program, const CallStep& step);

}  // namespace ricci::schedule
