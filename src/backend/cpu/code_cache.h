// Compiled kernels, shared by all programs of this process: the same code is compiled once.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/cpu/kernel_code.h"

namespace ricci::cpu {

struct CompiledKernel {
  std::shared_ptr<const JitCode> code;
  KernelFunction function = nullptr;
};

/// One per kernel, in order.
[[nodiscard]] std::vector<CompiledKernel> compile_all(std::span<const loop::Kernel> kernels);

}  // namespace ricci::cpu
