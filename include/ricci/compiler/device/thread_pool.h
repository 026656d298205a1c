// The threads a program runs on. A pool owns all of them: libraries are called single-threaded from
// inside its tiles, so a cap on threads is never exceeded.
//
//   ThreadPool pool(4);
//   pool.run(tiles, [&](std::int64_t tile) { … });
//
// How work is cut into tiles must depend on shapes alone, never on the number of threads: then
// neither do the bits of the result.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace ricci {

class ThreadPool {
 public:
  /// `threads` counts the calling thread; 0 means one per core this process may use. UserError
  /// when it is negative, or so many cannot be started (out_of_memory).
  explicit ThreadPool(int threads = 0);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  [[nodiscard]] int threads() const noexcept;

  /// Calls `work(tile)` once for each tile in [0, tiles), on the calling thread and the pool's own,
  /// and returns when all are done. An exception from a tile is thrown again here (that of the
  /// lowest tile that failed). Called from inside a tile, or with one tile or one thread, it runs
  /// the tiles in order on the calling thread. Any number of threads may call it; the pool serves
  /// one at a time and the others run their tiles themselves.
  template <class Work>
  void run(std::int64_t tiles, Work&& work) {
    run_erased(
        tiles,
        [](void* context, std::int64_t tile) {
          (*static_cast<std::remove_reference_t<Work>*>(context))(tile);
        },
        const_cast<void*>(static_cast<const void*>(&work)));
  }

  /// Calls `work()` once on the calling thread and once on each of the pool's own, and returns when
  /// all are done. From inside a tile, or while the pool serves another caller, on the calling
  /// thread alone: for what threads may prepare, not for what they must.
  template <class Work>
  void run_on_all(Work&& work) {
    run_erased(
        threads(),
        [](void* context, std::int64_t) {
          (*static_cast<std::remove_reference_t<Work>*>(context))();
        },
        const_cast<void*>(static_cast<const void*>(&work)), true);
  }

 private:
  using Tile = void (*)(void* context, std::int64_t tile);
  void run_erased(std::int64_t tiles, Tile work, void* context, bool one_each = false);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ricci
