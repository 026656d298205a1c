// The gradient, tangent and batch of every op case on the CPU device against the reference
// interpreter. By default a sample of the cases that every op is part of; RICCI_ALL_CASES=1 runs
// them all.
#include <algorithm>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/ir/text.h"
#include "ricci/op/table.h"

#include "backend/agreement.h"
#include "ops/cases.h"
#include "ops/chosen_cases.h"
#include "ops/transformed_case.h"
#include "support/guarded_buffer.h"
#include "test_paths.h"

namespace ricci::testing {
namespace {

struct Ran {
  std::size_t cases = 0;
  std::size_t gradients = 0;
  std::size_t tangents = 0;
  std::size_t batches = 0;
};
Ran& ran() {
  static Ran the;
  return the;
}

void expect_agreement(const CaseProgram& p, const std::string& what) {
  if (p.graph.outputs().empty()) return;
  SCOPED_TRACE(what);
  const FaultNote note(what.c_str());
  const Outcome expected = reference_outcome(p.graph, p.feeds);
  const Outcome actual = compiled_outcome(p.graph, p.feeds, true);
  EXPECT_EQ(disagreement(p.graph, p.feeds, actual, expected), "") << print(p.graph);
}

void check_transforms(const Case& c, DType dtype, const std::string& what) {
  const CaseProgram p = program_of(c, dtype);
  if (!p.graph.symbols().empty()) return;
  ++ran().cases;
  if (!p.differentiable().empty()) {
    if (!is_unbounded(c)) {
      expect_agreement(gradient_of(p, 7), what + ", gradient");
      ++ran().gradients;
    }
    expect_agreement(tangent_of(p, 7), what + ", tangent");
    ++ran().tangents;
  }
  if (c.op->has(Trait::Random) || p.inputs().empty()) return;
  expect_agreement(batch_of(c, p, p.inputs(), 3).first, what + ", batch");
  ++ran().batches;
}

class BackendTransforms : public ::testing::TestWithParam<std::size_t> {};

TEST_P(BackendTransforms, AgreeWithTheReference) {
  const OpDescriptor& d = all_ops()[GetParam()];
  if (d.vjp == RuleSource::Leaf || d.vjp == RuleSource::Refused) return;
  std::size_t place = 0;
  for (const Case& c : cases_for(d.kind)) {
    if (!c.rejects.empty() || c.fails) continue;
    for (const DType dtype : {DType::F64, DType::F32, DType::C64, DType::C128}) {
      if (!c.dtypes.has(dtype) || !is_chosen(d, place / 4, c, dtype)) continue;
      const std::string what = fmt::format("{} case '{}' in {}", d.info->name, c.name, name(dtype));
      try {
        check_transforms(c, dtype, what);
      } catch (const std::exception& e) {
        ADD_FAILURE() << what << ": " << e.what();
      }
      if (HasFailure()) return;  // one case tells enough
      ++place;
    }
  }
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
  if (d.vjp == RuleSource::Leaf || d.vjp == RuleSource::Refused) return;
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
    expect_agreement(batched, what + ", large batch");
    if (!batched.differentiable().empty()) {
      expect_agreement(gradient_of(batched, 7), what + ", gradient of a large batch");
    }
    return;  // one case is enough
  }
}

INSTANTIATE_TEST_SUITE_P(All, BackendTransforms, ::testing::Range<std::size_t>(0, OpCount),
                         [](const auto& op) {
                           return std::string(all_ops()[op.param].info->name);
                         });

// Writes the closing summary that `make test` prints.
class TransformSummary : public ::testing::Environment {
 public:
  void TearDown() override {
    if (ran().cases == 0) return;
    std::ofstream out(RICCI_BUILD_DIR "/test-summary-cpu-transforms.txt");
    out << fmt::format(
        "transforms on the CPU, between guard pages: {} cases, {} gradients, {} tangents, {} "
        "batches\n",
        ran().cases, ran().gradients, ran().tangents, ran().batches);
  }
};
const ::testing::Environment* const transform_summary =
    ::testing::AddGlobalTestEnvironment(new TransformSummary);  // NOLINT: gtest owns it

}  // namespace
}  // namespace ricci::testing
