// Memory that is not there: an error of ours wherever it is missed, and nothing leaks.
#include <gtest/gtest.h>

#include "ricci/runtime/session.h"

#include "runtime/counted_allocations.h"
#include "runtime/models.h"

namespace ricci::testing {
namespace {

// Calls `use` of what `make` gives with its first, second, … allocation failing, at growing
// distances, until none does.
template <class Make, class Use>
void fail_everywhere(const Make& make, const Use& use) {
  (void)use(make());  // what is made once in a process
  std::int64_t failures = 0;
  for (std::int64_t before = 0;; before += 1 + before / 16) {
    bool failed = false;
    const CountedAllocations allocated;
    {
      const auto made = make();
      try {
        const FailingAllocation failing(before);
        const auto result = use(made);
        EXPECT_FALSE(failing.has_failed())
            << "nobody noticed that allocation " << before << " failed";
      } catch (const UserError& e) {
        failed = true;
        EXPECT_EQ(e.code(), ErrorCode::OutOfMemory) << e.what();
      }
    }
    EXPECT_EQ(allocated.live_bytes(), 0) << "after allocation " << before;
    if (!failed) break;
    ++failures;
  }
  EXPECT_GT(failures, 20);
}

// Where allocations can be made to fail.
class RuntimeNoMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!FailingAllocation::can_fail()) GTEST_SKIP() << "the sanitizer's operators stay";
  }
};

// Without LLVM, which does not survive a want of memory.
TEST_F(RuntimeNoMemory, CompilingIsRefused) {
  const Device device = Device::named("lir");
  fail_everywhere([] { return dense_graph(); },
                  [&](const Graph& graph) { return compile(graph, device); });
}

TEST_F(RuntimeNoMemory, RunningIsRefused) {
  const Device device = Device::named("lir");
  const Graph graph = dense_graph();
  const Feeds feeds = random_feeds(graph);
  fail_everywhere([&] { return compile(graph, device); },
                  [&](const CompiledGraph& f) { return f.run(feeds); });
}

}  // namespace
}  // namespace ricci::testing
