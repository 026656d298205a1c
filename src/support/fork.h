// What makes a child of fork() usable though only the forking thread lives on in it.
//
// Locks: a thread that does not exist in the child must not have held one. So fork waits until no
// thread is inside an `UnforkedWork`, and every lock that is held shortly (ForkMutex) is taken
// inside one; so is work in libraries that have locks of their own. Work inside must be bounded,
// and must not wait for another thread that may begin such work.
//
// Locks that are held while programs run are new in the child instead (ForkSharedMutex), and what
// depends on threads compares `process_generation()`.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <shared_mutex>

namespace ricci {

/// Grows in the child at each fork.
[[nodiscard]] std::uint64_t process_generation() noexcept;

class UnforkedWork {
 public:
  UnforkedWork() noexcept { enter(); }
  UnforkedWork(const UnforkedWork&) = delete;
  UnforkedWork& operator=(const UnforkedWork&) = delete;
  ~UnforkedWork() { leave(); }

  /// May be nested: only the outermost waits for a fork that is under way.
  static void enter() noexcept;
  static void leave() noexcept;
};

/// A mutex no thread holds at a fork.
class ForkMutex {
 public:
  void lock() {
    UnforkedWork::enter();
    mutex_.lock();
  }
  void unlock() {
    mutex_.unlock();
    UnforkedWork::leave();
  }

 private:
  std::mutex mutex_;
};

/// A mutex that may be held for long: it is free in the child, whoever held it in the parent.
class ForkSharedMutex {
 public:
  ForkSharedMutex() noexcept : generation_(process_generation()) {}
  ForkSharedMutex(const ForkSharedMutex&) = delete;
  ForkSharedMutex& operator=(const ForkSharedMutex&) = delete;
  ~ForkSharedMutex();

  void lock() { current().lock(); }
  void unlock() { mutex_.unlock(); }
  void lock_shared() { current().lock_shared(); }
  void unlock_shared() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex& current() {
    if (generation_.load(std::memory_order_acquire) != process_generation()) renew();
    return mutex_;
  }
  void renew();

  std::atomic<std::uint64_t> generation_;
  union {  // destroyed only where it is known that nobody holds it
    std::shared_mutex mutex_{};
  };
};

/// Lets one caller in at a time and turns others away. A caller that was inside at a fork is not
/// inside in the child.
class OneAtATime {
 public:
  [[nodiscard]] bool try_enter() noexcept {
    const std::uint64_t mine = process_generation() + 1;
    std::uint64_t seen = user_.load(std::memory_order_relaxed);
    return seen != mine && user_.compare_exchange_strong(seen, mine, std::memory_order_acquire);
  }
  void leave() noexcept { user_.store(0, std::memory_order_release); }

 private:
  std::atomic<std::uint64_t> user_{0};  // 0, or one more than the generation it was taken in
};

}  // namespace ricci
