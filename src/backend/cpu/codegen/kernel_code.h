// Loop kernels as machine code: one function each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ricci/compiler/loop/kernel.h"

#include "backend/cpu/codegen/jit.h"
#include "backend/cpu/run/code_source.h"

namespace ricci::cpu {

/// How many lanes suit a stage: as many as fill a register with its widest floats.
[[nodiscard]] int lanes_for(const loop::Kernel& kernel, const loop::Stage& stage,
                            const TargetInfo& target);
/// How many vectors are handled together.
[[nodiscard]] int unroll_for(const loop::Kernel& kernel, const loop::Stage& stage);

/// Can rows of fewer elements than a vector be vectors of their own?
[[nodiscard]] bool fits_lanes(const loop::Kernel& kernel, std::int64_t row);

/// Rows that are too short to be vectors run side by side, one in each lane: so many of them, or
/// none where rows run one after the other.
[[nodiscard]] int short_rows_for(const loop::Kernel& kernel, const TargetInfo& target);
/// The kernel with the axis that its lanes go along last, and no row.
[[nodiscard]] loop::Kernel with_rows_in_lanes(const loop::Kernel& kernel);

/// Elements that lie so far apart are read as whole vectors and sorted out.
[[nodiscard]] bool is_narrow_stride(std::int64_t stride, DType dtype);
/// Are crossed loads read in squares? Where vectors are too short for that, rows run one after the
/// other.
[[nodiscard]] bool reads_squares(const loop::Kernel& kernel, const TargetInfo& target);

/// Kernels that differ only in what their code does not depend on (their name, how many columns
/// they have) share a key.
[[nodiscard]] std::string code_key(const loop::Kernel& kernel);

/// A kernel whose arguments begin at the first place it names in each, so that kernels which work
/// on different parts of an array share their code; and how many bytes that is into each argument,
/// none when all begin where they did.
struct StartedKernel {
  loop::Kernel kernel;
  std::vector<std::int64_t> starts;
};
[[nodiscard]] StartedKernel from_first_places(const loop::Kernel& kernel);

struct KernelSource {
  const loop::Kernel* kernel = nullptr;
  std::string symbol;
};

/// Adds a function for each kernel to a module.
void add_kernels(llvm::Module& module, const std::vector<KernelSource>& kernels,
                 const TargetInfo& target);
/// Compiles kernels into one piece of code; each can be found by its symbol.
[[nodiscard]] std::shared_ptr<JitCode> compile_kernels(const std::vector<KernelSource>& kernels,
                                                       const JitOptions& options);

}  // namespace ricci::cpu
