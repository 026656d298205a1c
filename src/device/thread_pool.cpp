// A fork-join pool. One job is open at a time; its workers and the caller draw tiles from a
// counter.
//
// Everything about joining is one word, the gate: which job (epoch), whether it may still be joined
// (open), and how many workers are inside. A worker that wakes late finds the gate closed and goes
// on waiting, so the caller waits only for workers that hold a tile, never for one to wake up.
//
// The workers of a pool are its crew. They stay behind when the process forks: in the child the
// pool hires another one at its next job.
#include "ricci/compiler/device/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sched.h>

#include "ricci/support/error.h"

#include "support/float_environment.h"
#include "support/fork.h"
#include "support/stop_flag.h"

namespace ricci {
namespace {

constexpr std::uint64_t Open = std::uint64_t{1} << 31;
constexpr std::uint64_t InsideMask = Open - 1;
constexpr int EpochShift = 32;

// How often a thread looks again before it sleeps: some 0.3 ms, more than the gap between two
// kernels or the last tile of a large one. To be woken takes tens of microseconds, and more in a
// virtual machine, where the sleeper's core is given away.
constexpr int Looks = 20000;

constexpr std::uint32_t epoch_of(std::uint64_t gate) {
  return static_cast<std::uint32_t>(gate >> EpochShift);
}

void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Is this thread inside a tile, of whichever pool?
thread_local bool inside_tile = false;

class InsideTile {
 public:
  InsideTile() noexcept : before_(inside_tile) { inside_tile = true; }
  InsideTile(const InsideTile&) = delete;
  InsideTile& operator=(const InsideTile&) = delete;
  ~InsideTile() { inside_tile = before_; }

 private:
  bool before_;
};

}  // namespace

struct ThreadPool::State {
  struct Job {
    Tile work = nullptr;
    void* context = nullptr;
    std::int64_t tiles = 0;
    bool one_each = false;           ///< every thread draws one tile
    const StopFlag* stop = nullptr;  ///< the caller's: no tile begins when it is set
  };
  struct Crew;

  explicit State(int threads);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  /// The crew of this process.
  Crew& crew();
  /// On the calling thread.
  static void run_alone(const Job& job);

  const int threads_wanted;

