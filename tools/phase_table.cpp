#include "phase_table.h"

#include <fmt/format.h>

namespace ricci::tool {

std::string phase_table(const PhaseLog& log) {
  std::string out =
      fmt::format("// {:<36} {:>10} {:>10} {:>6}\n", "phase", "ms", "its own", "times");
  for (const PhaseTime& t : log.times()) {
    const std::string name = std::string(2 * t.depth, ' ') + t.name;
    out += fmt::format("// {:<36} {:>10.3f} {:>10.3f} {:>6}\n", name, t.seconds * 1e3,
                       t.own_seconds * 1e3, t.times);
  }
  return out + "// phases on several threads at once count once for each\n";
}

}  // namespace ricci::tool
