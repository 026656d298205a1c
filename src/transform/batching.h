// The batching sweep: mirrors a graph into a new one in which chosen values have a batch axis.
#pragma once

#include <map>
#include <vector>

#include "ricci/compiler/rule/batch.h"
#include "ricci/ir/rebuild.h"
#include "ricci/transform/transformed.h"
#include "ricci/transform/vmap.h"

namespace ricci {

class Batching {
 public:
  Batching(const Graph& graph, Dim size, BatchedRandom random = BatchedRandom::Shared)
      : from_(graph), size_(std::move(size)), random_(random), build_(graph) {}

  Batching(const Batching&) = delete;  // values and steps point into it
  Batching& operator=(const Batching&) = delete;

  [[nodiscard]] Graph& graph() noexcept { return build_.to(); }
  /// Gives an input or param of the old graph a batch axis at `axis` of its new type.
  void batch_leaf(NodeId leaf, std::size_t axis);
  void sweep();
  /// A value of the old graph: in the new one, with whether it is batched.
  [[nodiscard]] BatchedValue value(ValueId old);
  /// The same, repeated for every example when it is shared.
  [[nodiscard]] Value lifted(ValueId old);
  [[nodiscard]] Transformed finish(const std::vector<Value>& outputs);

 private:
  void batch_node(NodeId id, std::vector<BatchedValue> operands);

  const Graph& from_;
  Dim size_;
  BatchedRandom random_;
  Rebuilder build_;
  std::map<NodeId, std::size_t> leaves_;  // axis of each batched leaf
  std::map<ValueId, bool> batched_;       // values that have a batch axis
};

}  // namespace ricci
