// Every case of every op, and its gradient, tangent and batch, on the GPU against the reference. By
// default a sample of the cases that every op is part of; RICCI_ALL_CASES=1 runs them all. Without
// a GPU there is nothing to run, and one test says so.
#include <gtest/gtest.h>

#include "ricci/ir/text.h"

#include "backend/agreement.h"
#include "ops/runs_of_cases.h"
#include "support/cuda_run.h"

namespace ricci::testing::cuda_ops_test {
namespace {

CaseRuns& cuda_ran() {
  static CaseRuns the;
  return the;
}

void expect_cuda_agreement(const Graph& graph, const Feeds& feeds, const std::string& what) {
  if (graph.outputs().empty()) return;
  const Outcome expected = reference_outcome(graph, feeds);
  const Outcome actual = cuda_outcome(graph, feeds);
  const std::string wrong = disagreement(graph, feeds, actual, expected);
  if (!wrong.empty()) ADD_FAILURE() << what << ": " << wrong << "\n" << print(graph);
}

class BackendCudaOps : public ::testing::TestWithParam<std::size_t> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BackendCudaOps);

TEST_P(BackendCudaOps, AgreeWithTheReference) {
  run_cases(all_ops()[GetParam()], cuda_ran(), expect_cuda_agreement);
}

TEST_P(BackendCudaOps, TransformsAgreeWithTheReference) {
  run_transforms(all_ops()[GetParam()], cuda_ran(), expect_cuda_agreement);
}

INSTANTIATE_TEST_SUITE_P(All, BackendCudaOps,
                         ::testing::Range<std::size_t>(0, why_no_cuda().empty() ? OpCount : 0),
                         [](const auto& op) {
                           return std::string(all_ops()[op.param].info->name);
                         });

TEST(BackendCudaDevice, IsThere) {
  if (why_no_cuda().empty()) return;
  GTEST_SKIP() << fmt::format("no GPU is used here, so {} ops are not run on it: {}",
                              static_cast<std::size_t>(OpCount), why_no_cuda());
}

const ::testing::Environment* const cuda_summary = ::testing::AddGlobalTestEnvironment(
    new CaseSummary("cuda-ops", cuda_ran(), [](const CaseRuns& r) {  // NOLINT: gtest owns it
      return "ops on cuda: " + to_string(r);
    }));

}  // namespace
}  // namespace ricci::testing::cuda_ops_test
