// Loop kernels and written-out loops as CUDA C++: what is compiled for a GPU, and what people read
// with `ricci compile --device cuda --emit cuda`. Nothing here needs a GPU, a driver or a compiler.
//
// A kernel's parameters are, in this order: a pointer for every argument that is not local (of a
// loop: for every operand, then for every result, null where nobody wants it), `void* scratch`,
// `ricci_fault* fault` and `unsigned origin`, the number a fault is reported with. Pointers are
// aligned to 16 bytes. The text includes no header and means what it says when it is compiled
// with --fmad=false: products are rounded before they are added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "ricci/compiler/loop/kernel.h"
#include "ricci/compiler/loop/written_loop.h"

namespace ricci::cuda {

/// A kernel as CUDA C++ and how it is launched.
struct KernelText {
  std::string name;                ///< extern "C" __global__ void NAME(…)
  std::string text;                ///< a whole source
  std::int64_t blocks = 1;         ///< grid.x
  std::int32_t threads = 1;        ///< block.x
  std::int32_t shared_bytes = 0;   ///< dynamic shared memory
  std::int64_t static_bytes = 0;   ///< shared memory that the text declares
  std::int64_t scratch_bytes = 0;  ///< global memory the launch needs, uninitialised
  std::size_t pointers = 0;        ///< parameters before the scratch
};

/// Why a kernel could not go on, in memory of the device: zeros before the launch, and after it
/// where nothing was wrong. The first fault stays; behind one the results mean nothing, but no
/// place outside an array is touched.
struct Fault {
  std::uint32_t kind = 0;  ///< a loop::FaultKind
  long long value = 0;
  long long limit = 0;
  std::uint32_t origin = 0;
  /// The device's address of a word that the host sets when a program is to end: loops look at it
  /// now and then. 0: there is none.
  std::uint64_t stop = 0;
};

[[nodiscard]] KernelText print_kernel(const loop::Kernel& kernel, const std::string& name);
/// Several that have nothing to do with each other as one: the blocks of one behind those of the
/// other, and so their pointers. All must have as many threads, and `can_run_together`.
[[nodiscard]] KernelText print_together(std::span<const loop::Kernel* const> kernels,
                                        const std::string& name);
/// What a thread of another kernel does with some elements that it has stored.
struct PointText {
  std::string
      text;  ///< __device__ void NAME(pointers of the arguments, scratch, fault, origin, point)
  int lanes = 1;  ///< point p has elements p·lanes and those behind it
};
/// Nothing where the kernel's elements have to do with each other, or it may meet a fault.
[[nodiscard]] std::optional<PointText> print_at_points(const loop::Kernel& kernel,
                                                       const std::string& name, int most_lanes);
/// Can it meet an index out of range, or an integer divided by zero?
[[nodiscard]] bool can_fault(const loop::Kernel& kernel);
/// Does a kernel need nothing that is one for all of a launch? Their `static_bytes` add up.
[[nodiscard]] bool can_run_together(const KernelText& text);
/// Results that the plan wants zeroed are zero before the launch.
[[nodiscard]] KernelText print_loop(const loop::WrittenLoop& loop, const std::string& name);
/// How many operands and results a loop's kernel has pointers for: as far as its plan names them.
[[nodiscard]] std::int32_t loop_operands(const loop::LoopPlan& plan);
[[nodiscard]] std::int32_t loop_results(const loop::LoopPlan& plan);

}  // namespace ricci::cuda
