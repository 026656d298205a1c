// Runs a program compiled ahead of time: what is behind the C functions of its object.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ricci/compiler/device/thread_pool.h"
#include "ricci/support/stop.h"

#include "backend/cpu/run/executable.h"
#include "backend/cpu/run/package.h"
#include "device/buffer_check.h"
#include "device/packaged_interface.h"
#include "support/fork.h"

namespace ricci::cpu {

/// What the C functions return. Part of the binary interface; headers list the same numbers.
enum class PackagedStatus : std::int32_t {
  Ok = 0,
  Argument = 1,  ///< an array is missing, misaligned or overlaps another
  Machine = 2,   ///< the processor lacks what the code was made for
  Memory = 3,    ///< there is no room
  Run = 4,       ///< a kernel met values it cannot work with: an index out of range, …
  Package = 5,   ///< damaged, or linked with another version of the runtime
  Internal = 6,  ///< a fault of ours
  Busy = 7,      ///< another thread is running the program
  Stopped = 8,   ///< on request
};

/// One run at a time: UserError(busy) for a second.
class PackagedProgram {
 public:
  /// `threads` as for ThreadPool.
  PackagedProgram(const Package& package, int threads);
  /// One pointer per array of the interface.
  void run(const void* const* arrays, std::uint64_t seed);
  /// Ends the run that is under way, or else the next one, with UserError(stopped); those after it
  /// run again. Any thread and any signal handler may call it.
  void stop() noexcept { stop_.store(true, std::memory_order_relaxed); }

 private:
  device::PackagedInterface interface_;
  ThreadPool pool_;
  std::unique_ptr<Executable> executable_;
  std::unique_ptr<device::Context> context_;
  std::unique_ptr<device::BufferCheck> check_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  OneAtATime one_run_;
  StopFlag stop_{false};
};

}  // namespace ricci::cpu

extern "C" {
std::int32_t ricci_packaged_create(const ricci::cpu::Package* package,
                                   ricci::cpu::PackagedProgram** out,
                                   std::int32_t threads) noexcept;
std::int32_t ricci_packaged_run(ricci::cpu::PackagedProgram* program, const void* const* arrays,
                                std::uint64_t seed) noexcept;
void ricci_packaged_stop(ricci::cpu::PackagedProgram* program) noexcept;
/// Why the last call of this thread failed.
const char* ricci_packaged_error() noexcept;
void ricci_packaged_destroy(ricci::cpu::PackagedProgram* program) noexcept;
}
