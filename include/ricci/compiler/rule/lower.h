// What an op is to the compiler: a view, an instruction per element, a reduction, running totals,
// pieces that are copied, or a call. The compiler fuses all but the last into loop kernels; a call
// is a role that devices serve.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ricci/compiler/loop/call.h"
#include "ricci/compiler/loop/kernel.h"
#include "ricci/compiler/loop/layout.h"
#include "ricci/ir/graph.h"

namespace ricci {

struct LowerContext {
  const Node& node;
  std::vector<StaticDims> operands;  ///< sizes of each operand
  std::vector<DType> dtypes;         ///< their dtypes
  StaticDims result;                 ///< sizes of the first result
};

/// How an operand is read by an op that runs once per element of its result: for every axis of the
/// result the axis of the operand that moves with it, or -1.
using AxisMap = std::vector<std::int64_t>;

/// Operand 0 is read at a place along `axis` that operand `by` gives.
struct Indirect {
  std::int64_t axis = 0;
  std::size_t by = 1;
  std::int64_t limit = 0;  ///< first index that is out of range
  bool clamp = false;
};

struct Lowering {
  enum class Form : std::uint8_t { View, Pointwise, Reduction, Running, Pieces, Call };
  Form form = Form::Call;

  /// View: the result as a layout of operand 0's elements, given operand 0's own; nothing when no
  /// strides say so (then the elements are copied).
  std::optional<loop::Layout> (*view)(const Node&, const LowerContext&,
                                      const loop::Layout&) = nullptr;
  /// View: the result has operand 0's elements where all hold, and operand 1's only one elsewhere.
  std::vector<loop::Bound> bounds = {};
  /// Pointwise: the instruction, its registers still open; strides of an Index are the result's
  /// axes'.
  loop::Instr instr = {};
  std::vector<AxisMap> reads = {};
  std::optional<Indirect> indirect = {};
  std::optional<std::size_t> key = {};  ///< Random: the operand that is added to its stream's key
  /// Reduction.
  ReduceKind reduce = ReduceKind::Sum;
  std::vector<bool> reduced = {};  ///< per axis of the operand
  /// Running: totals along `axis` by `reduce`, with or without the element itself.
  std::size_t axis = 0;
  bool exclusive = false;
  bool from_end = false;
  /// Pieces: each operand is copied into its part of the result.
  std::vector<loop::Layout> pieces = {};
  /// Call: its role. Ops that are loops for some types and calls for others have one in any case.
  loop::Call call = {};
};

/// The form of a node with static types. Composite ops are calls, most of them of no role: expand
/// them first.
[[nodiscard]] Lowering lower_node(const Graph& graph, const Node& node);
/// The call of an op that was inferred for these static types.
[[nodiscard]] loop::Call call_of(const Op& op, std::span<const Type> operands,
                                 std::span<const Type> results);

}  // namespace ricci
