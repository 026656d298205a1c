// Kernels as a GPU has them, to be looked at without one.
#pragma once

#include "ricci/compiler/schedule/target.h"

#include "backend/cuda/codegen/shape.h"

namespace ricci::testing {

/// Loop kernels as a GPU has them, and nothing else.
class CudaKernelsTarget final : public schedule::Target {
 public:
  [[nodiscard]] bool claims(const loop::Call& /*call*/,
                            std::span<const Type> /*operands*/) const override {
    return false;
  }
  [[nodiscard]] const schedule::KernelShape& kernel_shape() const override {
    return cuda::kernel_shape();
  }
};

/// What is read and stored row after row by one thread, and pack after pack of a row.
inline constexpr const char* StoresAndSums = R"(graph @g {
  %x = input "x" : f32[5, 270336]
  %y = mul %x, %x
  %s = reduce %y {op = sum, axes = [0]}
  return %y, %s
})";
inline constexpr const char* RowsInPacks = R"(graph @g {
  %x = input "x" : bf16[300, 4096]
  %z = input "z" : bf16[300, 4096]
  %s = softmax %x
  %y = add %s, %z
  return %y
})";

}  // namespace ricci::testing
