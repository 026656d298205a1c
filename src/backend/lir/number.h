// One number of a kernel: held in the class of its dtype (double, 64-bit integer, complex), as the
// reference holds it, and rounded or wrapped as the reference does.
#pragma once

#include <cstddef>

#include "ricci/compiler/loop/kernel.h"

namespace ricci::lir {

using loop::Number;

/// A stored element.
[[nodiscard]] Number load(DType dtype, const std::byte* at);
void store(DType dtype, std::byte* at, const Number& number);
/// The number as it reads when it has been stored: rounded once, wrapped, or cast.
[[nodiscard]] Number as_stored(DType dtype, const Number& number);

[[nodiscard]] bool is_nonzero(const Number& number);
[[nodiscard]] Number truth(bool value);

// Functions of elements of a dtype, not rounded yet.
[[nodiscard]] Number unary(UnaryKind kind, DType dtype, const Number& x);
[[nodiscard]] Number binary(BinaryKind kind, DType dtype, const Number& a, const Number& b);
[[nodiscard]] bool compare(CompareKind kind, DType dtype, const Number& a, const Number& b);

/// What a reduction gives with one more element.
[[nodiscard]] Number reduced_with(ReduceKind kind, DType dtype, const Number& so_far,
                                  const Number& x);

}  // namespace ricci::lir
