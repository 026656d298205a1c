// Loop kernels: what the compiler makes of fused element-wise, broadcasting and reducing ops, in a
// form any target can print.
//
// A kernel walks a box of axes. The outer ones number the rows; the others make up a row. For each
// row it runs its stages in order: a stage either visits every element of the row or runs once. A
// row's reductions are complete when their stage is, and later stages of the same row read them;
// values that a later stage needs element by element wait in the row of an output that is not
// written yet, or in a row buffer (a local argument).
//
//   softmax over rows of 1000:   m = max x   |   e = exp(x - m), s = sum e   |   y = e / s
//
// Accumulators run across rows: of the outer axes the last ones may be summed over (a bias gradient
// sums over all rows). What is accumulated over is cut in chunks, whose number depends on the
// shapes alone; each chunk writes what it has accumulated, and a second kernel combines the chunks.
// How else the work is shared out is the device's business: no bit depends on it.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "ricci/op/elementwise.h"
#include "ricci/op/reduce.h"
#include "ricci/type/dtype.h"

namespace ricci::loop {

/// An instruction of a kernel, by position.
using Reg = std::int32_t;
inline constexpr Reg NoReg = -1;

enum class Code : std::uint8_t {
  Constant,  ///< one number
  Index,     ///< offset + Σ strides·index, an integer
  Load,      ///< an element of an argument
  Copy,      ///< its operand
  Unary,
  Binary,
  Compare,
  Select,   ///< in[0] ≠ 0 ? in[1] : in[2]
  Cast,     ///< in[0] as dtype
  Reduced,  ///< the result of a reduction of this row
  Running,  ///< in[0] combined with what its accumulator holds of the rows before this one
  Random,   ///< what the element with the number offset + Σ strides·index draws from a stream
};

/// What is drawn: words of Philox4x32-10, or numbers made of them (see ricci/op/generator.h).
enum class RandomKind : std::uint8_t { Bits, Uniform, Normal };

/// Moves a place by a value: adds index·stride. The index must be in [0, limit).
struct Term {
  Reg index = NoReg;
  std::int64_t stride = 0;
  std::int64_t limit = 0;
  bool clamp = false;  ///< brought into [0, limit) instead of faulting
};

/// Holds where offset + Σ strides[axis]·index[axis] is in [0, limit).
struct Guard {
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;  ///< one per axis of the kernel
  std::int64_t limit = 0;
  bool operator==(const Guard&) const = default;
  auto operator<=>(const Guard&) const = default;
};

/// A place in an argument: offset + Σ strides[axis]·index[axis] + Σ terms, in elements.
struct Access {
  std::int32_t argument = -1;
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;  ///< one per axis of the kernel
  std::vector<Term> terms;
  /// Where one does not hold there is no place, and a load gives its number instead of reading.
  std::vector<Guard> guards = {};
};

using Number = std::variant<double, std::int64_t, std::complex<double>>;

struct Instr {
  Code code = Code::Constant;
  DType dtype = DType::F32;  ///< of the result
  std::uint8_t kind = 0;     ///< UnaryKind, BinaryKind, CompareKind or RandomKind
  std::array<Reg, 3> in = {NoReg, NoReg, NoReg};
  bool per_element = false;  ///< else once a row
  /// Constant; Load: what it gives where a guard does not hold; Random: the key of its stream, to
  /// which in[1] is added where there is one. in[0] is the run's seed.
  Number number = 0.0;
  Access access;  ///< Load; for Index and Random its offset and strides
  /// Random: the bounds of what is uniform; the mean and the standard deviation of what is normal.
  std::array<double, 2> range = {0, 1};
  std::int32_t reduction = -1;  ///< Reduced; Running: the accumulator
  bool not_positive = false;    ///< Unary: the operand never is, which makes exp shorter

