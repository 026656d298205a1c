// Random programs on tensors of tens of thousands of elements: enough for rows to be cut into
// tiles, sums of columns into chunks and products into panels. They are short, since the reference
// interpreter takes its time; functions and dtypes come from the case tables.
#pragma once

#include "property/generator.h"
#include "property/random.h"

namespace ricci::testing {

[[nodiscard]] Program generate_large(Rng& rng, const GeneratorOptions& options);

}  // namespace ricci::testing
