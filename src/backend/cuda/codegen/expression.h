// Elements of every dtype and functions of them as CUDA C++: how they are stored, what they are
// held in, and how each function is written. What is not an operator or a built-in of CUDA is a
// function of the prelude.
#pragma once

#include <string>

#include "ricci/compiler/loop/kernel.h"

namespace ricci::cuda {

/// As it is stored: `float`, `bf16`, `unsigned char` of a bool.
[[nodiscard]] const char* stored_type(DType dtype);
/// As it is computed with: small floats in `float`.
[[nodiscard]] const char* held_type(DType dtype);

/// What is stored, as a value, and the other way round.
[[nodiscard]] std::string from_stored(DType dtype, const std::string& x);
[[nodiscard]] std::string to_stored(DType dtype, const std::string& x);
/// The same of a number that is one of the dtype's already.
[[nodiscard]] std::string cut_to_stored(DType dtype, const std::string& x);
/// A number of a dtype, rounded to it.
[[nodiscard]] std::string constant_text(DType dtype, const loop::Number& number);
/// An integer, exactly.
[[nodiscard]] std::string integer_text(std::int64_t n);

[[nodiscard]] std::string unary_text(UnaryKind kind, DType dtype, const std::string& x);
/// Integer divisions, remainders and powers report what they cannot compute: see the prelude.
[[nodiscard]] std::string binary_text(BinaryKind kind, DType dtype, const std::string& a,
                                      const std::string& b);
[[nodiscard]] std::string compare_text(CompareKind kind, const std::string& a,
                                       const std::string& b);
[[nodiscard]] std::string cast_text(DType from, DType to, const std::string& x);
[[nodiscard]] std::string nonzero_text(DType dtype, const std::string& x);
/// A value of small floats that was computed wider.
[[nodiscard]] std::string rounded_text(DType dtype, const std::string& x);

/// What a reduction holds: truth values of any and all, small floats in `float`.
[[nodiscard]] DType reduced_in(ReduceKind kind, DType dtype);
[[nodiscard]] std::string reduction_of_nothing(ReduceKind kind, DType dtype);
/// Of numbers as `reduced_in` has them.
[[nodiscard]] std::string combined_text(ReduceKind kind, DType dtype, const std::string& so_far,
                                        const std::string& x);
/// The name of the prelude's function object that combines two.
[[nodiscard]] const char* combiner(ReduceKind kind);

}  // namespace ricci::cuda
