// Machine code as the part that runs programs sees it: functions, and someone who has them. The
// JIT is one source (code_cache.h); a program compiled ahead of time brings its own. Nothing here
// or behind Executable needs LLVM.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ricci/compiler/schedule/program.h"
#include "ricci/support/stop.h"

namespace ricci::cpu {

/// What a tile is to do: rows (or, of a flat kernel, elements) [first, last), and of the rows
/// accumulated over, or of the columns where loads are crossed, [inner_first, inner_last).
/// Accumulated results go to place `slot` and the ones after it.
struct TileRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t inner_first = 0;
  std::int64_t inner_last = 1;
  std::int64_t slot = 0;
};

/// Where generated code reports what it has met first.
struct Fault {
  std::int64_t kind = 0;  ///< a loop::FaultKind
  std::int64_t number = 0;
  std::int64_t limit = 0;
};

/// `arguments` has a pointer per argument of the kernel; local ones point to the tile's own room.
using KernelFunction = void (*)(void* const* arguments, const TileRange* range, Fault* fault);
/// A written-out loop. `operands` and `results` point to row-major arrays; results nobody wants are
/// null, and those its plan wants zeroed are zero. It returns early, with results that are not
/// whole, some time after `stop` is set.
using LoopFunction = void (*)(void* const* operands, void* const* results, const StopFlag* stop);

struct KernelCode {
  std::shared_ptr<const void> owner;  ///< keeps the function in memory; may be null
  KernelFunction function = nullptr;
  /// Bytes from the beginning of each argument to where the function counts from; none when empty.
  std::vector<std::int64_t> starts = {};
};

struct LoopCode {
  std::shared_ptr<const void> owner;
  LoopFunction function = nullptr;
};

/// Asked for a program's kernels first, then, step by step, for its written-out loops and for the
/// same of the bodies of its control steps.
class CodeSource {
 public:
  virtual ~CodeSource() = default;
  /// One per kernel, in order.
  [[nodiscard]] virtual std::vector<KernelCode> kernels(std::span<const loop::Kernel> kernels) = 0;
  [[nodiscard]] virtual LoopCode loop(const loop::WrittenLoop& loop) = 0;
};

}  // namespace ricci::cpu
