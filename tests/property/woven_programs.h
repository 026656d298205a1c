// Random programs in which views meet what reads them: values are turned, mirrored, thinned,
// repeated, padded and joined, and the results are summed, sorted, multiplied, scattered and cast,
// in every dtype, of sizes such as 0, 1 and 17, with the numbers at the ends of their dtypes.
// `GeneratorOptions::woven` in generator.h draws them.
#pragma once

#include "property/generator.h"
#include "property/random.h"

namespace ricci::testing {

[[nodiscard]] Program generate_woven(Rng& rng, const GeneratorOptions& options);

}  // namespace ricci::testing
