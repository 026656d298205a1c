// Random programs of control flow inside control flow: branches, loops and checkpoints around a few
// smooth functions of f64, and around counts and flags. What a body gives is as often a constant or
// an input handed through as something computed, and much of what goes in is not read: where a
// derivative is absent on one way and there on another, or absent after one step and there after
// two.
#pragma once

#include "property/generator.h"
#include "property/random.h"

namespace ricci::testing {

[[nodiscard]] Program generate_nested(Rng& rng, const GeneratorOptions& options);

}  // namespace ricci::testing
