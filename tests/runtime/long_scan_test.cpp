// Long loops: a gradient that keeps some of a scan's carries runs in the memory of those and of one
// segment.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/transform/grad.h"

#include "runtime/models.h"

namespace ricci::testing {
namespace {

constexpr std::int64_t LongScanSteps = 100'000;
constexpr std::int64_t Width = 8;
constexpr std::int64_t RowBytes = Width * 8;

struct Loop {
  std::int64_t checkpoints = 0;
  ScanSaving saving = {};
  bool reverse = false;
  bool trajectory = false;
  std::int64_t steps = LongScanSteps;
};

// c ← c + 0.01·tanh(c·w + x_t)
Graph long_scan(const Loop& loop, const std::vector<ValueRef>& wrt = {"c0", "w", "xs"}) {
  Graph g("long_scan");
  const Value c0 = g.input("c0", f64({Width}));
  const Value w = g.param("w", f64({Width}));
  const Value xs = g.input("xs", f64({loop.steps, Width}));
  const auto out = scan(std::array{c0},
                        {.bcasts = {w},
                         .xs = {xs},
                         .trajectory = loop.trajectory,
                         .checkpoints = loop.checkpoints,
                         .reverse = loop.reverse,
                         .saving = loop.saving},
                        [](Graph&, std::span<const Value> in) {
                          return std::vector{in[0] + 0.01 * tanh(in[0] * in[1] + in[2])};
                        });
  Axes all{0};
  if (loop.trajectory) all.emplace_back(1);
  g.set_outputs({sum(square(out[0]), all)});
  return value_and_grad(g, wrt).graph;
}

// Rows a gradient needs at once: those kept (and once more, behind the initial carry), and those of
// one segment, as the scan left them and as they enter its steps.
std::int64_t needed_bytes(std::int64_t kept) {
  return 2 * (kept + (LongScanSteps + kept - 1) / kept + 2) * RowBytes;
}
constexpr std::int64_t Slack = 16 << 10;  // cotangents, sums, flags, alignment

// The loss, and the gradients of the carry and the rows, are computed by the same steps in the same
// order; the sum over steps is made a segment at a time.
void expect_gradients(const CompiledGraph& actual, const CompiledGraph& expected,
                      const Feeds& feeds) {
  const auto a = actual.run(feeds);
  const auto e = expected.run(feeds);
  ASSERT_EQ(a.size(), e.size());
  for (std::size_t i = 0; i < e.size(); ++i) {
    const bool is_sum = i == 2;
    EXPECT_TRUE(is_sum ? close(a[i], e[i]) : same(a[i], e[i])) << "output " << i;
  }
}

TEST(RuntimeLongScan, RunsInTheMemoryOfItsCheckpoints) {
  const Feeds feeds = random_feeds(long_scan({}));
  const CompiledGraph all = compile(long_scan({}));
  ASSERT_GT(all.workspace_bytes(), LongScanSteps * RowBytes);
  for (const std::int64_t kept : {100, 250, 1000}) {
    SCOPED_TRACE(kept);
    const CompiledGraph few = compile(long_scan({.checkpoints = kept}));
    EXPECT_LT(few.workspace_bytes(), needed_bytes(kept) + Slack);
    EXPECT_LT(few.workspace_bytes() * 40, all.workspace_bytes());
    expect_gradients(few, all, feeds);
  }
}

// 316 carries, as √L is: segments of 316 and of 317 steps. Gradients of rows are put together from
// those of the segments.
TEST(RuntimeLongScan, SegmentsMayDifferInLength) {
  const Feeds feeds = random_feeds(long_scan({}));
  const CompiledGraph all = compile(long_scan({}));
  for (const bool reverse : {false, true}) {
    SCOPED_TRACE(reverse);
    const Loop loop{.saving = {.policy = ScanSave::Recompute}, .reverse = reverse};
    const CompiledGraph few = compile(long_scan(loop, {"c0", "w"}));
    EXPECT_LT(few.workspace_bytes(), needed_bytes(316) + Slack);
    EXPECT_LT(few.workspace_bytes() * 40, all.workspace_bytes());
    const CompiledGraph straight = reverse ? compile(long_scan({.reverse = true})) : all;
    expect_gradients(few, compile(long_scan({.reverse = reverse}, {"c0", "w"})), feeds);
    const CompiledGraph rows = compile(long_scan(loop));
    EXPECT_LT(rows.workspace_bytes(), 2 * LongScanSteps * RowBytes);
    expect_gradients(rows, straight, feeds);
  }
}

// Kept carries that are a result, with cotangents of their own.
TEST(RuntimeLongScan, KeptCarriesMayBeAResult) {
  for (const std::int64_t kept : {1, 40, 47}) {
    for (const bool reverse : {false, true}) {
      SCOPED_TRACE(kept);
      const Graph graph =
          long_scan({.checkpoints = kept, .reverse = reverse, .trajectory = true, .steps = 2'000});
      const Feeds feeds = random_feeds(graph);
      const auto actual = compile(graph).run(feeds);
      const auto expected = interpret(graph, feeds);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(close(actual[i], expected[i])) << "output " << i;
      }
    }
  }
}

}  // namespace
}  // namespace ricci::testing
