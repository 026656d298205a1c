// Batches in order: the same ones however they are made, resumed exactly, ended at any moment.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ricci/data.h"
#include "ricci/support/stop.h"

#include "dataset/refusal.h"
#include "support/child.h"
#include "support/sanitized.h"

namespace ricci::loader_test {
namespace {

using testing::refusal;
using testing::says;
using Numbers = std::vector<double>;
using Batches = std::vector<Numbers>;

Batches rest_of(Loader<Array>& loader) {
  Batches out;
  for (const Array& b : loader) out.push_back(b.to_vector());
  return out;
}
Batches batches_of(const Dataset<Array>& data, const LoaderOptions& options) {
  Loader loader(data, options);
  return rest_of(loader);
}

TEST(DataLoader, GivesAnEpochALoop) {
  const Dataset<Array> data = arange(5);
  EXPECT_EQ(batches_of(data, {.batch = 2}), (Batches{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(batches_of(data, {.batch = 2, .drop_last = true}), (Batches{{0, 1}, {2, 3}}));
  EXPECT_EQ(batches_of(data, {.batch = 9}), (Batches{{0, 1, 2, 3, 4}}));
  EXPECT_EQ(batches_of(data, {.batch = 2, .steps = 4}), (Batches{{0, 1}, {2, 3}, {4}, {0, 1}}));
  EXPECT_TRUE(batches_of(zeros({0}), {}).empty());
  Loader loader(data, {.batch = 2});
  EXPECT_EQ(rest_of(loader).size(), 3U);
  EXPECT_EQ(loader.position().epoch, 1);
  EXPECT_EQ(rest_of(loader).size(), 3U);
  EXPECT_EQ(loader.position().step, 6);
}

TEST(DataLoader, NextEndsEveryRound) {
  Loader loader(Dataset<Array>(arange(2)), {.batch = 1});
  for (int epoch = 0; epoch < 3; ++epoch) {
    EXPECT_TRUE(loader.next());
    EXPECT_TRUE(loader.next());
    EXPECT_FALSE(loader.next());
  }
  Loader steps(Dataset<Array>(arange(2)), {.batch = 1, .steps = 3});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(steps.next());
  EXPECT_FALSE(steps.next());
  EXPECT_FALSE(steps.next());
}

TEST(DataLoader, ShufflesByASeedAndAnewEveryEpoch) {  // [FE-4c]
  const Dataset<Array> data = arange(100);
  const Batches first = batches_of(data, {.batch = 10, .shuffle = 1, .steps = 20});
  EXPECT_EQ(first, batches_of(data, {.batch = 10, .shuffle = 1, .steps = 20}));
  EXPECT_NE(first, batches_of(data, {.batch = 10, .shuffle = 2, .steps = 20}));
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::set<double> seen;
    for (std::size_t i = 0; i < 10; ++i) {
      seen.insert(first[10U * static_cast<std::size_t>(epoch) + i].begin(),
                  first[10U * static_cast<std::size_t>(epoch) + i].end());
    }
    EXPECT_EQ(seen.size(), 100U);
  }
  EXPECT_NE(Batches(first.begin(), first.begin() + 10), Batches(first.begin() + 10, first.end()));
}

TEST(DataLoader, ThreadsChangeNothing) {
  const auto slow = Dataset<Array>(arange(60)).map([](const Array& x) {
    const auto i = static_cast<int>(x.item());
    std::this_thread::sleep_for(std::chrono::microseconds((i * 37) % 50));
    return x;
  });
  const LoaderOptions options{.batch = 7, .shuffle = 5, .steps = 20, .threads = 0};
  const Batches expected = batches_of(slow, options);
  for (const int threads : {1, 2, 5}) {
    for (const std::int64_t prefetch : {1, 3, 16}) {
      LoaderOptions other = options;
      other.threads = threads;
      other.prefetch = prefetch;
      EXPECT_EQ(batches_of(slow, other), expected) << threads << " " << prefetch;
    }
  }
}

TEST(DataLoader, ResumesToTheNextBatch) {
  const Dataset<Array> data = arange(50);
  for (const bool drop : {false, true}) {
    const LoaderOptions options{
        .batch = 8, .shuffle = 3, .drop_last = drop, .steps = 17, .threads = 2};
    const Batches all = batches_of(data, options);
    for (std::size_t done = 0; done <= all.size(); ++done) {
      Loader first(data, options);
      for (std::size_t i = 0; i < done; ++i) (void)first.next();
      const std::string text = first.position().to_text();
      LoaderOptions other = options;
      other.threads = static_cast<int>(done % 4);
      Loader second(data, other);
      second.seek(DataPosition::from_text(text));
      EXPECT_EQ(rest_of(second),
                Batches(all.begin() + static_cast<std::ptrdiff_t>(done), all.end()));
    }
  }
}

TEST(DataLoader, ALoopThatIsLeftGoesOn) {
  Loader loader(Dataset<Array>(arange(6)), {.batch = 1});
  for (const Array& b : loader) {
    if (b.item() == 2) break;
  }
  EXPECT_EQ(loader.position().step, 3);
  EXPECT_EQ(rest_of(loader), (Batches{{3}, {4}, {5}}));
}

TEST(DataLoader, EnumerateCountsSteps) {
  const std::vector<std::string> names = {"a", "b"};
  for (auto [i, name] : enumerate(names)) EXPECT_EQ(name, i == 0 ? "a" : "b");
  std::vector<std::int64_t> numbers;
  for (auto [i, b] : enumerate(Loader(Dataset<Array>(arange(6)), {.batch = 2}))) {
    EXPECT_EQ(b.to_vector()[0], static_cast<double>(2 * i));
    numbers.push_back(i);
  }
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{0, 1, 2}));
  Loader loader(Dataset<Array>(arange(6)), {.batch = 2, .steps = 5});
  (void)loader.next();
  numbers.clear();
  for (auto [i, b] : enumerate(loader)) {
    numbers.push_back(i);
    EXPECT_EQ(loader.position().step, i + 1);
  }
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{1, 2, 3, 4}));
}

