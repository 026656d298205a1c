// Random programs on the CPU device: with and without fusion they compute what the reference does,
// and report the faults it reports. Every buffer lies between guard pages.
#include <algorithm>
#include <fstream>
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/verify.h"
#include "ricci/runtime/compiled_graph.h"

#include "backend/agreement.h"
#include "backend/cpu/run/executable.h"
#include "backend/cpu/run/target.h"
#include "backend/cpu/run/tiling.h"
#include "property/for_programs.h"
#include "property/laws.h"
#include "support/compare.h"
#include "test_paths.h"

namespace ricci::testing {
namespace {

struct Counts : AgreementCounts {
  std::size_t programs = 0;
  std::size_t large = 0;
};
Counts& counts() {
  static Counts the;
  return the;
}

void count_program(const Graph& graph) {
  ++counts().programs;
  if (is_large(graph)) ++counts().large;
}

// A compiled program computes what is asked for and nothing else, so what nobody reads is taken
// away first: it might fault.
std::string check_compiled(const Program& p) {
  const Graph graph = dead_code_elimination(p.graph).graph;
  count_program(graph);
  const Outcome expected = reference_outcome(graph, p.feeds);
  for (const bool fuse : {false, true}) {
    const Outcome actual = compiled_outcome(graph, p.feeds, fuse);
    const std::string wrong = device_disagreement(graph, p.feeds, actual, expected, &counts());
    if (!wrong.empty()) return fmt::format("{}: {}", fuse ? "fused" : "op by op", wrong);
  }
  return {};
}

TEST(PropertyCompiled, ComputesWhatTheReferenceDoes) {
  for_programs(program_count(600), {.nodes = 10, .large = true}, check_compiled);
  expect_few_excused(counts());
}

TEST(PropertyCompiled, InEveryDtype) {
  for (const DType dtype : AllDTypes) {
    SCOPED_TRACE(name(dtype));
    for_programs(program_count(16), {.nodes = 12, .dtypes = {dtype}, .random = true, .large = true},
                 check_compiled);
  }
  expect_few_excused(counts());
}

TEST(PropertyCompiled, OutputsMayTakeThePlaceOfInputs) {
  std::size_t donations = 0;
  for_programs(program_count(200), {.nodes = 8, .large = true}, [&](const Program& p) {
    const Graph graph = dead_code_elimination(p.graph).graph;
    count_program(graph);
    const Outcome expected = reference_outcome(graph, p.feeds);
    return device_disagreement(graph, p.feeds, donated_outcome(graph, p.feeds, donations), expected,
                               &counts());
  });
  EXPECT_GE(donations, program_count(200) / 2);
}

TEST(PropertyCompiled, ReportsTheFaultsOfTheReference) {
  const std::size_t before = counts().faults;
  for_programs(program_count(200), {.nodes = 10},
               [](const Program& p) { return check_compiled(with_wild_indices(p)); });
  if (program_count(200) >= 100) {
    EXPECT_GT(counts().faults, before);
  }
}

// [planner-remat] Whatever is computed again, results and faults stay the same to the bit, and no
// program needs more memory than it did.
TEST(PropertyCompiled, BudgetsOfMemoryChangeNoBit) {
  struct Ran {
    std::vector<Tensor> outputs;
    std::string fault;
  };
  std::size_t smaller = 0;
  const auto check = [&](const Program& p) -> std::string {
    const Graph graph = dead_code_elimination(p.graph).graph;
    for (const bool fuse : {false, true}) {
      const auto made = [&](std::int64_t budget) {
        return std::make_shared<const ricci::Program>(
            make_program(graph, {.fuse = fuse, .target = &cpu::target(), .memory_budget = budget}));
      };
      const auto run = [&](std::shared_ptr<const ricci::Program> program) -> Ran {
        try {
          return {load(graph, std::move(program), Device::cpu(1)).run(p.feeds), ""};
        } catch (const UserError& e) {
          return {{}, e.what()};
        }
      };
      const auto freely = made(0);
      const auto tight = made(std::max<std::int64_t>(1, freely->arena_bytes / 2));
      verify(*tight);
      if (tight->arena_bytes > freely->arena_bytes) return "it needs more memory than before";
      if (tight->arena_bytes < freely->arena_bytes) ++smaller;
      const Ran expected = run(freely);
      const Ran actual = run(tight);
      if (actual.fault != expected.fault) return "fault: " + actual.fault;
      for (std::size_t i = 0; i < expected.outputs.size(); ++i) {
        if (!same(actual.outputs[i], expected.outputs[i])) return fmt::format("output {}", i);
      }
    }
    return {};
  };
  for_programs(program_count(100), {.nodes = 20, .random = true, .large = true}, check);
  EXPECT_GE(smaller, program_count(100) / 10);
}

// However the work of a program is shared out, it gives the same bits, whole and differentiated.
TEST(PropertyCompiled, ThreadsChangeNoBit) {
  const GeneratorOptions large{.random = true, .tame = true, .large = true};
  const std::uint64_t first = first_seed() / 8;
  for (std::uint64_t k = first; k < first + program_count(12); ++k) {
    const std::uint64_t seed = 8 * k + 7;  // those that are large
    Program p = generate(seed, large);
    if (k % 2 == 1) p = transformed(p, "f", dtypes::floats);
    const Graph graph = dead_code_elimination(p.graph).graph;
    count_program(graph);
    std::optional<std::vector<Tensor>> alone;
    for (const int threads : {1, 2, 3, 8}) {
      const std::vector<Tensor> outputs = compile(graph, Device::cpu(threads)).run(p.feeds);
      if (!alone) alone = outputs;
      EXPECT_EQ(difference(outputs, *alone), "")
          << "seed " << seed << ", " << threads << " threads";
    }
  }
}

// The large ones are there for what small ones do not have.
TEST(PropertyCompiled, LargeProgramsHaveTilesChunksAndProducts) {
  std::size_t tiles = 0;
  std::size_t chunks = 0;
  std::size_t calls = 0;
  for (std::uint64_t seed = 7; seed < 8 * 60; seed += 8) {
    const Program p = generate(seed, {.large = true});
    ASSERT_TRUE(is_large(p.graph)) << seed;
    const ricci::Program made = make_program(p.graph, {.target = &cpu::target()});
    const auto any = [&](auto&& holds) {
      return std::ranges::any_of(made.kernels, holds) ? 1U : 0U;
    };
    tiles += any([](const loop::Kernel& k) { return cpu::tile_count(k) > 1; });
    chunks += any([](const loop::Kernel& k) { return k.chunks > 1; });
    calls += std::ranges::any_of(
                 made.steps, [](const Step& s) { return std::holds_alternative<CallStep>(s.what); })
                 ? 1U
                 : 0U;
  }
  EXPECT_GE(tiles, 20U);
  EXPECT_GE(chunks, 5U);
  EXPECT_GE(calls, 20U);
}

// Writes the closing summary that `make test` prints.
class Summary : public ::testing::Environment {
 public:
  void TearDown() override {
    const Counts& c = counts();
    if (c.programs == 0) return;
    std::ofstream out(RICCI_BUILD_DIR "/test-summary-cpu-programs.txt");
    out << fmt::format("random programs on the CPU, between guard pages: {} programs, {} of them "
                       "large, {}\n",
                       c.programs, c.large, to_string(c));
  }
};
const ::testing::Environment* const summary =
    ::testing::AddGlobalTestEnvironment(new Summary);  // NOLINT: gtest owns it

}  // namespace
}  // namespace ricci::testing
