// Builders of control flow. A body is given as a function that builds it from its inputs, or as a
// graph made before. Functions may use whatever values are in sight: those of the graphs around the
// body are captured.
//
//   Value h = scan_with_xs(h0, std::array{x}, [&](Graph&, std::span<const Value> in) {
//     return std::vector{tanh(matmul(in[0], w) + in[1])};
//   }, length);
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ricci/ir/graph.h"
#include "ricci/op/control.h"
#include "ricci/op/custom.h"

namespace ricci {

/// Builds a body: from its inputs, in order, to its outputs.
using BodyFunction = std::function<std::vector<Value>(Graph& body, std::span<const Value> inputs)>;
using BodyGraph = std::shared_ptr<const Graph>;

/// A body graph with inputs of the given types.
[[nodiscard]] BodyGraph make_body(std::string name, std::span<const Type> inputs,
                                  const BodyFunction& build, const Registry& registry);
/// The same for a body of a node of `outer`: its random draws differ from those around it.
[[nodiscard]] BodyGraph make_body(std::string name, std::span<const Type> inputs,
                                  const BodyFunction& build, Graph& outer);

/// A body that may use values of the graph around it.
struct OpenBody {
  Body body;
  std::vector<Value> captured;      ///< values of the outer graph
  std::vector<std::string> params;  ///< for each, the param of the body that stands for it
};
/// What all bodies of a node capture, each value once.
[[nodiscard]] std::vector<Value> captured_by(std::span<const OpenBody> bodies);
/// A body that takes `captured` as inputs behind the first `position`; those it does not use too.
[[nodiscard]] Body closed(const OpenBody& body, std::span<const Value> captured,
                          std::size_t position);

/// What a builder takes as a body.
class BodySource {
 public:
  template <class F>
    requires std::convertible_to<F, BodyFunction>
  BodySource(F&& build) : build_(std::forward<F>(build)) {}  // NOLINT: a function is a body
  BodySource(BodyGraph ready) : ready_(std::move(ready)) {}  // NOLINT: so is a graph
  BodySource(Graph ready)                                    // NOLINT
      : ready_(std::make_shared<const Graph>(std::move(ready))) {}
  /// The body for a role; a function is called with inputs of the given types.
  [[nodiscard]] Body make(std::string role, std::span<const Type> inputs, Graph& outer) const;
  /// The same with what a function uses of `outer`, still as params of the body.
  [[nodiscard]] OpenBody make_open(std::string role, std::span<const Type> inputs,
                                   Graph& outer) const;