  [[nodiscard]] UnaryKind unary() const { return static_cast<UnaryKind>(kind); }
  [[nodiscard]] BinaryKind binary() const { return static_cast<BinaryKind>(kind); }
  [[nodiscard]] CompareKind compare() const { return static_cast<CompareKind>(kind); }
  [[nodiscard]] RandomKind random() const { return static_cast<RandomKind>(kind); }
};

/// Why a kernel cannot go on: an index is out of range, an integer is divided by zero or raised to
/// a negative power.
enum class FaultKind : std::uint8_t { None, Index, Division, Remainder, Exponent };

struct Store {
  Reg value = NoReg;
  Access access;
};

/// Combines a value over the elements of a row. Kinds: sum, prod, max, min, any, all.
struct Reduction {
  ReduceKind kind = ReduceKind::Sum;
  DType dtype = DType::F32;
  Reg value = NoReg;
};

/// Combines a value over the accumulated rows: element by element of the row, or once a row. The
/// chunk writes `length` results (the row's elements, or 1) to `argument` at its own place. One
/// that is running is read by its instruction row by row instead, and writes nothing in the end.
/// Where its local argument has room for twice the length, a back end that rounds each addition
/// adds up blocks of rows in the first half and the blocks in the second.
struct Accumulator {
  ReduceKind kind = ReduceKind::Sum;
  DType dtype = DType::F32;
  Reg value = NoReg;
  bool per_element = true;
  std::int32_t argument = -1;
  std::int32_t local = -1;  ///< the local argument it accumulates in
  bool running = false;     ///< then there is one chunk
  bool exclusive = false;   ///< running: what it held before the row
};

struct Stage {
  bool per_element = true;
  std::vector<Reg> code;
  std::vector<Store> stores;
  std::vector<std::int32_t> reductions;
  std::vector<std::int32_t> accumulators;
};

enum class ArgumentRole : std::uint8_t { In, Out, Local };

struct Argument {
  DType dtype = DType::F32;
  ArgumentRole role = ArgumentRole::In;
  std::int64_t elements = 0;  ///< Local: how many each row that is worked on needs
};

struct Kernel {
  std::string name;
  std::vector<std::int64_t> extents;  ///< of all axes, outermost first
  std::size_t kept = 0;               ///< axes [0, kept) number independent rows
  std::size_t outer = 0;              ///< axes [kept, outer) are accumulated over; the rest a row
  std::vector<Argument> arguments;
  std::vector<Instr> code;
  std::vector<Reduction> reductions;
  std::vector<Accumulator> accumulators;
  std::vector<Stage> stages;
  std::int64_t chunks = 1;  ///< the accumulated rows of each kept row are cut in
  /// One row whose elements have nothing to do with each other: any part of it can run on its own.
  bool flat = false;
  std::int64_t work = 1;  ///< all its elements, in units of simple instructions

  [[nodiscard]] std::int64_t rows() const;              ///< kept · accumulated
  [[nodiscard]] std::int64_t kept_rows() const;         ///< 1 without kept axes
  [[nodiscard]] std::int64_t accumulated_rows() const;  ///< 1 without accumulated axes
  [[nodiscard]] std::int64_t row_elements() const;
};

/// Calls `f` with every place that is read, stored to or counted with.
template <class K, class F>
void for_each_access(K& kernel, F&& f) {
  for (auto& i : kernel.code) {
    if (i.code == Code::Load || i.code == Code::Index || i.code == Code::Random) f(i.access);
  }
  for (auto& s : kernel.stages) {
    for (auto& store : s.stores) f(store.access);
  }
}

/// Calls `f` with every list of one stride per axis.
template <class K, class F>
void for_each_strides(K& kernel, F&& f) {
  for_each_access(kernel, [&](auto& access) {
    f(access.strides);
    for (auto& guard : access.guards) f(guard.strides);
  });
}

/// Readable text; the same kernel always prints the same.
[[nodiscard]] std::string to_string(const Kernel& kernel);
/// InternalError that says what is wrong with a kernel.
void verify(const Kernel& kernel);
/// Joins neighbouring axes that every access walks as if they were one.
void coalesce(Kernel& kernel);
/// Gives row buffers that are not needed at the same time one place, the row of an output where
/// possible. Returns which arguments are left, by their former numbers. To be called before
/// accumulators have their arguments.
[[nodiscard]] std::vector<std::size_t> share_row_buffers(Kernel& kernel);
/// Can the argument `out` lie where `in` does? Every element of `in` is then read before, or when,
/// the same place of `out` is written, and by the same tile.
[[nodiscard]] bool can_overwrite(const Kernel& kernel, std::size_t out, std::size_t in);
/// A kernel that copies its first argument to its second.
[[nodiscard]] Kernel copying_kernel(DType dtype, std::int64_t elements, std::string name);
/// What goes wrong where an instruction has no answer for some integers; None for those that always
/// have one.
[[nodiscard]] FaultKind fault_of(const Instr& instr);
[[nodiscard]] inline bool is_partial(const Instr& instr) {
  return fault_of(instr) != FaultKind::None;
}
/// What an instruction costs, in units of a simple one.
[[nodiscard]] std::int64_t weight(const Instr& instr);
/// Says how much a kernel works and whether it is flat, when its code is complete.
void sum_up(Kernel& kernel);

}  // namespace ricci::loop
