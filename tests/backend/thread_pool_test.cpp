#include "ricci/compiler/device/thread_pool.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "ricci/support/error.h"

#include "support/sanitized.h"

namespace ricci::thread_pool_test {
namespace {

TEST(BackendThreadPool, RunsEveryTileOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const std::int64_t tiles : {0, 1, 2, 3, 7, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(tiles));
      pool.run(tiles, [&](std::int64_t t) { ++seen[static_cast<std::size_t>(t)]; });
      for (const auto& s : seen) EXPECT_EQ(s.load(), 1);
    }
  }
}

TEST(BackendThreadPool, ZeroMeansOnePerUsableCore) { EXPECT_GE(ThreadPool().threads(), 1); }

ErrorCode refusal(int threads) {
  try {
    const ThreadPool pool(threads);
  } catch (const UserError& e) {
    return e.code();
  }
  return ErrorCode::Internal;
}

TEST(BackendThreadPool, NegativeNumbersAreRefused) {
  EXPECT_EQ(refusal(-3), ErrorCode::Attr);
  EXPECT_EQ(refusal(std::numeric_limits<int>::min()), ErrorCode::Attr);
}

TEST(BackendThreadPool, ThreadsThatCannotStartAreAnError) {
  if (testing::SpaceIsTaken) GTEST_SKIP() << "a sanitizer takes the space that is limited here";
  // In a process of its own: a limit on memory leaves no room for the stacks of many threads.
  const auto out_of_room = [] {
    const rlimit little{rlim_t{2} << 30, rlim_t{2} << 30};
    ::setrlimit(RLIMIT_AS, &little);
    const ErrorCode code = refusal(100000);
    std::_Exit(code == ErrorCode::OutOfMemory ? 0 : 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // other tests may have left threads
  EXPECT_EXIT(out_of_room(), ::testing::ExitedWithCode(0), "");
}

TEST(BackendThreadPool, ResultsAreVisibleToTheCallerAndToTheNextJob) {
  ThreadPool pool(3);
  std::vector<std::int64_t> x(64, 0);  // plain numbers: a race shows up under a race detector
  for (int round = 0; round < 2000; ++round) {
    pool.run(64, [&](std::int64_t t) { x[static_cast<std::size_t>((t + round) % 64)] += t; });
  }
  std::int64_t total = 0;
  for (const std::int64_t v : x) total += v;
  EXPECT_EQ(total, 2000 * 63 * 64 / 2);
}

TEST(BackendThreadPool, NeverUsesMoreThreadsThanItHas) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    std::mutex mutex;
    std::set<std::thread::id> ids;
    for (int round = 0; round < 50; ++round) {
      pool.run(40, [&](std::int64_t) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
        const std::lock_guard lock(mutex);
        ids.insert(std::this_thread::get_id());
      });
    }
    EXPECT_LE(ids.size(), static_cast<std::size_t>(threads));
    EXPECT_TRUE(ids.contains(std::this_thread::get_id()) || threads > 1);
  }
}

TEST(BackendThreadPool, SleepingWorkersAreWoken) {
  ThreadPool pool(2);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::atomic<int> arrived = 0;
    // Each tile waits for the other, so both threads must take part.
    pool.run(2, [&](std::int64_t) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
    });
    EXPECT_EQ(arrived, 2);
  }
}

TEST(BackendThreadPool, ReachesEveryThreadOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 50; ++round) {
      if (round % 10 == 9) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      std::mutex mutex;
      std::multiset<std::thread::id> met;
      pool.run_on_all([&] {
        const std::lock_guard lock(mutex);
        met.insert(std::this_thread::get_id());
      });
      ASSERT_EQ(met.size(), static_cast<std::size_t>(threads));
      ASSERT_EQ(std::set(met.begin(), met.end()).size(), met.size());
    }
  }
}

TEST(BackendThreadPool, ReachesItsOwnThreadAloneFromInsideATile) {
  ThreadPool pool(4);
  std::atomic<int> calls = 0;
  pool.run(8, [&](std::int64_t) { pool.run_on_all([&] { ++calls; }); });
  EXPECT_EQ(calls.load(), 8);
  EXPECT_THROW(pool.run_on_all([] { throw std::runtime_error("no"); }), std::runtime_error);
  pool.run_on_all([&] { ++calls; });
  EXPECT_EQ(calls.load(), 12);
}

TEST(BackendThreadPool, ThrowsTheFailureOfTheLowestTile) {
  for (const int threads : {1, 2, 8}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 100; ++round) {
      try {
        pool.run(200, [&](std::int64_t t) {
          if (t % 50 == 37) throw std::runtime_error(std::to_string(t));
        });
        FAIL() << "no exception";
      } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "37");
      }
      int count = 0;
      pool.run(1, [&](std::int64_t) { ++count; });
      EXPECT_EQ(count, 1);
    }
  }
}

TEST(BackendThreadPool, NestedCallsRunInOrderOnTheirThread) {
  ThreadPool pool(3);
  pool.run(12, [&](std::int64_t) {
    const auto self = std::this_thread::get_id();
    std::int64_t expected = 0;
    pool.run(9, [&](std::int64_t t) {
      EXPECT_EQ(t, expected++);
      EXPECT_EQ(std::this_thread::get_id(), self);
    });
    EXPECT_EQ(expected, 9);
  });
}

TEST(BackendThreadPool, ServesConcurrentCallers) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<std::int64_t> total = 0;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        std::atomic<std::int64_t> own = 0;
        pool.run(17, [&](std::int64_t t) { own += t; });
        total += own;
      }
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(total, 4 * 500 * 16 * 17 / 2);
}

TEST(BackendThreadPool, ManyShortLivesEndCleanly) {
  for (int i = 0; i < 100; ++i) {
    ThreadPool pool(1 + i % 4);
    if (i % 3 == 0) pool.run(4, [](std::int64_t) {});
  }
}

}  // namespace
}  // namespace ricci::thread_pool_test
