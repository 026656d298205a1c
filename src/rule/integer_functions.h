// Binary functions of integers, for everything that runs them element by element.
#pragma once

#include <cstdint>

#include "ricci/op/elementwise.h"

namespace ricci::rule {

/// f(a, b) of integers of `width` bits, before wrapping. UserError(attr) for a division by zero and
/// for a negative exponent; the caller knows the op and its place.
[[nodiscard]] std::int64_t eval_binary(BinaryKind kind, std::int64_t a, std::int64_t b,
                                       std::int64_t width);

}  // namespace ricci::rule
