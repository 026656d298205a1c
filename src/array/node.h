// What arrays are handles on: nodes of a graph that grows as ops are called. A node applies an op
// (or a traced function) to others, or is a leaf: elements in memory, a number, or a placeholder of
// a trace.
//
// A node is immutable but for one change: where it has a value, that is computed at some time; then
// its operands are let go. Nodes under a trace never have a value, and constant expressions keep
// their operands, so both can be walked without a lock; all other walks hold `pending_mutex`.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/array/array.h"
#include "ricci/array/lift.h"
#include "ricci/ir/graph.h"
#include "ricci/support/error.h"

#include "array/type_list.h"
#include "support/fork.h"

namespace ricci::detail {

struct Room;

/// One call of a function with placeholders. Traces nest: a later one has the larger serial.
struct Trace {
  std::uint64_t serial = 0;
  std::string what;  ///< `grad`, `scan`, …
  std::source_location where;
  std::atomic<bool> active = true;
};

/// A function that was traced, as a graph: what a call of it stands for.
struct Callee {
  explicit Callee(Graph g);
  Graph graph;
  std::uint64_t hash = 0;
};

struct ArrayNode : std::enable_shared_from_this<ArrayNode> {
  enum class Kind : std::uint8_t { Value, Number, Placeholder, Op, Call };

  explicit ArrayNode(Kind k) : kind(k) {}
  ArrayNode(const ArrayNode&) = delete;
  ArrayNode& operator=(const ArrayNode&) = delete;
  ~ArrayNode();

  Kind kind;
  bool weak = false;      ///< a number without a dtype: kept as f64 or i64 until it meets an array
  bool constant = false;  ///< depends on numbers only; graphs hold it written out
  bool fixed = false;     ///< a number that programs have written into them
  std::uint32_t depth = 0;  ///< ops that wait, one on the other
  std::size_t ops = 1;      ///< at least as many as wait below it, itself included
  std::int64_t bytes = 0;   ///< at least as many as the values take that these hold
  TypeList types;
  std::optional<Op> op;
  std::vector<Body> bodies;
  std::vector<bool> wanted;
  std::size_t optional_from = std::numeric_limits<std::size_t>::max();
  std::shared_ptr<const Callee> callee;
  std::vector<Array> operands;
  std::shared_ptr<Trace> trace;  ///< the innermost it depends on; none when it has a value
  std::source_location where;
  std::uint64_t identity = 0;  ///< hash of op and bodies, or of the callee; 0: not asked yet

  std::atomic<bool> ready = false;  ///< its values are there
  /// One a result, row-major and aligned; of a value in `room`, none before somebody asks.
  std::vector<Tensor> values;
  std::shared_ptr<std::byte> room;  ///< the memory of the only result of a program
  std::atomic<bool> boxed = false;  ///< `values` has the tensor that lies in `room`

  // Of the walk under way, by whoever holds the lock.
  std::uint64_t walk = 0;    ///< which one has been here
  std::uint32_t place = 0;   ///< where it is in what the walk found, or its first result
  std::uint32_t uses = 0;    ///< how often the walk came by
  bool walk_inside = false;  ///< it waits, or else it is where the walk ends

  /// Of an f32 that is made of numbers alone: the same in f64, or the number. What it is where it
  /// meets another dtype.
  Array exact;

