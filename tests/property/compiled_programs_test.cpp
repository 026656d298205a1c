// Random programs on the CPU device: with and without fusion they compute what the reference does,
// and report the faults it reports.
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/rewrite/cleanup.h"
#include "ricci/schedule/program.h"

#include "backend/agreement.h"
#include "property/for_programs.h"
#include "test_paths.h"

namespace ricci::testing {
namespace {

struct Counts : AgreementCounts {
  std::size_t programs = 0;
};
Counts& counts() {
  static Counts the;
  return the;
}

// The empty text when a run may be one of the program.
std::string check_run(const Graph& graph, const Feeds& feeds, const Outcome& actual,
                      const Outcome& expected) {
  std::string wrong = disagreement(graph, feeds, actual, expected, &counts());
  if (wrong.empty() || !std::holds_alternative<ErrorCode>(expected)) return wrong;
  // Nor does it compute what only a branch never taken reads, or only other results of an op.
  const Graph read = prepare_for_device(graph);
  return disagreement(graph, feeds, actual, reference_outcome(read, feeds), &counts());
}

// A compiled program computes what is asked for and nothing else, so what nobody reads is taken
// away first: it might fault.
std::string check_compiled(const Program& p) {
  const Graph graph = dead_code_elimination(p.graph).graph;
  ++counts().programs;
  const Outcome expected = reference_outcome(graph, p.feeds);
  for (const bool fuse : {false, true}) {
    const Outcome actual = compiled_outcome(graph, p.feeds, fuse);
    const std::string wrong = check_run(graph, p.feeds, actual, expected);
    if (!wrong.empty()) return fmt::format("{}: {}", fuse ? "fused" : "op by op", wrong);
  }
  return {};
}

TEST(PropertyCompiled, ComputesWhatTheReferenceDoes) {
  for_programs(program_count(600), {.nodes = 10}, check_compiled);
}

TEST(PropertyCompiled, InEveryDtype) {
  for (const DType dtype : AllDTypes) {
    SCOPED_TRACE(name(dtype));
    for_programs(program_count(16), {.nodes = 12, .dtypes = {dtype}, .random = true},
                 check_compiled);
  }
}

TEST(PropertyCompiled, OutputsMayTakeThePlaceOfInputs) {
  std::size_t donations = 0;
  for_programs(program_count(200), {.nodes = 8}, [&](const Program& p) {
    const Graph graph = dead_code_elimination(p.graph).graph;
    const Outcome expected = reference_outcome(graph, p.feeds);
    return check_run(graph, p.feeds, donated_outcome(graph, p.feeds, donations), expected);
  });
  EXPECT_GE(donations, program_count(200) / 2);
}

// Indices are integers: with one of them far off, many programs fault.
TEST(PropertyCompiled, ReportsTheFaultsOfTheReference) {
  const std::size_t before = counts().faults;
  for_programs(program_count(200), {.nodes = 10}, [](const Program& p) {
    Program wild = p;
    for (auto& [name, value] : wild.feeds) {
      if (!is_int(value.dtype()) || value.numel() == 0) continue;
      auto numbers = value.numbers<std::int64_t>();
      numbers[numbers.size() / 2] = 77;
      value = Tensor::from_numbers<std::int64_t>(value.type(), numbers);
    }
    return check_compiled(wild);
  });
  if (program_count(200) >= 100) {
    EXPECT_GT(counts().faults, before);
  }
}

// Writes the closing summary that `make test` prints.
class Summary : public ::testing::Environment {
 public:
  void TearDown() override {
    const Counts& c = counts();
    if (c.programs == 0) return;
    std::ofstream out(RICCI_BUILD_DIR "/test-summary-cpu-programs.txt");
    out << fmt::format(
        "random programs on the CPU: {} programs, {} outputs exact, {} close, {} within the "
        "reference's own rounding, {} faults\n",
        c.programs, c.exactly, c.closely, c.by_spread, c.faults);
  }
};
const ::testing::Environment* const summary =
    ::testing::AddGlobalTestEnvironment(new Summary);  // NOLINT: gtest owns it

}  // namespace
}  // namespace ricci::testing
