#include "ricci/runtime/device.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <mutex>

#include <unistd.h>

#include "backend/cpu/codegen/warm_up.h"

namespace ricci {

Device Device::cpu(int threads) { return {"cpu", std::make_shared<ThreadPool>(threads)}; }

const Device& Device::default_cpu() {
  static const Device device = cpu();
  return device;
}

void Device::warm_up() const {
  static std::once_flag once;
  std::call_once(once, [&] { cpu::warm_up(pool()); });
}

std::int64_t Device::memory_bytes() {
  static const std::int64_t bytes = [] {
    std::int64_t most = std::numeric_limits<std::int64_t>::max();
    const std::int64_t pages = sysconf(_SC_PHYS_PAGES);
    const std::int64_t page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0) most = pages * page;
    std::ifstream container("/sys/fs/cgroup/memory.max");
    std::int64_t allowed = 0;
    if (container >> allowed && allowed > 0) most = std::min(most, allowed);
    return most;
  }();
  return bytes;
}

}  // namespace ricci
