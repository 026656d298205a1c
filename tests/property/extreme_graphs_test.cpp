// Attributes and sizes at their extremes: refused with a message, or computed alike everywhere.
#include "property/extreme_graphs.h"

#include <array>
#include <fstream>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "property/for_programs.h"
#include "property/random.h"
#include "support/guarded_buffer.h"
#include "test_paths.h"

namespace ricci::testing {
namespace {

std::vector<std::uint8_t> random_bytes(std::uint64_t seed) {
  Rng rng(seed);
  std::vector<std::uint8_t> out(8 + rng.below(32));
  for (std::uint8_t& b : out) b = static_cast<std::uint8_t>(rng.below(256));
  return out;
}

// What a fuzzer does with them, other bytes than those of the next test.
TEST(PropertyExtremeGraphs, AreRefusedOrInterpretedAlikeAsPrograms) {
  constexpr std::uint64_t Others = std::uint64_t{1} << 40;
  const std::uint64_t count = program_count(2000);
  std::size_t ran = 0;
  for (std::uint64_t seed = first_seed() + Others; seed < first_seed() + Others + count; ++seed) {
    const std::string what = fmt::format("extreme graph, seed {}", seed);
    const FaultNote note(what.c_str());
    const ExtremeResult result = try_extreme_graph(random_bytes(seed), ExtremeRun::Interpreted);
    ran += result.kind == ExtremeResult::Kind::Ran ? 1 : 0;
    ASSERT_EQ(result.wrong, "") << "seed " << seed;
  }
  EXPECT_GE(ran, count / 20);
}

TEST(PropertyExtremeGraphs, AreRefusedOrComputedAlike) {
  std::array<std::size_t, 4> counts{};
  const std::uint64_t first = first_seed();
  const std::uint64_t count = program_count(2000);
  std::size_t failures = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const std::string what = fmt::format("extreme graph, seed {}", seed);
    const FaultNote note(what.c_str());
    const ExtremeResult result = try_extreme_graph(random_bytes(seed));
    ++counts[static_cast<std::size_t>(result.kind)];
    if (result.wrong.empty()) continue;
    ADD_FAILURE() << "seed " << seed << ": " << result.wrong;
    if (++failures == 20) break;
  }
  std::ofstream report(RICCI_BUILD_DIR "/test-summary-extreme-graphs.txt");
  report << fmt::format(
      "graphs with extreme attributes and sizes: {} refused, {} run and compared, "
      "{} well formed but large, {} symbolic\n",
      counts[0], counts[3], counts[1], counts[2]);
  if (count >= 1000) {
    EXPECT_GT(counts[0], count / 10);
    EXPECT_GT(counts[3], count / 10);
  }
}

}  // namespace
}  // namespace ricci::testing
