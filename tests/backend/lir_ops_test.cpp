// Every case of every op, and its gradient, tangent and batch, run by the interpreter of programs
// against the reference: as programs made for it and as programs made for the CPU. By default a
// sample of the cases that every op is part of; RICCI_ALL_CASES=1 runs them all.
#include <gtest/gtest.h>

#include "ricci/ir/text.h"

#include "backend/agreement.h"
#include "ops/runs_of_cases.h"
#include "support/lir_run.h"

namespace ricci::testing::lir_ops_test {
namespace {

CaseRuns& ran() {
  static CaseRuns the;
  return the;
}

void expect_agreement(const Graph& graph, const Feeds& feeds, const std::string& what) {
  if (graph.outputs().empty()) return;
  const Outcome expected = reference_outcome(graph, feeds);
  for (const MadeFor target : all_made_for()) {
    const Outcome actual = lir_outcome(graph, feeds, target);
    const std::string wrong = disagreement(graph, feeds, actual, expected);
    if (!wrong.empty()) {
      ADD_FAILURE() << what << ", " << name(target) << ": " << wrong << "\n" << print(graph);
    }
  }
}

class BackendLirOps : public ::testing::TestWithParam<std::size_t> {};
RICCI_FOR_ALL_OPS(BackendLirOps);

TEST_P(BackendLirOps, AgreeWithTheReference) {
  run_cases(all_ops()[GetParam()], ran(), expect_agreement);
}

TEST_P(BackendLirOps, TransformsAgreeWithTheReference) {
  run_transforms(all_ops()[GetParam()], ran(), expect_agreement);
}

const ::testing::Environment* const summary = ::testing::AddGlobalTestEnvironment(
    new CaseSummary("lir-ops", ran(), [](const CaseRuns& r) {  // NOLINT: gtest owns it
      return fmt::format("ops on lir, {} runs: {}", runs_on_lir(), to_string(r));
    }));

}  // namespace
}  // namespace ricci::testing::lir_ops_test