Dataset<Array> failing_at(double where) {
  return Dataset<Array>(arange(20)).map([where](const Array& x) {
    if (x.item() == where) throw std::runtime_error("sample is bad");
    return x;
  });
}

TEST(DataLoader, WhatASampleThrowsReachesTheReader) {
  for (const int threads : {0, 1, 3}) {
    Loader loader(failing_at(11), {.batch = 2, .threads = threads, .prefetch = 8});
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(loader.next());
    for (int again = 0; again < 2; ++again) {
      EXPECT_THROW((void)loader.next(), std::runtime_error);
      EXPECT_EQ(loader.position().step, 5);
    }
  }
}

TEST(DataLoader, EndsAtAnyMoment) {
  std::atomic<int> made{0};
  const auto counted = Dataset<Array>(arange(1000)).map([&](const Array& x) {
    ++made;
    return x;
  });
  for (int taken = 0; taken < 4; ++taken) {
    made = 0;
    {
      Loader loader(counted, {.batch = 1, .steps = 1000000, .threads = 3, .prefetch = 5});
      for (int i = 0; i < taken; ++i) (void)loader.next();
    }
    EXPECT_LE(made, taken + 5);  // no more than is held ahead
  }
  Loader never(counted, {.threads = 4});  // not asked for anything
}

TEST(DataLoader, WaitingObeysTheStopButton) {
  std::atomic<bool> go{false};
  const auto stuck = Dataset<Array>(arange(2)).map([&](const Array& x) {
    while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return x;
  });
  const StopSource stop;
  const StopScope scope(stop.token());
  std::jthread presser([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    stop.request_stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    go = true;
  });
  Loader loader(stuck, {.threads = 1});
  EXPECT_TRUE(says(refusal([&] { (void)loader.next(); }), {"stopped"}));
}

TEST(DataLoader, AChildGoesOnByItself) {
  if (!testing::CanFork) GTEST_SKIP();
  const Dataset<Array> data = arange(40);
  const LoaderOptions options{.batch = 3, .shuffle = 2, .threads = 2, .prefetch = 3};
  const Batches all = batches_of(data, options);
  Loader loader(data, options);
  for (int i = 0; i < 4; ++i) (void)loader.next();
  const Batches expected(all.begin() + 4, all.end());
  EXPECT_TRUE(testing::holds_in_child([&] { return rest_of(loader) == expected; }));
  EXPECT_EQ(rest_of(loader), expected);
}

TEST(DataLoader, SaysWhatIsWrong) {
  const Dataset<Array> data = arange(5);
  EXPECT_TRUE(says(refusal([&] { Loader l(data, {.batch = 0}); }),
                   {"batch of a loader is 0", "loader_test.cpp"}));
  EXPECT_TRUE(says(refusal([&] { Loader l(data, {.threads = -1}); }), {"threads"}));
  EXPECT_TRUE(says(refusal([&] { Loader l(data, {.prefetch = 0}); }), {"prefetch"}));
  EXPECT_TRUE(says(refusal([&] { Loader l(data, {.batch = 6, .drop_last = true}); }),
                   {"fewer than a batch of 6"}));
  EXPECT_TRUE(says(refusal([&] { Loader l(Dataset<Array>(zeros({0})), {.steps = 1}); }),
                   {"without samples"}));
  Loader loader(data, {.batch = 2});
  Loader other(data, {.batch = 3});
  EXPECT_TRUE(
      says(refusal([&] { loader.seek(other.position()); }), {"batch_size=3", "batch_size=2"}));
  DataPosition odd = loader.position();
  odd.step = 2;
  EXPECT_TRUE(says(refusal([&] { loader.seek(odd); }), {"contradicts itself"}));
  for (const char* text :
       {"", "epoch=1", "epoch=0 batch=0 step=0 samples=0 batch_size=1 shuffle=x drop_last=0",
        "epoch=-1 batch=0 step=0 samples=0 batch_size=1 shuffle=none drop_last=0", "nonsense"}) {
    EXPECT_TRUE(says(refusal([&] { (void)DataPosition::from_text(text); }), {"no position"}))
        << text;
  }
}

// Those that were started end, and the process goes on.
TEST(DataLoader, ThreadsThatCannotBeStartedAreAnError) {
  if (testing::SpaceIsTaken) GTEST_SKIP() << "a sanitizer takes the space that is limited here";
  EXPECT_TRUE(testing::holds_in_child([] {
    // Room for the stacks of some, and not of all.
    std::ifstream status("/proc/self/statm");
    std::uint64_t pages = 0;
    status >> pages;
    const std::uint64_t room =
        pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + (std::uint64_t{100} << 20);
    const rlimit limit{room, room};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) return false;
    Loader loader(Dataset<Array>(arange(50)), {.batch = 1, .threads = 1000});
    if (!says(refusal([&] { (void)loader.next(); }), {"cannot start 1000 threads", "use fewer"})) {
      return false;
    }
    Loader fewer(Dataset<Array>(arange(50)), {.batch = 1, .threads = 1});
    return fewer.next()->item() == 0;
  }));
}

}  // namespace
}  // namespace ricci::loader_test
