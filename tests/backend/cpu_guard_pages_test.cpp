// The guard pages that compiled programs run between: they notice, and every program meets them.
#include <gtest/gtest.h>

#include "ricci/build/build.h"

#include "support/guarded_buffer.h"
#include "support/guarded_run.h"

namespace ricci::testing::cpu_guard_pages_test {
namespace {

using Edge = GuardedBuffer::Edge;

TEST(BackendGuardPagesDeathTest, AStepOverTheEdgeIsAFault) {
  const FaultNote note("on purpose");
  for (const Edge edge : {Edge::End, Edge::Start}) {
    const GuardedBuffer b(100, edge);
    volatile std::byte* outside = edge == Edge::End ? b.data() + 100 : b.data() - 1;
    EXPECT_DEATH((void)*outside, "over the edge of a buffer: on purpose");
  }
  GuardedBuffer constant(100, Edge::End);
  constant.make_read_only();
  EXPECT_DEATH(*static_cast<volatile std::byte*>(constant.data()) = std::byte{1}, "on purpose");
}

TEST(BackendGuardPages, AreUsedAgainAndCanBeWrittenThen) {
  const std::byte* first = nullptr;
  for (int i = 0; i < 3; ++i) {
    GuardedBuffer b(5000, Edge::Start);
    if (first == nullptr) first = b.data();
    EXPECT_EQ(b.data(), first);
    b.bytes().back() = std::byte{1};
    b.make_read_only();
  }
}

TEST(BackendGuardPages, AProgramIsRunAsPlannedAndAtBothEdges) {
  Graph g("small");
  const Value x = g.input("x", f32({3}));
  g.set_outputs({x + 1.0, tanh(x)});
  const std::size_t before = runs_between_guards();
  const std::vector<Tensor> out =
      run_between_guards(g, {{"x", Tensor::of<float>({3}, {1, 2, 3})}}, {.donations = {{1, "x"}}});
  EXPECT_EQ(runs_between_guards(), before + 3);
  EXPECT_EQ(out[0].elements<float>(), (std::vector<float>{2, 3, 4}));
}

}  // namespace
}  // namespace ricci::testing::cpu_guard_pages_test
