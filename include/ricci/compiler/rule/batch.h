// Batching rules: a node over a batch of examples at once. Batched values have the batch as their
// first axis; others are shared by all examples.
#pragma once

#include <span>
#include <vector>

#include "ricci/compiler/rule/body_transforms.h"

namespace ricci {

/// A value in a batched graph.
struct BatchedValue {
  Value value;
  bool batched = true;  ///< its first axis is the batch

  BatchedValue() = default;
  BatchedValue(Value v, bool has_batch = true) : value(v), batched(has_batch) {}  // NOLINT
};
/// One per result; an invalid value for those that are not wanted.
using BatchedValues = std::vector<BatchedValue>;

class VmapContext {
 public:
  VmapContext(Graph& graph, const Node& node, std::span<const BatchedValue> operands,
              std::span<const Type> types, Dim size, const BodyTransforms& bodies)
      : graph_(graph),
        node_(node),
        operands_(operands),
        types_(types),
        size_(std::move(size)),
        bodies_(bodies) {}

  /// The graph under construction.
  [[nodiscard]] Graph& graph() const noexcept { return graph_; }
  [[nodiscard]] const Node& node() const noexcept { return node_; }
  [[nodiscard]] std::size_t size() const noexcept { return operands_.size(); }
  /// Number of examples.
  [[nodiscard]] const Dim& batch() const noexcept { return size_; }
  /// Operand k as it is: with the batch in front when it is batched.
  [[nodiscard]] Value operator[](std::size_t k) const { return operands_[k].value; }
  [[nodiscard]] bool batched(std::size_t k) const { return operands_[k].batched; }
  [[nodiscard]] std::vector<bool> batched() const;
  /// The type operand k has in one example.
  [[nodiscard]] const Type& type(std::size_t k) const { return types_[k]; }
  /// Operand k with the batch in front, repeated when it is shared.
  [[nodiscard]] Value lifted(std::size_t k) const;
  /// Operand k such that it broadcasts against per-example values of rank `rank`: sizes 1 are put
  /// behind the batch; a shared operand stays as it is.
  [[nodiscard]] Value aligned(std::size_t k, std::size_t rank) const;
  /// `dims` with the batch in front.
  [[nodiscard]] Dims with_batch(const Dims& dims) const;
  /// Operand k, lifted, with the batch merged into its first axis: [B, N, …] → [B·N, …].
  [[nodiscard]] Value folded(std::size_t k) const;
  /// The inverse for result r: [B·N, …] → [B, N, …].
  [[nodiscard]] Value unfolded(Value v, std::size_t r = 0) const;
  /// The same for all results there are.
  [[nodiscard]] BatchedValues unfolded(BatchedValues results) const;
  [[nodiscard]] const BodyTransforms& bodies() const noexcept { return bodies_; }
  /// Batches what `build` makes of the operands instead of this node.
  [[nodiscard]] BatchedValues through(const Rewriting& build) const;
  /// Adds the node's own op, or another, on other operands; wanted results as the node has them.
  [[nodiscard]] BatchedValues emit(Op op, std::span<const Value> operands) const;

 private:
  Graph& graph_;
  const Node& node_;
  std::span<const BatchedValue> operands_;
  std::span<const Type> types_;
  Dim size_;
  const BodyTransforms& bodies_;
};

/// A value shared by a batch, repeated for every example.
[[nodiscard]] Value repeat_for_batch(Value v, const Dim& size);

/// The node over a batch, by its written rule or by one its traits give. At least one operand is
/// batched.
[[nodiscard]] BatchedValues apply_batch(const VmapContext& context);

}  // namespace ricci
