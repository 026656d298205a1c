#include "data/prefetcher.h"

#include <chrono>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/stop.h"

namespace ricci::detail {

Prefetcher::Prefetcher(std::function<Made(std::int64_t)> make, std::int64_t first, int threads,
                       std::int64_t ahead)
    : make_(std::move(make)), ahead_(ahead), taken_(first), end_(first) {
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::exception& error) {  // no room for its stack, or one more than is allowed
    const std::size_t started = threads_.size();
    stop();
    throw UserError(ErrorCode::OutOfMemory,
                    fmt::format("cannot start {} threads that make batches: after {}, {}", threads,
                                started, error.what()),
                    "use fewer");
  }
}

Prefetcher::~Prefetcher() { stop(); }

void Prefetcher::stop() {
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  wanted_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void Prefetcher::work() {
  std::unique_lock lock(mutex_);
  const auto next = [&] { return taken_ + static_cast<std::int64_t>(slots_.size()); };
  for (;;) {
    wanted_.wait(lock, [&] {
      return is_over_ || (next() < end_ && static_cast<std::int64_t>(slots_.size()) < ahead_);
    });
    if (is_over_) return;
    const std::int64_t number = next();
    slots_.emplace_back();
    lock.unlock();
    Slot slot{.made = nullptr, .fault = nullptr, .is_done = true};
    try {
      slot.made = make_(number);
    } catch (...) {
      slot.fault = std::current_exception();
    }
    lock.lock();
    // The reader waits for what is not done, so that its place is still there.
    slots_[static_cast<std::size_t>(number - taken_)] = std::move(slot);
    done_.notify_all();
  }
}

Prefetcher::Made Prefetcher::take(std::int64_t end) {
  constexpr std::chrono::milliseconds LookAtStopButton{20};
  std::unique_lock lock(mutex_);
  end_ = end;
  wanted_.notify_all();
  const auto is_ready = [&] { return !slots_.empty() && slots_.front().is_done; };
  while (!done_.wait_for(lock, LookAtStopButton, is_ready)) throw_if_stopped();
  if (slots_.front().fault) std::rethrow_exception(slots_.front().fault);
  Made out = std::move(slots_.front().made);
  slots_.pop_front();
  ++taken_;
  wanted_.notify_all();
  return out;
}

}  // namespace ricci::detail
