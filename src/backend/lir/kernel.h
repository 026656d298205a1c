// Runs a loop kernel as it is written: row by row, stage by stage, one element at a time. Every
// place it reads or writes is checked against the array it lies in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ricci/compiler/loop/kernel.h"

#include "device/faults.h"

namespace ricci::lir {

/// The array an argument of a kernel stands for.
struct KernelArgument {
  std::byte* data = nullptr;  ///< null for local arguments
  std::int64_t bytes = 0;
};

/// Stops at the first number that it can do nothing with and gives it. InternalError for a place
/// outside its array, and for a value that is read before it is there.
[[nodiscard]] std::optional<device::KernelFault> run_kernel(
    const loop::Kernel& kernel, std::span<const KernelArgument> arguments);

}  // namespace ricci::lir
