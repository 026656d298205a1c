// Every case of every op, and its gradient, tangent and batch, on the GPU against the reference. By
// default a sample of the cases that every op is part of; RICCI_ALL_CASES=1 runs them all. Without
// a GPU there is nothing to run, and one test says so.
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/ir/text.h"
#include "ricci/op/table.h"

#include "backend/agreement.h"
#include "ops/cases.h"
#include "ops/chosen_cases.h"
#include "ops/transformed_case.h"
#include "support/cuda_run.h"
#include "test_paths.h"

namespace ricci::testing {
namespace {

struct CudaRan {
  std::size_t cases = 0;
  std::size_t gradients = 0;
  std::size_t tangents = 0;
  std::size_t batches = 0;
};
CudaRan& cuda_ran() {
  static CudaRan the;
  return the;
}

void expect_cuda_agreement(const Graph& graph, const Feeds& feeds, const std::string& what) {
  if (graph.outputs().empty()) return;
  const Outcome expected = reference_outcome(graph, feeds);
  const Outcome actual = cuda_outcome(graph, feeds);
  const std::string wrong = disagreement(graph, feeds, actual, expected);
  if (!wrong.empty()) ADD_FAILURE() << what << ": " << wrong << "\n" << print(graph);
}

// Calls `check(case, dtype, what)` for the chosen cases of an op until one fails.
template <class F>
void for_cuda_cases(const OpDescriptor& d, std::span<const DType> dtypes, F&& check) {
  for (const DType dtype : dtypes) {
    std::size_t place = 0;
    for (const Case& c : cases_for(d.kind)) {
      if (!c.rejects.empty() || !c.dtypes.has(dtype) || !is_chosen(d, place++, c, dtype)) continue;
      const std::string what = fmt::format("{} case '{}' in {}", d.info->name, c.name, name(dtype));
      try {
        check(c, dtype, what);
      } catch (const std::exception& e) {
        ADD_FAILURE() << what << ": " << e.what();
      }
      if (::testing::Test::HasFailure()) return;  // one case tells enough
    }
  }
}

class BackendCudaOps : public ::testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] static const OpDescriptor& op() { return all_ops()[GetParam()]; }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BackendCudaOps);

TEST_P(BackendCudaOps, AgreeWithTheReference) {
  if (op().op_class == OpClass::Block) return;
  for_cuda_cases(op(), AllDTypes, [](const Case& c, DType dtype, const std::string& what) {
    // Written out as a loop, the sweep makes as many trips as its tape has rows and no more.
    if (op().kind == OpKind::WhileBackward && c.fails) return;
    const BuiltCase built = build_case(c, dtype);
    if (!built.graph.symbols().empty()) return;
    ++cuda_ran().cases;
    expect_cuda_agreement(built.graph, {built.feeds.begin(), built.feeds.end()}, what);
  });
}

TEST_P(BackendCudaOps, TransformsAgreeWithTheReference) {
  if (op().vjp == RuleSource::Leaf || op().vjp == RuleSource::Refused) return;
  constexpr std::array Fields = {DType::F64, DType::F32, DType::C64, DType::C128};
  for_cuda_cases(op(), Fields, [](const Case& c, DType dtype, const std::string& what) {
    if (c.fails) return;
    const CaseProgram p = program_of(c, dtype);
    if (!p.graph.symbols().empty()) return;
    if (!p.differentiable().empty() && !is_unbounded(c)) {
      const CaseProgram gradient = gradient_of(p, 7);
      expect_cuda_agreement(gradient.graph, gradient.feeds, what + ", gradient");
      ++cuda_ran().gradients;
    }
    if (!p.differentiable().empty()) {
      const CaseProgram tangent = tangent_of(p, 7);
      expect_cuda_agreement(tangent.graph, tangent.feeds, what + ", tangent");
      ++cuda_ran().tangents;
    }
    if (c.op->has(Trait::Random) || p.inputs().empty()) return;
    const CaseProgram batch = batch_of(c, p, p.inputs(), 3).first;
    expect_cuda_agreement(batch.graph, batch.feeds, what + ", batch");
    ++cuda_ran().batches;
  });
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

// Writes the closing summary that `make test` prints.
class CudaSummary : public ::testing::Environment {
 public:
  void TearDown() override {
    const CudaRan& r = cuda_ran();
    if (r.cases + r.gradients == 0) return;
    std::ofstream out(RICCI_BUILD_DIR "/test-summary-cuda-ops.txt");
    out << fmt::format("ops on cuda: {} cases, {} gradients, {} tangents, {} batches\n", r.cases,
                       r.gradients, r.tangents, r.batches);
  }
};
const ::testing::Environment* const cuda_summary =
    ::testing::AddGlobalTestEnvironment(new CudaSummary);  // NOLINT: gtest owns it

}  // namespace
}  // namespace ricci::testing
