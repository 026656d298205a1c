// What the compiler made of a training step and where its time goes, in a few lines.
#pragma once

#include <string>

#include "ricci/graph.h"
#include "ricci/model.h"
#include "ricci/ricci.h"

namespace gpt {

/// Ops in, steps out: kernels, what was fused, calls, memory.
[[nodiscard]] std::string describe(const ricci::TrainingStep& training);

/// Shares of the time, by kind of step.
[[nodiscard]] std::string describe(const ricci::Profile& profile);

}  // namespace gpt
