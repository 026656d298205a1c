#include "support/machine_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include <fmt/format.h>
#include <unistd.h>

#include "ricci/support/error.h"

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

void require_memory(std::int64_t count, std::int64_t bytes_each, std::string_view what) {
  if (count < 0) throw UserError(ErrorCode::Attr, fmt::format("{} cannot be {}", what, count));
  if (count <= machine_memory() / bytes_each) return;
  throw UserError(ErrorCode::OutOfMemory, fmt::format("{} is {}, and there are {} bytes of memory",
                                                      what, count, machine_memory()));
}

}  // namespace ricci
