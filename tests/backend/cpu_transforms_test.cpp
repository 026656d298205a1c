// The gradient, tangent and batch of every op case on the CPU device against the reference
// interpreter. By default a sample of the cases that every op is part of; RICCI_ALL_CASES=1 runs
// them all.
#include <algorithm>

#include <gtest/gtest.h>

#include "ricci/ir/text.h"

#include "backend/agreement.h"
#include "ops/runs_of_cases.h"
#include "support/guarded_buffer.h"

namespace ricci::testing::cpu_transforms_test {
namespace {

CaseRuns& ran() {
  static CaseRuns the;
  return the;
}

void expect_agreement(const Graph& graph, const Feeds& feeds, const std::string& what) {
  if (graph.outputs().empty()) return;
  SCOPED_TRACE(what);
  const FaultNote note(what.c_str());
  const Outcome expected = reference_outcome(graph, feeds);
  const Outcome actual = compiled_outcome(graph, feeds, true);
  EXPECT_EQ(disagreement(graph, feeds, actual, expected), "") << print(graph);
}

class BackendTransforms : public ::testing::TestWithParam<std::size_t> {};
RICCI_FOR_ALL_OPS(BackendTransforms);

TEST_P(BackendTransforms, AgreeWithTheReference) {
  const OpDescriptor& d = all_ops()[GetParam()];
  if (!has_transforms(d)) return;
  for_chosen_cases(d, FieldDTypes, [](const Case& c, DType dtype, const std::string& what) {
    if (c.fails) return;
    ++ran().cases;
    run_transforms(c, dtype, what, ran(), expect_agreement);
  });
}

std::int64_t largest_tensor(const Graph& graph) {
  std::int64_t most = 1;
  for (const Node& node : graph.nodes()) {
    for (const Type& t : node.types) most = std::max(most, t.numel().value_or(0));
  }
  return most;
}

// Cases are small; a batch of one makes enough elements to be shared out among threads in tiles,
// and a gradient of it sums over the batch, tile by tile.
TEST_P(BackendTransforms, LargeBatchesAgreeWithTheReference) {
  const OpDescriptor& d = all_ops()[GetParam()];
  if (!has_transforms(d)) return;
  if (has(d.info->traits, Trait::Random)) return;
  // Structured ops do much for each element, and the reference does it slowly.
  const std::int64_t elements = d.op_class == OpClass::Structured ? 10000 : 80000;
  for (const Case& c : cases_for(d.kind)) {
    if (!c.rejects.empty() || c.fails || !c.dtypes.has(DType::F32)) continue;
    const CaseProgram p = program_of(c, DType::F32);
    if (!p.graph.symbols().empty() || p.inputs().empty()) continue;
    const std::int64_t size = largest_tensor(p.graph);
    if (size < 6 || is_unbounded(c)) continue;
    const std::string what = fmt::format("{} case '{}'", d.info->name, c.name);
    const std::int64_t batch = std::clamp<std::int64_t>(elements / size, 3, 4000);
    const CaseProgram batched = batch_of(c, p, {p.inputs()[0]}, batch).first;
    expect_agreement(batched.graph, batched.feeds, what + ", large batch");
    if (!batched.differentiable().empty()) {
      const CaseProgram gradient = gradient_of(batched, 7);
      expect_agreement(gradient.graph, gradient.feeds, what + ", gradient of a large batch");
    }
    return;  // one case is enough
  }
}

const ::testing::Environment* const transform_summary = ::testing::AddGlobalTestEnvironment(
    new CaseSummary("cpu-transforms", ran(), [](const CaseRuns& r) {  // NOLINT: gtest owns it
      return "transforms on the CPU, between guard pages: " + to_string(r);
    }));

}  // namespace
}  // namespace ricci::testing::cpu_transforms_test
