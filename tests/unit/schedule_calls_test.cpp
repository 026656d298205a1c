// Which ops are calls, and what their calls say.
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/op/table.h"
#include "ricci/rule/lower.h"
#include "ricci/schedule/program.h"

#include "ops/cases.h"

namespace ricci::testing {
namespace {

// Views, copies, choices, conversions and reductions are loops in every dtype: no device has to
// have kernels for them.
TEST(ScheduleCalls, OpsThatAreLoopsInEveryDtype) {
  const std::set<OpKind> loops{
      OpKind::Iota,    OpKind::DimSize, OpKind::Compare,     OpKind::Where,     OpKind::Cast,
      OpKind::Reshape, OpKind::Expand,  OpKind::Narrow,      OpKind::Transpose, OpKind::Concat,
      OpKind::Reverse, OpKind::Reduce,  OpKind::StopGradient};
  std::size_t checked = 0;
  for (const OpKind kind : loops) {
    for (const Case& c : cases_for(kind)) {
      if (!c.rejects.empty()) continue;
      for (const DType dtype : AllDTypes) {
        if (!c.dtypes.has(dtype)) continue;
        const BuiltCase built = build_case(c, dtype);
        if (!built.graph.symbols().empty()) continue;
        const Graph prepared = prepare_for_device(built.graph);
        for (const Node& node : prepared.nodes()) {
          if (!loops.contains(node.op.kind())) continue;
          ++checked;
          EXPECT_NE(lower_node(prepared, node).form, Lowering::Form::Call)
              << fmt::format("'{}' of {}, case '{}'", node.op.mnemonic(), name(dtype), c.name);
        }
      }
    }
  }
  EXPECT_GT(checked, 500U);
}

}  // namespace
}  // namespace ricci::testing
