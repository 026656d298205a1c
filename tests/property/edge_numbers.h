// Numbers at the ends of dtypes and at the seams between them: what casts saturate, what sums
// overflow, what is flushed where subnormals are not kept.
#pragma once

#include <cstdint>

#include "ricci/type/tensor.h"

#include "property/random.h"

namespace ricci::testing {

/// To be rounded to the dtype it goes to.
[[nodiscard]] double edge_number(Rng& rng);
/// A number of an integer dtype.
[[nodiscard]] std::int64_t edge_integer(Rng& rng, DType dtype);

/// Mostly ordinary numbers; in some tensors a few of these, in some most.
[[nodiscard]] Tensor edge_tensor(Rng& rng, const Type& type);

}  // namespace ricci::testing
