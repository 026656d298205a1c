// Reverse rules: from the cotangents of a node's results to those of its operands. The sweep calls
// a rule only when some result has a cotangent and some operand needs one.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ricci/compiler/rule/body_transforms.h"

namespace ricci {

/// One per operand, each of its operand's `tangent_type`; invalid where an operand gets nothing.
using Cotangents = std::vector<Value>;

/// What a forward that keeps more than its results hands to the reverse rule.
struct ForwardResults {
  std::vector<Value> results;  ///< one per result, invalid for unwanted ones
  std::vector<Value> residuals;
  /// The gradient of the node's body, where the forward cut it in halves.
  std::shared_ptr<const Graph> backward = {};
};

/// What is known when the forward of a node to be differentiated is built.
struct ForwardContext {
  Graph& graph;
  const Node& node;
  std::span<const Value> operands;
  const std::vector<bool>& needs;  ///< operands whose cotangent will be asked for
  const std::vector<bool>& live;   ///< results that may get a cotangent
  const BodyTransforms& bodies;
};

class VjpContext {
 public:
  VjpContext(Graph& graph, const Node& node, std::span<const Value> operands,
             std::span<const Value> results, std::span<const Value> residuals,
             std::span<const Value> cotangents, const std::vector<bool>& needs,
             const BodyTransforms& bodies, std::shared_ptr<const Graph> backward = {})
      : graph_(graph),
        node_(node),
        operands_(operands),
        results_(results),
        residuals_(residuals),
        cotangents_(cotangents),
        needs_(needs),
        bodies_(bodies),
        backward_(std::move(backward)) {}

  /// The gradient graph under construction.
  [[nodiscard]] Graph& graph() const noexcept { return graph_; }
  /// The node being differentiated: op, types, bodies.
  [[nodiscard]] const Node& node() const noexcept { return node_; }
  [[nodiscard]] std::size_t size() const noexcept { return operands_.size(); }
  /// Operand k in the gradient graph.
  [[nodiscard]] Value operator[](std::size_t k) const { return operands_[k]; }
  [[nodiscard]] std::span<const Value> operands() const noexcept { return operands_; }
  /// Result r of the forward node; invalid when it is not computed.
  [[nodiscard]] Value result(std::size_t r = 0) const { return results_[r]; }
  /// What the forward rule kept.
  [[nodiscard]] std::span<const Value> residuals() const noexcept { return residuals_; }
  /// The gradient of the node's body, if the forward rule cut it in halves.
  [[nodiscard]] const std::shared_ptr<const Graph>& backward() const noexcept { return backward_; }
  /// The cotangent of result r; invalid when there is none, which means zero.
  [[nodiscard]] Value cotangent(std::size_t r = 0) const { return cotangents_[r]; }
  /// The same with zero written out.
  [[nodiscard]] Value cotangent_or_zero(std::size_t r = 0) const;
  /// Is the cotangent of operand k asked for? A rule need not compute others.
  [[nodiscard]] bool needs(std::size_t k) const { return needs_[k]; }
  [[nodiscard]] const std::vector<bool>& needs() const noexcept { return needs_; }
  [[nodiscard]] const BodyTransforms& bodies() const noexcept { return bodies_; }
  /// No operand gets anything: where rules start from.
  [[nodiscard]] Cotangents none() const { return Cotangents(operands_.size()); }
  /// Differentiates what `build` makes of the operands instead of this node: a rule in terms of
  /// other ops. `build` gives one value per result, invalid for those without a cotangent.
  [[nodiscard]] Cotangents through(const Rewriting& build) const;

 private:
  Graph& graph_;
  const Node& node_;
  std::span<const Value> operands_;
  std::span<const Value> results_;
  std::span<const Value> residuals_;
  std::span<const Value> cotangents_;
  const std::vector<bool>& needs_;
  const BodyTransforms& bodies_;
  std::shared_ptr<const Graph> backward_;
};

/// Whether operand k of a node can carry a derivative at all: its dtype has one and the op does not
/// declare it constant. Integers have one where the op takes them as codes, and where it only moves
/// them.
[[nodiscard]] bool carries_derivative(const Registry& registry, const Node& node, std::size_t k,
                                      const Type& operand);
/// The same for result r.
[[nodiscard]] bool gives_derivative(const Node& node, std::size_t r);

/// Runs a node's written rule. UserError(refused) when there is none.
[[nodiscard]] Cotangents apply_vjp(const VjpContext& context);
/// The forward of a node that will be differentiated.
[[nodiscard]] ForwardResults forward_for_vjp(const ForwardContext& context);

}  // namespace ricci
