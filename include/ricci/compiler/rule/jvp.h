// Forward rules: from the tangents of a node's operands to those of its results. A tangent that is
// known to be zero is absent: an invalid Value, never a tensor of zeros.
#pragma once

#include <span>
#include <vector>

#include "ricci/compiler/rule/body_transforms.h"

namespace ricci {

/// One per result, each of its result's `tangent_type`; invalid where the tangent is zero.
using Tangents = std::vector<Value>;

class JvpContext {
 public:
  JvpContext(Graph& graph, const Node& node, std::span<const Value> operands,
             std::span<const Value> tangents, const BodyTransforms& bodies)
      : graph_(graph), node_(node), operands_(operands), tangents_(tangents), bodies_(bodies) {}

  /// The graph under construction.
  [[nodiscard]] Graph& graph() const noexcept { return graph_; }
  [[nodiscard]] const Node& node() const noexcept { return node_; }
  [[nodiscard]] std::size_t size() const noexcept { return operands_.size(); }
  /// Operand k in the graph under construction.
  [[nodiscard]] Value operator[](std::size_t k) const { return operands_[k]; }
  [[nodiscard]] std::span<const Value> operands() const noexcept { return operands_; }
  /// The tangent of operand k; invalid when it is zero.
  [[nodiscard]] Value tangent(std::size_t k) const { return tangents_[k]; }
  [[nodiscard]] bool live(std::size_t k) const { return tangents_[k].valid(); }
  /// Which operands have a tangent.
  [[nodiscard]] std::vector<bool> live() const;
  /// The tangent with zero written out.
  [[nodiscard]] Value tangent_or_zero(std::size_t k) const;
  /// Result r of the node; the node is added the first time a rule asks.
  [[nodiscard]] Value result(std::size_t r = 0);
  /// All results; the node is added unless the rule gave others.
  [[nodiscard]] const std::vector<Value>& results();
  /// For rules that compute results and tangents together: the results, so that the node itself is
  /// not needed.
  void give_results(std::vector<Value> results) { results_ = std::move(results); }
  [[nodiscard]] const BodyTransforms& bodies() const noexcept { return bodies_; }
  /// Pushes tangents through what `build` makes of the operands instead of this node; its results
  /// become the node's.
  [[nodiscard]] Tangents through(const Rewriting& build);
  /// No result has a tangent: where rules start from.
  [[nodiscard]] Tangents none() const { return Tangents(node_.types.size()); }

 private:
  Graph& graph_;
  const Node& node_;
  std::span<const Value> operands_;
  std::span<const Value> tangents_;
  const BodyTransforms& bodies_;
  std::vector<Value> results_;
};

/// The tangents of a node's results, by its written rule or by one its traits give.
[[nodiscard]] Tangents apply_jvp(JvpContext& context);

}  // namespace ricci
