// What the compiler made of a program, in a few lines.
#pragma once

#include <string>

#include "ricci/runtime/compiled_graph.h"

namespace gpt {

/// Ops in, steps out: kernels, what was fused, library calls, memory.
[[nodiscard]] std::string describe(const ricci::CompiledGraph& compiled);

}  // namespace gpt