 private:
  std::atomic<Crew*> crew_;
};

struct ThreadPool::State::Crew {
  /// UserError when so many threads cannot be started.
  explicit Crew(int threads) : looks(threads <= usable_cores() ? Looks : 0) { start(threads); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() { stop(); }

  [[nodiscard]] bool is_here() const noexcept { return generation == process_generation(); }
  /// Is the crew free for a job? Then it is the caller's, who runs one.
  [[nodiscard]] bool take() noexcept { return !taken.test_and_set(std::memory_order_acquire); }
  void run(const Job& opened);
  /// Leaves it as it is, for good: threads of another process can neither be joined nor their locks
  /// taken apart.
  static void abandon(Crew* crew) noexcept;

  void start(int threads);
  void stop();
  void serve();
  void draw_tiles() noexcept;
  void note_failure(std::int64_t tile) noexcept;
  bool wait_for_news(std::uint32_t seen);
  void wake_workers(std::int64_t wanted);
  void leave() noexcept;
  void wait_until_empty();

  const std::uint64_t generation = process_generation();
  Crew* abandoned_before = nullptr;
  const int looks;  // 0 when there are more threads than cores: spinning would hold up the others

  alignas(64) std::atomic<std::uint64_t> gate{0};
  alignas(64) std::atomic<std::int64_t> next{0};
  alignas(64) std::atomic<int> sleepers{0};
  std::atomic<bool> caller_sleeps{false};
  std::atomic<bool> stopping{false};
  std::atomic_flag taken = ATOMIC_FLAG_INIT;  // a caller has the pool
  Job job;

  std::mutex failure_mutex;
  std::int64_t failed_tile = std::numeric_limits<std::int64_t>::max();
  std::exception_ptr failure;

  std::mutex sleep_mutex;
  std::condition_variable news;
  std::condition_variable empty;
  std::vector<std::thread> workers;
};

void ThreadPool::State::Crew::start(int threads) {
  try {
    for (int i = 1; i < threads; ++i) workers.emplace_back([this] { serve(); });
  } catch (const std::exception& error) {  // no room for its stack, or one more than is allowed
    const std::size_t started = workers.size() + 1;
    stop();
    throw UserError(Diagnostic{
        ErrorCode::OutOfMemory,
        "threads",
        fmt::format("cannot start {} threads: after {}, {}", threads, started, error.what()),
        {},
        {},
        "use fewer: one per core is the most that pays"});
  }
}

void ThreadPool::State::Crew::stop() {
  {
    const std::lock_guard lock(sleep_mutex);
    stopping.store(true);
  }
  news.notify_all();
  for (std::thread& w : workers) w.join();
}

void ThreadPool::State::Crew::abandon(Crew* crew) noexcept {
  static std::atomic<Crew*> last{nullptr};
  crew->abandoned_before = last.load();
  while (!last.compare_exchange_weak(crew->abandoned_before, crew)) {
  }
}

// Tiles are handed out in order, so when one fails every lower one has been handed out already and
// will finish: the lowest failure is the same whatever the number of threads.
void ThreadPool::State::Crew::note_failure(std::int64_t tile) noexcept {
  next.store(job.tiles);
  const std::lock_guard lock(failure_mutex);
  if (tile > failed_tile) return;
  failed_tile = tile;
  failure = std::current_exception();
}

void ThreadPool::State::Crew::draw_tiles() noexcept {
  const InsideTile inside;
  const DefaultFloatEnvironment floats;  // a kernel of the user's may have left another one
  const Job own = job;
  const StopFlagScope stoppable(own.stop);
  for (;;) {
    const std::int64_t tile = next.fetch_add(1, std::memory_order_relaxed);
    if (tile >= own.tiles) return;
    try {
      if (!own.one_each) throw_if_set(own.stop);
      own.work(own.context, tile);
    } catch (...) {
      note_failure(tile);
    }
    if (own.one_each) return;
  }
}

// Returns when another job than `seen` has been opened; false when the pool stops.
bool ThreadPool::State::Crew::wait_for_news(std::uint32_t seen) {
  for (int look = 0; look < looks; ++look) {
    if (epoch_of(gate.load(std::memory_order_acquire)) != seen) return true;
    if (stopping.load(std::memory_order_relaxed)) return false;
    pause();
  }
  std::unique_lock lock(sleep_mutex);
  sleepers.fetch_add(1);  // before the gate is read: a caller that misses us is seen by us
  news.wait(lock, [&] { return epoch_of(gate.load()) != seen || stopping.load(); });
  sleepers.fetch_sub(1);
  return !stopping.load();
}

void ThreadPool::State::Crew::leave() noexcept {
  const std::uint64_t now = gate.fetch_sub(1) - 1;
  if ((now & (Open | InsideMask)) != 0 || !caller_sleeps.load()) return;
  const std::lock_guard lock(sleep_mutex);
  empty.notify_all();
}

void ThreadPool::State::Crew::serve() {
  std::uint32_t seen = 0;
  while (wait_for_news(seen)) {
    std::uint64_t now = gate.load(std::memory_order_acquire);
    bool joined = false;
    while (!joined && (now & Open) != 0) joined = gate.compare_exchange_weak(now, now + 1);
    seen = epoch_of(now);
    if (!joined) continue;
    draw_tiles();
    leave();
  }
}

void ThreadPool::State::Crew::wake_workers(std::int64_t wanted) {
  const int asleep = sleepers.load();
  if (asleep == 0) return;
  {
    const std::lock_guard lock(sleep_mutex);
  }
  if (wanted >= asleep) {
    news.notify_all();
  } else {
    for (std::int64_t i = 0; i < wanted; ++i) news.notify_one();
  }
}

void ThreadPool::State::Crew::wait_until_empty() {
  const auto is_empty = [&] { return (gate.load() & InsideMask) == 0; };
  for (int look = 0; look < looks; ++look) {
    if (is_empty()) return;
    pause();
  }
  if (is_empty()) return;
  std::unique_lock lock(sleep_mutex);
  caller_sleeps.store(true);
  empty.wait(lock, is_empty);
  caller_sleeps.store(false);
}

void ThreadPool::State::Crew::run(const Job& opened) {
  job = opened;
  next.store(0, std::memory_order_relaxed);
  const std::uint64_t epoch = epoch_of(gate.load(std::memory_order_relaxed)) + std::uint64_t{1};
  gate.store((epoch << EpochShift) | Open);
  wake_workers(opened.tiles - 1);
  draw_tiles();
  // The gate stays open until the last thread has come for its tile.
  while (opened.one_each && next.load() < opened.tiles) std::this_thread::yield();
  gate.fetch_and(~Open);
  wait_until_empty();
  failed_tile = std::numeric_limits<std::int64_t>::max();
  const std::exception_ptr failed = std::exchange(failure, nullptr);
  taken.clear(std::memory_order_release);
  if (failed) std::rethrow_exception(failed);
}

namespace {

int threads_for(int wanted) {
  if (wanted >= 0) return wanted > 0 ? wanted : usable_cores();
  throw UserError(Diagnostic{ErrorCode::Attr,
                             "threads",
                             fmt::format("{} is not a number of threads", wanted),
                             {},
                             {},
                             "use 0 for one per core, or 1 and more"});
}

}  // namespace

ThreadPool::State::State(int threads) : threads_wanted(threads), crew_(new Crew(threads)) {}

ThreadPool::State::~State() {
  Crew* last = crew_.load();
  if (last->is_here()) {
    delete last;
  } else {
    Crew::abandon(last);
  }
}

ThreadPool::State::Crew& ThreadPool::State::crew() {
  Crew* known = crew_.load(std::memory_order_acquire);
  if (known->is_here()) return *known;
  static ForkMutex hiring;
  const std::lock_guard lock(hiring);
  known = crew_.load();
  if (!known->is_here()) {  // no other thread was as fast
    Crew* hired = new Crew(threads_wanted);
    Crew::abandon(known);
    crew_.store(hired, std::memory_order_release);
    known = hired;
  }
  return *known;
}

void ThreadPool::State::run_alone(const Job& job) {
  const InsideTile inside;
  const std::int64_t here = job.one_each ? 1 : job.tiles;
  for (std::int64_t tile = 0; tile < here; ++tile) {
    if (!job.one_each) throw_if_set(job.stop);
    job.work(job.context, tile);
  }
}

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>(threads_for(threads))) {}

ThreadPool::~ThreadPool() = default;

int ThreadPool::threads() const noexcept { return state_->threads_wanted; }

void ThreadPool::run_erased(std::int64_t tiles, Tile work, void* context, bool one_each) {
  const State::Job job{work, context, tiles, one_each, current_stop_flag()};
  if (tiles <= 1 || state_->threads_wanted == 1 || inside_tile) {
    State::run_alone(job);
    return;
  }
  State::Crew& crew = state_->crew();
  if (crew.take()) {
    crew.run(job);
  } else {
    State::run_alone(job);
  }
}

}  // namespace ricci
