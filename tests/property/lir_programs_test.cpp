// Random programs run by the interpreter of programs: made for it and made for the CPU they compute
// what the reference does, and report the faults it reports. The same programs run on the CPU in
// PropertyCompiled.
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/compiler/rewrite/cleanup.h"

#include "backend/agreement.h"
#include "property/for_programs.h"
#include "support/lir_run.h"
#include "test_paths.h"

namespace ricci::testing {
namespace {

struct LirCounts : AgreementCounts {
  std::size_t programs = 0;
  std::size_t large = 0;
};
LirCounts& lir_counts() {
  static LirCounts the;
  return the;
}

// What nobody reads is taken away first: it might fault, and a device does not compute it.
std::string check_on_lir(const Program& p) {
  const Graph graph = dead_code_elimination(p.graph).graph;
  ++lir_counts().programs;
  if (is_large(graph)) ++lir_counts().large;
  const Outcome expected = reference_outcome(graph, p.feeds);
  for (const MadeFor target : all_made_for()) {
    const Outcome actual = lir_outcome(graph, p.feeds, target);
    const std::string wrong = device_disagreement(graph, p.feeds, actual, expected, &lir_counts());
    if (!wrong.empty()) return fmt::format("{}: {}", name(target), wrong);
  }
  return {};
}

TEST(PropertyLir, ComputesWhatTheReferenceDoes) {
  for_programs(program_count(600), {.nodes = 10, .large = true}, check_on_lir);
  expect_few_excused(lir_counts());
}

TEST(PropertyLir, InEveryDtype) {
  for (const DType dtype : AllDTypes) {
    SCOPED_TRACE(name(dtype));
    for_programs(program_count(16), {.nodes = 12, .dtypes = {dtype}, .random = true, .large = true},
                 check_on_lir);
  }
  expect_few_excused(lir_counts());
}

TEST(PropertyLir, OutputsMayTakeThePlaceOfInputs) {
  std::size_t donations = 0;
  for_programs(program_count(200), {.nodes = 8}, [&](const Program& p) {
    const Graph graph = dead_code_elimination(p.graph).graph;
    ++lir_counts().programs;
    const Outcome expected = reference_outcome(graph, p.feeds);
    const Outcome actual = donated_lir_outcome(graph, p.feeds, donations);
    return device_disagreement(graph, p.feeds, actual, expected, &lir_counts());
  });
  EXPECT_GE(donations, program_count(200) / 2);
}

TEST(PropertyLir, ReportsTheFaultsOfTheReference) {
  const std::size_t before = lir_counts().faults;
  for_programs(program_count(200), {.nodes = 10},
               [](const Program& p) { return check_on_lir(with_wild_indices(p)); });
  if (program_count(200) >= 100) {
    EXPECT_GT(lir_counts().faults, before);
  }
}

// Writes the closing summary that `make test` prints.
class LirSummary : public ::testing::Environment {
 public:
  void TearDown() override {
    const LirCounts& c = lir_counts();
    if (c.programs == 0) return;
    std::ofstream out(RICCI_BUILD_DIR "/test-summary-lir-programs.txt");
    out << fmt::format("random programs on lir, {} runs: {} programs, {} of them large, {}\n",
                       runs_on_lir(), c.programs, c.large, to_string(c));
  }
};
const ::testing::Environment* const lir_summary =
    ::testing::AddGlobalTestEnvironment(new LirSummary);  // NOLINT: gtest owns it

}  // namespace
}  // namespace ricci::testing
