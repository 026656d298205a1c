// What the rules of loops build loops with.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ricci/build/build.h"
#include "ricci/ir/rebuild.h"
#include "ricci/op/leaf.h"

namespace ricci::rule {

/// The same type behind an axis of `rows`.
[[nodiscard]] Type stacked_type(const Dim& rows, Type type);
/// One row of a stacked type.
[[nodiscard]] Type row_type(Type type);

[[nodiscard]] std::vector<Type> types_of(std::span<const Value> values);

/// Adds a scan of operands in the order of `ScanLayout`, as many carries and bcasts as `op` says;
/// the others are its xs.
[[nodiscard]] std::vector<Value> add_scan(Graph& graph, op::Scan op,
                                          std::span<const Value> operands,
                                          const BodyFunction& body);
/// Adds a scan with this body; `op` has its counts and options.
[[nodiscard]] std::vector<Value> add_scan(Graph& graph, const op::Scan& op,
                                          std::span<const Value> operands,
                                          std::shared_ptr<const Graph> body);

/// The carry after the last step, out of a trajectory.
[[nodiscard]] Value last_carry(const op::Scan& op, Value init, Value trajectory);

/// Axes 0 and 1 exchanged: the batch behind the time axis, or before it again.
[[nodiscard]] Value swap_first_two(Value v);

/// The same body with ordinary inputs only.
[[nodiscard]] std::shared_ptr<const Graph> without_roles(const Graph& body, Graph& outer);

/// The inputs of a derivative body: ordinary ones take `ordinary` in turn, one with a role what
/// `special(role)` gives for it, which may be invalid.
template <class F>
[[nodiscard]] std::vector<Value> inputs_by_role(const Graph& body, std::span<const Value> ordinary,
                                                F&& special) {
  std::vector<Value> inputs;
  std::size_t next = 0;
  for (const NodeId id : body.inputs()) {
    const op::InputRole& role = body.node(id).op.as<op::Input>()->role;
    const bool plain = role.kind == op::InputRole::Kind::None;
    inputs.push_back(plain ? ordinary[next++] : special(role));
  }
  return inputs;
}

/// Copies a derivative body into `target` with these inputs, zeros where one is invalid.
template <class F>
[[nodiscard]] std::vector<Value> inline_by_role(const Graph& body, std::span<const Value> ordinary,
                                                Graph& target, F&& special) {
  std::vector<Value> inputs = inputs_by_role(body, ordinary, special);
  const std::vector<NodeId> ids = body.inputs();
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k].valid()) inputs[k] = filled(target, body.node(ids[k]).types[0], 0);
  }
  return inline_subgraph(body, inputs, target);
}

/// Which step of a loop is at a segment's edge: one flag a step.
enum class Edge : bool { First, Last };

/// The segments a loop of `length` steps is cut into by the rows it keeps.
struct Segments {
  Dim length;
  std::int64_t count;
  /// Steps of each segment where all have as many; 0 where they differ: segment k is then the steps
  /// t with ⌊t·count/length⌋ = k.
  std::int64_t stride = 0;

  /// bool[length]: the first (or last) step of each segment.
  [[nodiscard]] Value edges(Graph& graph, Edge edge) const;
  /// `rows`, one per segment, spread over the steps: row k at the first (or last) step of segment
  /// k, zeros elsewhere.
  [[nodiscard]] Value spread_rows(Value rows, Edge edge) const;
};
/// Segments ending at the steps after which a scan keeps its carries.
[[nodiscard]] Segments scan_segments(const Dim& length, std::int64_t kept);
/// Segments starting at the trips before which a while keeps its carries.
[[nodiscard]] Segments trip_segments(std::int64_t max_iterations, std::int64_t kept);

}  // namespace ricci::rule
