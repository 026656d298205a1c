#include "support/fork.h"

#include <chrono>
#include <new>
#include <thread>

#include <pthread.h>

namespace ricci {
namespace {

struct Gate {
  std::atomic<int> inside{0};  // threads inside UnforkedWork
  std::atomic<bool> forking{false};
  std::atomic<std::uint64_t> generation{0};
};

constinit Gate gate;
constinit thread_local int depth = 0;

// Forks are rare and what they wait for is short: looking again is enough.
void wait_a_little() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

// A thread may fork from inside its own work.
int own() noexcept { return depth > 0 ? 1 : 0; }

void before_fork() {
  while (gate.forking.exchange(true)) wait_a_little();  // another thread forks
  while (gate.inside.load() != own()) wait_a_little();
}

void in_parent() { gate.forking.store(false); }

void in_child() {
  gate.inside.store(own());
  gate.generation.fetch_add(1);
  gate.forking.store(false);
}

[[maybe_unused]] const int registered = pthread_atfork(before_fork, in_parent, in_child);

}  // namespace

std::uint64_t process_generation() noexcept {
  return gate.generation.load(std::memory_order_relaxed);
}

void UnforkedWork::enter() noexcept {
  if (depth++ > 0) return;
  for (;;) {
    gate.inside.fetch_add(1);
    if (!gate.forking.load()) return;
    gate.inside.fetch_sub(1);
    while (gate.forking.load()) wait_a_little();
  }
}

void UnforkedWork::leave() noexcept {
  if (--depth == 0) gate.inside.fetch_sub(1);
}

ForkSharedMutex::~ForkSharedMutex() {
  if (generation_.load() == process_generation()) mutex_.~shared_mutex();
}

void ForkSharedMutex::renew() {
  static ForkMutex renewing;
  const std::lock_guard lock(renewing);
  if (generation_.load() == process_generation()) return;
  new (&mutex_) std::shared_mutex;
  generation_.store(process_generation(), std::memory_order_release);
}

}  // namespace ricci
