// Loop kernels as machine code: one function each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ricci/loop/kernel.h"

#include "backend/cpu/jit.h"

namespace ricci::cpu {

/// What a tile is to do: rows (or columns) [first, last), and of the rows accumulated over
/// [inner_first, inner_last). Accumulated results go to place `slot` and the ones after it.
struct TileRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t inner_first = 0;
  std::int64_t inner_last = 1;
  std::int64_t slot = 0;
};

/// Where generated code reports an index that is out of range.
struct Fault {
  std::int64_t happened = 0;
  std::int64_t index = 0;
  std::int64_t limit = 0;
};

/// `arguments` has a pointer per argument of the kernel; local ones point to the tile's own room.
using KernelFunction = void (*)(void* const* arguments, const TileRange* range, Fault* fault);

/// The tile with a number.
[[nodiscard]] TileRange tile_range(const loop::Kernel& kernel, std::int64_t tile);

/// Too little work for unrolled loops to pay for compiling them.
[[nodiscard]] bool is_short_kernel(const loop::Kernel& kernel);

/// How many lanes suit a stage: as many as fill a register with its widest floats.
[[nodiscard]] int lanes_for(const loop::Kernel& kernel, const loop::Stage& stage,
                            const TargetInfo& target);
/// How many vectors are handled together.
[[nodiscard]] int unroll_for(const loop::Kernel& kernel, const loop::Stage& stage);

/// Kernels that differ only in what their code does not depend on (their name, how many columns
/// they have) share a key.
[[nodiscard]] std::string code_key(const loop::Kernel& kernel);

struct KernelSource {
  const loop::Kernel* kernel = nullptr;
  std::string symbol;
};

/// Compiles kernels into one piece of code; each can be found by its symbol.
[[nodiscard]] std::shared_ptr<JitCode> compile_kernels(const std::vector<KernelSource>& kernels,
                                                       const JitOptions& options);
/// The same without linking.
[[nodiscard]] EmittedCode emit_kernels(const std::vector<KernelSource>& kernels,
                                       const JitOptions& options);

}  // namespace ricci::cpu
