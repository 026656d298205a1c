// Do temporaries that share memory keep out of each other's way?
#pragma once

#include <optional>
#include <string>

#include "ricci/compiler/schedule/program.h"

namespace ricci::schedule {

/// What is wrong with where the temporaries of a program lie, whose steps are well formed one by
/// one: a temporary is read before anything is written to it, or two are wanted at the same time
/// and place.
[[nodiscard]] std::optional<std::string> find_memory_fault(const Program& program);

}  // namespace ricci::schedule
