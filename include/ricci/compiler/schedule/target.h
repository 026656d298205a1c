// What the scheduler is told about the device a program is for. It decides by this alone: no
// instruction set, no vendor and no number of threads is named in schedule/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "ricci/compiler/loop/call.h"
#include "ricci/compiler/loop/kernel.h"
#include "ricci/compiler/loop/layout.h"
#include "ricci/compiler/loop/written_loop.h"
#include "ricci/type/type.h"

namespace ricci::schedule {

/// How kernels are made for a device. Results depend on the numbers that cut sums into parts, so
/// they are the device's, never the run's.
struct KernelShape {
  /// A reduction to few numbers is cut into rows of at most this many elements, unless it has
  /// enough rows as it is.
  std::int64_t longest_row = 16384;
  std::int64_t shortest_part = 256;
  std::int64_t enough_rows = 8;
  /// Sums over rows are cut in chunks of about this much work (in units of simple instructions), at
  /// most so many: each costs a row of partial results.
  std::int64_t chunk_work = 1 << 17;
  std::int64_t most_chunks = 16;
  /// Running totals walk down their axis in parts of a row of about this many elements.
  std::int64_t running_part = 512;
  std::int64_t most_parts = 64;  ///< into which all the work of a kernel is thought to be cut
  /// How large a kernel may become, in instructions and in units of simple ones.
  std::size_t most_instructions = 256;
  std::int64_t most_work = 4096;
  /// Values that wait for a later stage of their row: in the row of an output that is not written
  /// yet, where possible, or else in a row buffer. Where that would be larger, in memory.
  bool rows_wait_in_outputs = true;
  /// Those that little work makes of arrays that are read anyway are made again instead.
  std::int64_t largest_row_buffer = std::numeric_limits<std::int64_t>::max();  ///< bytes
  /// Rows of more elements than this are not reduced and summed over, column by column, in one
  /// kernel: whoever has a row has no room for totals as long as it.
  std::int64_t longest_summed_row = std::numeric_limits<std::int64_t>::max();
  /// Rows of up to so many elements run side by side, and are put behind each other along an axis
  /// that has at least `many_rows`, where their own has fewer than `few_rows`. 0: none is short.
  std::int64_t short_row = 8;
  std::int64_t few_rows = 8;
  std::int64_t many_rows = 64;
  /// Elements of a row that are so far apart still share what is read of memory.
  std::int64_t near_stride = 8;
  /// Sums down fewer columns than this take rows of `shortest_wide_row` to `longest_wide_row`
  /// elements, each several of the array's, while so many rows are left. 0: they do not.
  std::int64_t few_columns = 16;
  std::int64_t shortest_wide_row = 32;
  std::int64_t longest_wide_row = 512;
  std::int64_t least_wide_rows = 64;
  /// Columns that are reduced together are shared out in parts of no fewer than this, where there
  /// are too few rows for chunks of `rows_worth_chunk` of them.
  std::int64_t shortest_columns = 64;
  std::int64_t rows_worth_chunk = 16;
  /// What sums down long rows does not go together with many short rows where there are more
  /// elements than this; groups of no more than `small_group` that wait for nobody come first.
  std::int64_t few_elements = 4096;
  std::int64_t small_group = 1 << 16;
  /// Loops are written out where they take no more instructions on vectors of so many bytes.
  std::int64_t vector_bytes = 64;
  std::int64_t most_loop_instructions = 900;
};

/// What decides whether a value is kept, or computed again where it is read. Work is that of an
/// element, in simple instructions.
struct Costs {
  double byte = 4;      ///< to read or write one, in simple instructions
  double step = 20000;  ///< to start one, in the same
  /// What so many times smaller arrays are made into costs nothing to keep beside it.
  std::int64_t much_smaller = 8;
  std::int64_t light_work = 8;         ///< of what each reader computes for itself
  std::int64_t least_elements = 4096;  ///< of what is not kept until a later reader comes
  std::int64_t early_work = 8;         ///< that may be done twice for that
  std::int64_t row_work = 48;  ///< of what a kernel computes again in a later stage of a row
};

class Target {
 public:
  virtual ~Target() = default;
  /// Does the device have a kernel for this call, on operands of these types? What it does not
  /// claim is expanded where that can be done (asked before attention in a small dtype is widened),
  /// and a host call where it cannot. Never asked about host calls.
  [[nodiscard]] virtual bool claims(const loop::Call& call,
                                    std::span<const Type> operands) const = 0;

  [[nodiscard]] virtual const KernelShape& kernel_shape() const { return shape_; }
  [[nodiscard]] virtual const Costs& costs() const { return costs_; }
  /// Temporaries lie at multiples of this many bytes.
  [[nodiscard]] virtual std::int64_t alignment() const { return 64; }
  /// Steps that have nothing to do with each other may run at the same time, but not where one of
  /// them reuses the memory of another: temporaries that take at most so many bytes together get
  /// memory of their own.
  [[nodiscard]] virtual std::int64_t unshared_bytes() const { return 0; }
  /// Is Σ P dP of every query, which the gradient of attention begins with, found faster from what
  /// the forward pass gave than from the keys?
  [[nodiscard]] virtual bool wants_attention_means() const { return false; }
  /// Does a call go through its first operand and its result part by part, so that kernels gain by
  /// running with it?
  [[nodiscard]] virtual bool runs_in_parts(const loop::Call& /*call*/) const { return false; }
  /// May a call write one of its results as a part of a larger array, which lies so?
  [[nodiscard]] virtual bool writes_view(const loop::Call& /*call*/, std::size_t /*result*/,
                                         const Type& /*type*/,
                                         const loop::Layout& /*layout*/) const {
    return false;
  }
  /// May a call do at its end what the kernel behind it does with the elements of its result?
  [[nodiscard]] virtual bool runs_kernel_behind(const loop::Call& call) const {
    return runs_in_parts(call);
  }
  /// Is a kernel too small to keep the device busy, so that it gains by running beside others?
  [[nodiscard]] virtual bool gains_company(const loop::Kernel& /*kernel*/) const { return true; }
  /// Is a scatter better off as loops that compare every index with the number of every row?
  [[nodiscard]] virtual bool compares_indices(const loop::Scatter& scatter) const;
  /// Where the host has to wait for the device to choose the way of a branch: branches that cannot
  /// fault and go through fewer elements than this are computed both ways, and the elements of one
  /// are taken. 0: it does not wait.
  [[nodiscard]] virtual std::int64_t short_branch() const { return 0; }
  /// Is a loop small enough to be written out, rather than run body by body?
  [[nodiscard]] virtual bool writes_out(const loop::WrittenLoop& loop) const;

 private:
  KernelShape shape_;
  Costs costs_;
};

/// A device with loop kernels alone: what can be nothing else is a host call.
[[nodiscard]] const Target& plain_target();

}  // namespace ricci::schedule
