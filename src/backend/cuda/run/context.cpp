// What a run is made in: its memory, its stream, and how the host waits for it.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

#include "backend/cuda/run/executable.h"
#include "support/stop_flag.h"

namespace ricci::cuda {

Context::Context(const Gpu& device, Memory& memory, std::int64_t arena_bytes,
                 std::int64_t scratch_bytes, std::int64_t total)
    : gpu(device),
      total_bytes(total),
      arena(memory, arena_bytes),
      scratch(memory, scratch_bytes),
      seed(memory, sizeof(std::uint64_t)),
      fault(memory, sizeof(Fault)),
      pinned(device, sizeof(Shared)) {
  Fault none;
  none.stop = address(&shared().stop);
  fault.copy_in(reinterpret_cast<const std::byte*>(&none));
  const Driver& driver = gpu.driver();
  driver.check(gpu.with_room([&] { return driver.stream_create(&stream, StreamNonBlocking); }),
               "make a stream");
}

Context::~Context() {
  const Driver& driver = gpu.driver();
  if (!gpu.try_use()) return;
  abandon();
  if (graph != nullptr) driver.graph_exec_destroy(graph);
  driver.stream_destroy(stream);
}

void Context::wait(const char* doing) {
  const Driver& driver = gpu.driver();
  if (current_stop_flag() == nullptr) {
    driver.check(driver.stream_wait(stream), doing);
    return;
  }
  constexpr int Looks = 64;  // before it sleeps: most runs are short
  constexpr std::chrono::microseconds Nap(200);
  std::atomic_ref<std::uint32_t> stop(shared().stop);
  Status status = driver.stream_query(stream);
  for (int look = 0; status == NotReady; ++look) {
    if (stop_requested()) stop.store(1);
    if (look >= Looks) std::this_thread::sleep_for(Nap);
    status = driver.stream_query(stream);
  }
  const bool was_stopped = stop.exchange(0) != 0;
  driver.check(status, doing);
  if (!was_stopped) return;
  forget_fault();
  throw_if_stopped();
}

void Context::abandon() noexcept {
  std::atomic_ref<std::uint32_t> stop(shared().stop);
  stop.store(1);
  gpu.driver().stream_wait(stream);
  stop.store(0);
  forget_fault();
}

void Context::forget_fault() noexcept {
  shared().fault = {};
  gpu.driver().fill8(address(fault.data()), 0, offsetof(Fault, stop), stream);
}

}  // namespace ricci::cuda
