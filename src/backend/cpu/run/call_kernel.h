// Calls, prepared once for their geometry and run again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ricci/compiler/device/thread_pool.h"
#include "ricci/compiler/schedule/program.h"

namespace ricci::cpu {

struct CallArguments {
  std::span<std::byte* const> operands;  ///< first elements
  std::span<std::byte* const> results;   ///< null where not wanted
  ThreadPool& pool;
  std::uint64_t seed = 0;
  std::byte* scratch = nullptr;  ///< 64-aligned, as many bytes as the kernel asked for
  std::byte* kept = nullptr;     ///< so many as it keeps of operands that stay the same
  bool kept_is_made = false;     ///< by an earlier run, on the same ones
};

/// A kernel attached to a call, as the call sees it: work for parts of its first operand or result.
class Attached {
 public:
  virtual ~Attached() = default;
  /// For elements [first, last): whole rows of the attached kernel.
  virtual void run(std::int64_t first, std::int64_t last) const = 0;
  /// The same of what is attached before a call: into `room` where only the call reads what it
  /// makes (`AttachedKernels::passed_on`), so that it never goes through memory. Gives where
  /// element `first` lies.
  [[nodiscard]] virtual const std::byte* run_into(std::int64_t first, std::int64_t last,
                                                  std::byte* room) const = 0;
  /// For all of them, on all threads.
  virtual void run_all() const = 0;
};

/// What runs with a call: a part of `before` before that part of the first operand is read, and a
/// part of `after` when that part of the first result is there. Either may be missing.
struct RunWith {
  const Attached* before = nullptr;
  const Attached* after = nullptr;
};

/// Immutable; any number of threads may run one.
class CallKernel {
 public:
  virtual ~CallKernel() = default;
  virtual void run(const CallArguments& arguments) const = 0;
  /// The same, and what is attached for every element: from inside its tiles where it can.
  virtual void run_with(const CallArguments& arguments, const RunWith& attached) const {
    if (attached.before != nullptr) attached.before->run_all();
    run(arguments);
    if (attached.after != nullptr) attached.after->run_all();
  }
  [[nodiscard]] virtual std::int64_t scratch_bytes() const { return 0; }
  /// What it makes of operands that stay the same, in the first run on them, for all that follow.
  [[nodiscard]] virtual std::int64_t kept_bytes() const { return 0; }
  /// What each thread keeps of `thread_scratch` for it.
  [[nodiscard]] virtual std::int64_t thread_bytes() const { return 0; }
  /// How the call is served: `matmul`, `conv`, `attention`, `pool`, `native` or `host call`
  [[nodiscard]] virtual std::string_view how() const = 0;
  /// By what where operands are not finite, if that is something else; empty where not.
  [[nodiscard]] virtual std::string_view how_where_not_finite() const { return {}; }
};

/// The kernels attached to a call; null where there is none.
struct AttachedKernels {
  const loop::Kernel* before = nullptr;
  const loop::Kernel* after = nullptr;
  bool passed_on = false;  ///< what `before` makes is read by the call alone
};

/// By buffer: has it the same elements in all trips of the loop the program is the body of?
using SameBuffers = std::vector<bool>;

/// The best kernel there is for a call of a program; there always is one. The program's registry
/// must outlive it.
[[nodiscard]] std::unique_ptr<CallKernel> make_call_kernel(const Program& program,
                                                           const CallStep& step,
                                                           const AttachedKernels& attached = {},
                                                           const SameBuffers& same = {});

/// Are tiles that end at multiples of `part` elements made of whole rows of a kernel?
[[nodiscard]] inline bool has_whole_rows(const loop::Kernel& kernel, std::int64_t part) {
  return kernel.flat || (kernel.row_elements() > 0 && part % kernel.row_elements() == 0);
}

}  // namespace ricci::cpu
