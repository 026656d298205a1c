#include "support/machine_memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

#include <fmt/format.h>
#include <unistd.h>

#include "ricci/support/error.h"

namespace ricci {

namespace {

constexpr std::int64_t Unlimited = std::numeric_limits<std::int64_t>::max();

// The limit of a group and of all it is nested in: whichever is reached first ends the process.
// In a container the path of the group may be that of the host, of which only the top is to be
// seen.
std::int64_t least_limit(const std::string& mount, const std::string& group, const char* file) {
  namespace fs = std::filesystem;
  std::int64_t least = Unlimited;
  for (fs::path at = fs::path(group).lexically_normal();; at = at.parent_path()) {
    std::ifstream limit(fs::path(mount + at.string()) / file);
    std::int64_t allowed = 0;  // a word where there is none
    if (limit >> allowed && allowed > 0) least = std::min(least, allowed);
    if (!at.has_relative_path()) return least;
  }
}

}  // namespace

std::int64_t container_memory(const std::string& root) {
  // Lines like 4:cpu,memory:/a/b of version 1, and 0::/a/b of version 2.
  std::ifstream groups(root + "/proc/self/cgroup");
  const std::string mounts = root + "/sys/fs/cgroup";
  std::int64_t least = Unlimited;
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      for (const char* mount : {"", "/unified"}) {
        least = std::min(least, least_limit(mounts + mount, group, "memory.max"));
      }
    } else if (controllers.find(",memory,") != std::string::npos) {
      least = std::min(least, least_limit(mounts + "/memory", group, "memory.limit_in_bytes"));
    }
  }
  return least;
}

std::int64_t machine_memory() {
  static const std::int64_t bytes = [] {
    std::int64_t most = Unlimited;
    const std::int64_t pages = sysconf(_SC_PHYS_PAGES);
    const std::int64_t page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0) most = pages * page;
    return std::min(most, container_memory(""));
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
