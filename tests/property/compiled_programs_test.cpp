// Random programs on the CPU device: with and without fusion they compute what the reference does,
// and report the faults it reports.
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/rewrite/cleanup.h"

#include "backend/agreement.h"
#include "property/for_programs.h"

namespace ricci::testing {
namespace {

std::size_t& programs_run() {
  static std::size_t count = 0;
  return count;
}

// A compiled program computes what is asked for and nothing else, so what nobody reads is taken
// away first: it might fault.
std::string check_compiled(const Program& p) {
  const Graph graph = dead_code_elimination(p.graph).graph;
  ++programs_run();
  const Outcome expected = reference_outcome(graph, p.feeds);
  for (const bool fuse : {false, true}) {
    const Outcome actual = compiled_outcome(graph, p.feeds, fuse);
    const std::string wrong = disagreement(graph, p.feeds, actual, expected);
    if (!wrong.empty()) return fmt::format("{}: {}", fuse ? "fused" : "op by op", wrong);
  }
  return {};
}

TEST(PropertyCompiled, ComputesWhatTheReferenceDoes) {
  for_programs(program_count(700), {.nodes = 10}, check_compiled);
}

TEST(PropertyCompiled, InEveryDtype) {
  for (const DType dtype : AllDTypes) {
    SCOPED_TRACE(name(dtype));
    for_programs(program_count(24), {.nodes = 12, .dtypes = {dtype}, .random = true},
                 check_compiled);
  }
}

// Writes the closing summary that `make test` prints.
class Summary : public ::testing::Environment {
 public:
  void TearDown() override {
    if (programs_run() == 0) return;
    const AgreementCounts& c = agreement_counts();
    std::ofstream out(RICCI_BUILD_DIR "/test-summary-cpu-programs.txt");
    out << fmt::format(
        "random programs on the CPU: {} programs, {} outputs exact, {} close, {} within the "
        "reference's own rounding, {} faults\n",
        programs_run(), c.exactly, c.closely, c.by_spread, c.faults);
  }
};
const ::testing::Environment* const summary =
    ::testing::AddGlobalTestEnvironment(new Summary);  // NOLINT: gtest owns it

}  // namespace
}  // namespace ricci::testing
