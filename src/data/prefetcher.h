// Makes things ahead of time: threads make number first, first + 1, …, and one reader takes them in
// order. How many are made or held is bounded.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace ricci::detail {

class Prefetcher {
 public:
  using Made = std::shared_ptr<const void>;
  /// `make` is called from `threads` threads at a time.
  Prefetcher(std::function<Made(std::int64_t)> make, std::int64_t first, int threads,
             std::int64_t ahead);
  /// Waits for those things that are being made.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// The next one; everything before number `end` may be made ahead. Throws what `make` threw, or
  /// UserError(stopped) when the scope of the caller is asked to stop.
  [[nodiscard]] Made take(std::int64_t end);

 private:
  struct Slot {
    Made made;
    std::exception_ptr fault;
    bool is_done = false;
  };
  void work();
  void stop();

  std::function<Made(std::int64_t)> make_;
  std::int64_t ahead_;
  std::mutex mutex_;
  std::condition_variable wanted_;  // there is something to be made, or nothing more ever
  std::condition_variable done_;
  std::deque<Slot> slots_;  // of taken_, taken_ + 1, …: made or being made
  std::int64_t taken_;      // what the reader takes next
  std::int64_t end_;        // nothing from here on is wanted yet
  bool is_over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ricci::detail
