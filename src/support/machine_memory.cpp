#include "support/machine_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include <unistd.h>

namespace ricci {

std::int64_t machine_memory() {
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