  [[nodiscard]] bool is_ready() const noexcept { return ready.load(std::memory_order_acquire); }
};

/// What an array takes that waits to be computed: lists of them are no longer than memory allows.
inline constexpr std::int64_t ArrayBytes = 1024;

/// The innermost trace of this thread that all computed in it belongs to; often none.
[[nodiscard]] std::shared_ptr<Trace>& claiming_trace();

/// Held while operands of nodes are read that another thread may let go.
[[nodiscard]] ForkMutex& pending_mutex();

/// Adds an op. Attributes are normalised, types inferred and constraints checked; UserError at
/// `where` when one is broken.
[[nodiscard]] ArrayNodePtr op_node(Op op, std::vector<Array> operands, std::source_location where,
                                   std::vector<Body> bodies = {}, std::vector<bool> wanted = {});
/// The same for its only result.
[[nodiscard]] inline Array apply(Op op, std::vector<Array> operands, std::source_location where) {
  return {op_node(std::move(op), std::move(operands), where), 0};
}
/// A call of a traced function with one array per input of its graph; one result per output.
[[nodiscard]] std::vector<Array> call_node(std::shared_ptr<const Callee> callee,
                                           std::vector<Array> operands, std::source_location where);
[[nodiscard]] std::vector<Array> results_of(const ArrayNodePtr& node);

/// The elements of what is ready.
[[nodiscard]] const Tensor& value_of(ArrayNode& node, std::size_t result);
[[nodiscard]] inline const void* data_of(const Array& x) {
  const ArrayNode& n = *x.node();
  return n.room ? n.room.get() : n.values[x.result()].data();
}
/// Elements in memory, without a copy: the tensor is row-major and aligned.
[[nodiscard]] Array value_array(Tensor value);
/// What a program gave.
[[nodiscard]] std::vector<Array> arrays_of(std::vector<Room> results);
/// A number that has a dtype.
[[nodiscard]] Array number_array(const Tensor& value);
/// Whether a dtype has the number; floats have all.
[[nodiscard]] bool holds(DType dtype, std::int64_t value);
/// A number of a dtype; UserError when it does not hold it.
[[nodiscard]] Array number_as(const Array& number, DType dtype, std::source_location where);
/// An array with a dtype: a number takes `dtype`, others stay as they are.
[[nodiscard]] Array strengthened(const Array& x, DType dtype, std::source_location where);
/// The same with the dtype it has on its own.
[[nodiscard]] Array strengthened(const Array& x, std::source_location where);
/// A number as an operand: it remembers what it was.
[[nodiscard]] Array strong_operand(const Array& x, DType dtype, std::source_location where);
/// Two arrays with one dtype: numbers take the other's; UserError(dtype) when something would be
/// lost, or floats of different widths meet.
void unify(std::string_view op, Array& a, Array& b, std::source_location where);
/// Indices as they count from the start of an axis of `size`, where that is known; UserError(dtype)
/// when they are no integers.
[[nodiscard]] Array from_start(const Array& indices, const Dim& size, std::source_location where);
/// UserError with all its parts.
[[noreturn]] void refuse(ErrorCode code, std::string detail, std::string message, std::string help,
                         std::source_location where);
/// UserError(name) when an array has no value at all.
void require_valid(const Array& x, std::string_view op, std::source_location where);

/// Computes what is not computed yet. UserError(refused) for arrays under a trace.
void materialize(std::span<const Array> arrays, std::source_location where);
/// What waits below an array, and the memory it holds until it is computed.
struct Waiting {
  std::size_t ops = 0;
  std::int64_t bytes = 0;
};
[[nodiscard]] Waiting count_waiting(const Array& x);
/// Bytes of a value in memory; 0 for what has none.
[[nodiscard]] std::int64_t bytes_held(const Array& x);

/// UserError that says which trace an array belongs to and what to do instead of looking at it.
[[noreturn]] void refuse_look(const Array& x, std::source_location where);

/// What builders build, as arrays.
template <class F>
[[nodiscard]] std::vector<Array> lift_all(std::span<const Array> operands,
                                          std::source_location where, F&& build) {
  return lift_pieces(
      operands,
      [](void* f, Graph& g, std::span<const Value> v) {
        return (*static_cast<std::remove_reference_t<F>*>(f))(g, v);
      },
      &build, where);
}
/// The same for a builder of one value.
template <class F>
[[nodiscard]] Array lift_one(std::initializer_list<Array> operands, std::source_location where,
                             F&& build) {
  return lift_all(
      std::span(operands.begin(), operands.size()), where,
      [&](Graph&, std::span<const Value> v) { return std::vector<Value>{build(v)}; })[0];
}

}  // namespace ricci::detail
