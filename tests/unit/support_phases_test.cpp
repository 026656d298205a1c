#include <thread>

#include <gtest/gtest.h>

#include "support/phases.h"

namespace ricci::support_phases_test {
namespace {

void work() {
  const Phase outer("outer");
  for (int i = 0; i < 3; ++i) const Phase inner("inner");
  const Phase last("last");
}

std::vector<std::string> shape_of(const PhaseLog& log) {
  std::vector<std::string> out;
  for (const PhaseTime& t : log.times()) {
    out.push_back(std::string(t.depth, '>') + t.name + "*" + std::to_string(t.times));
  }
  return out;
}

using Shape = std::vector<std::string>;

TEST(SupportPhases, AreNotedInTheOrderTheyBegan) {
  const PhaseLog log;
  work();
  work();
  EXPECT_EQ(shape_of(log), (Shape{"outer*2", ">inner*6", ">last*2"}));
  double parts = 0;
  for (const PhaseTime& t : log.times()) parts += t.own_seconds;
  EXPECT_NEAR(parts, log.times()[0].seconds, 1e-9);
}

TEST(SupportPhases, AreNotNotedWhereNobodyListens) {
  work();
  const PhaseLog log;
  EXPECT_TRUE(log.times().empty());
}

// A phase outlives the log that heard of it, and one that is under way is no part for the next.
TEST(SupportPhases, BelongToTheLogThatHeardThemBegin) {
  auto first = std::make_unique<PhaseLog>();
  auto outer = std::make_unique<Phase>("outer");
  first.reset();
  const PhaseLog second;
  {
    const Phase inner("inner");
  }
  outer.reset();
  EXPECT_EQ(shape_of(second), (Shape{"inner*1"}));
  const Phase after("after");
  EXPECT_EQ(shape_of(second), (Shape{"inner*1", "after*0"}));
}

TEST(SupportPhases, OfOtherThreadsArePartsOfWhatTheyWereGiven) {
  const PhaseLog log;
  {
    const Phase outer("outer");
    const PhaseRef here = current_phase();
    std::thread helper([&] {
      const PhaseWithin within(here);
      const Phase part("part");
    });
    std::thread stranger([] { const Phase other("other"); });
    helper.join();
    stranger.join();
  }
  const Shape shape = shape_of(log);
  EXPECT_EQ(shape, (Shape{"outer*1", ">part*1", "other*1"}));
}

}  // namespace
}  // namespace ricci::support_phases_test
