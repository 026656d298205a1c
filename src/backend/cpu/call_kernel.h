// Calls: ops that are not loop kernels, prepared once for their shapes and run again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ricci/device/thread_pool.h"
#include "ricci/schedule/program.h"

namespace ricci::cpu {

struct CallArguments {
  std::span<std::byte* const> operands;  ///< first elements
  std::span<std::byte* const> results;   ///< null where not wanted
  ThreadPool& pool;
  std::uint64_t seed = 0;
  std::byte* scratch = nullptr;  ///< 64-aligned, as many bytes as the kernel asked for
};

/// The kernel attached to a call, as the call sees it: work for parts of its first result.
class Attached {
 public:
  virtual ~Attached() = default;
  /// For elements [first, last), which are there; whole rows of the attached kernel.
  virtual void run(std::int64_t first, std::int64_t last) const = 0;
};

/// Immutable; any number of threads may run one.
class CallKernel {
 public:
  virtual ~CallKernel() = default;
  virtual void run(const CallArguments& arguments) const = 0;
  /// The same, and what is attached for every element of the result, from inside its tiles. False
  /// when that is left to the caller.
  virtual bool run_with(const CallArguments& arguments, const Attached&) const {
    run(arguments);
    return false;
  }
  [[nodiscard]] virtual std::int64_t scratch_bytes() const { return 0; }
  /// What each thread keeps of `thread_scratch` for it.
  [[nodiscard]] virtual std::int64_t thread_bytes() const { return 0; }
  /// How the op is served: `matmul`, `conv`, `attention`, `pool`, `host` or `reference`
  [[nodiscard]] virtual std::string_view how() const = 0;
};

/// The best kernel there is for a call; there always is one. Ops registered at run time are looked
/// up in `registry`, which must outlive the kernel. `after` is the attached kernel, if there is
/// one.
[[nodiscard]] std::unique_ptr<CallKernel> make_call_kernel(const CallStep& step,
                                                           const Registry& registry,
                                                           const loop::Kernel* after = nullptr);

/// Are tiles that end at multiples of `part` elements made of whole rows of a kernel?
[[nodiscard]] inline bool has_whole_rows(const loop::Kernel& kernel, std::int64_t part) {
  return kernel.by_columns || (kernel.row_elements() > 0 && part % kernel.row_elements() == 0);
}

}  // namespace ricci::cpu