 private:
  BodyFunction build_;
  BodyGraph ready_;
};

/// A body whose params were turned into inputs.
struct ClosedBody {
  BodyGraph graph;
  std::vector<std::string> captured;  ///< names of the params, in the order of their inputs
  std::vector<Type> types;
};
/// Turns each param of a body into an input behind the first `position` inputs (all of them when
/// absent): the place of a scan's bcasts is behind its carries, that of captures at the end.
[[nodiscard]] ClosedBody close_over(const Graph& body, std::optional<std::size_t> position = {});
/// The params of `outer` that a closed body captured, declared there when they are not yet: the
/// values to hand in as operands.
[[nodiscard]] std::vector<Value> captured_params(
    Graph& outer, const ClosedBody& body,
    std::source_location loc = std::source_location::current());

/// predicate ≠ 0 ? then_body(captures…) : else_body(captures…); only one of them runs. What
/// functions use of the graph around them need not be among `captures`; what is computed of such
/// values alone belongs to that graph and is computed in any case.
std::vector<Value> cond(Value predicate, std::span<const Value> captures,
                        const BodySource& then_body, const BodySource& else_body,
                        std::source_location loc = std::source_location::current());

/// All there is to say about a scan besides its carries and its body.
struct ScanOptions {
  std::vector<Value> bcasts = {};  ///< operands every step sees whole
  std::vector<Value> xs = {};      ///< operands a step sees one row of
  std::optional<Dim> length = {};  ///< the first size of xs when absent
  bool trajectory = false;         ///< give all carries, not the last only
  /// Carries kept for the backward pass; 0 keeps all. What a scan gives does not depend on it: a
  /// trajectory has every carry, which are then there for the backward pass as well.
  std::int64_t checkpoints = 0;
  bool reverse = false;    ///< visit rows last to first
  ScanSaving saving = {};  ///< what a gradient keeps of each step
};
/// (carries…, ys…) = body(carries…, bcasts…, xs[t]…) for every row t. UserError(name) when the body
/// has no value of a name in `saving`.
std::vector<Value> scan(std::span<const Value> carries, const ScanOptions& options,
                        const BodySource& body,
                        std::source_location loc = std::source_location::current());

// Scans of one carry and no stacked outputs.
/// The final carry.
Value scan(Value init, const BodySource& body, const Dim& length,
           std::source_location loc = std::source_location::current());
/// Every carry, stacked.
Value scan_trajectory(Value init, const BodySource& body, const Dim& length,
                      std::source_location loc = std::source_location::current());
Value scan_with_xs(Value init, std::span<const Value> xs, const BodySource& body, const Dim& length,
                   std::source_location loc = std::source_location::current());
Value scan_with_bcasts_and_xs(Value init, std::span<const Value> bcasts, std::span<const Value> xs,
                              const BodySource& body, const Dim& length,
                              std::source_location loc = std::source_location::current());
/// The final carry; a gradient keeps `checkpoints` carries, 1 ≤ checkpoints ≤ length.
Value scan_checkpointed(Value init, const BodySource& body, const Dim& length,
                        std::int64_t checkpoints,
                        std::source_location loc = std::source_location::current());

/// How many carries a scan should keep (ScanOptions::checkpoints) so that a gradient stays within
/// `bytes`. Two strategies differ in what is kept of the carries of a scan of L steps:
///   all of them (0): L rows, every step of the body runs once more for its derivative;
///   K of them: K rows and the ⌈L/K⌉ of the segment being recomputed, about L more steps.
/// A third, which also keeps inner values of the steps, is ScanOptions::saving. Gives 0 when all
/// carries fit, otherwise the largest K whose rows fit; √L, which needs the fewest rows, when no K
/// does. Sizes of `carries` must be known.
[[nodiscard]] std::int64_t checkpoints_for_budget(std::span<const Type> carries,
                                                  std::int64_t length, std::int64_t bytes);

/// The operands and bodies of a scan's gradient.
struct ScanBackwardArgs {
  std::vector<Value> inits;
  std::vector<Value> trajectories;
  /// One per output of the scan's body, carries first; an invalid Value where there is none.
  std::vector<Value> upstreams;
  std::vector<Value> bcasts = {};
  std::vector<Value> xs = {};
  std::vector<Value> saved = {};  ///< inner values of the steps, stacked
  Dim length = 0;
  bool trajectory = false;       ///< upstreams of carries are those of the trajectory
  std::int64_t checkpoints = 0;  ///< rows the trajectories keep; 0 when they keep all
  bool reverse = false;
  BodyGraph body_vjp;
  BodyGraph forward_body = {};  ///< recomputes carries that were not kept
};
/// dinits…, dbcasts…, dxs…, leaving out integers.
std::vector<Value> scan_backward(const ScanBackwardArgs& args,
                                 std::source_location loc = std::source_location::current());

// One gradient of a scan of one carry. Several of them on the same operands are one sweep after
// common sub-expressions are merged.
Value scan_backward(Value init, Value trajectory, Value upstream, std::span<const Value> xs,
                    BodyGraph body_vjp, const Dim& length, bool save_trajectory,
                    std::source_location loc = std::source_location::current());
Value scan_backward_with_checkpoints(Value init, Value trajectory, Value upstream,
                                     std::span<const Value> xs, BodyGraph body_vjp,
                                     const Dim& length, bool save_trajectory,
                                     std::int64_t checkpoints, BodyGraph forward_body,
                                     std::source_location loc = std::source_location::current());
Value scan_backward_xs(Value init, Value trajectory, Value upstream, std::span<const Value> xs,
                       BodyGraph body_vjp, const Dim& length, bool save_trajectory,
                       std::size_t xs_idx,
                       std::source_location loc = std::source_location::current());
Value scan_backward_xs_with_checkpoints(Value init, Value trajectory, Value upstream,
                                        std::span<const Value> xs, BodyGraph body_vjp,
                                        const Dim& length, bool save_trajectory, std::size_t xs_idx,
                                        std::int64_t checkpoints, BodyGraph forward_body,
                                        std::source_location loc = std::source_location::current());

struct WhileOptions {
  std::vector<Value> bcasts = {};  ///< operands every trip sees as they are, behind the carries
  std::optional<std::int64_t> max_iterations = {};
  std::int64_t checkpoints = 0;  ///< rows the tapes keep; 0 keeps all
  bool trip_count = false;       ///< give the number of trips
  bool tapes = false;            ///< give the carries entering each trip; needs max_iterations
};
struct WhileResult {
  std::vector<Value> carries;
  Value trip_count;          ///< invalid unless asked for
  std::vector<Value> tapes;  ///< empty unless asked for
};
/// carries = body(carries…, bcasts…) as long as every element of condition(carries…, bcasts…) is
/// non-zero.
WhileResult while_loop(std::span<const Value> carries, const BodySource& condition,
                       const BodySource& body, const WhileOptions& options = {},
                       std::source_location loc = std::source_location::current());
/// The same with trip count and tapes.
WhileResult while_taped(std::span<const Value> carries, const BodySource& condition,
                        const BodySource& body, std::int64_t max_iterations,
                        std::int64_t checkpoints = 0,
                        std::source_location loc = std::source_location::current());

/// The operands and bodies of a taped while's gradient.
struct WhileBackwardArgs {
  std::vector<Value> carries;  ///< as they entered the loop
  std::vector<Value> tapes;
  Value trip_count;
  std::vector<Value> upstreams;  ///< one per carry; an invalid Value where there is none
  std::int64_t max_iterations = 0;
  std::int64_t checkpoints = 0;
  BodyGraph body_vjp;
  BodyGraph forward_body = {};
};
/// dcarries…, leaving out integers.
std::vector<Value> while_backward(const WhileBackwardArgs& args,
                                  std::source_location loc = std::source_location::current());

/// What a gradient of a checkpointed sub-graph keeps of it.
struct CheckpointOptions {
  CheckpointPolicy policy = CheckpointPolicy::Nothing;
  std::vector<std::string> names = {};  ///< values of the body, for the policy Named
};
/// The outputs of `body`, whose inner values a gradient computes again instead of keeping them.
/// Values and gradients are those of the body without it. UserError(name) when the body has no
/// value of a name.
std::vector<Value> checkpoint(std::span<const Value> inputs, const BodySource& body,
                              const CheckpointOptions& options = {},
                              std::source_location loc = std::source_location::current());

}  // namespace ricci
