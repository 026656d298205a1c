// Which of a kernel's floats end rounded to bf16 or f16: of those a function need not be exact to
// f32's last digits.
#pragma once

#include <vector>

#include "ricci/compiler/loop/kernel.h"

namespace ricci::cuda {

/// By register: is it an f32 that reaches memory, and what a kernel decides, only through a number
/// that is rounded to bf16 or f16? On the way it may be added up, multiplied, picked and combined.
[[nodiscard]] std::vector<bool> find_coarse(const loop::Kernel& kernel);

/// A function that errs by some 2^-19 of its result, and takes results below the smallest normal
/// number for zero; nothing where there is none.
[[nodiscard]] const char* near_function(UnaryKind kind);

}  // namespace ricci::cuda
