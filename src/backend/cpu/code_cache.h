// Compiled kernels, shared by all programs of this process: the same code is compiled once.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ricci/device/thread_pool.h"

#include "backend/cpu/kernel_code.h"

namespace ricci::cpu {

struct CompiledKernel {
  std::shared_ptr<const JitCode> code;
  KernelFunction function = nullptr;
};

/// One per kernel, in order. What is not there yet is compiled on the pool's threads.
[[nodiscard]] std::vector<CompiledKernel> compile_all(std::span<const loop::Kernel> kernels,
                                                      ThreadPool& pool);

}  // namespace ricci::cpu
