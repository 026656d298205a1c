// Where the time of a compile went, as a table.
#pragma once

#include <string>

#include "support/phases.h"

namespace ricci::tool {

/// A line a phase, its parts indented below it.
[[nodiscard]] std::string phase_table(const PhaseLog& log);

}  // namespace ricci::tool
