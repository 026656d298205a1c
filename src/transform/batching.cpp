#include "transform/batching.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/build/build.h"

#include "ir/draws_numbers.h"
#include "transform/bodies.h"
#include "transform/located.h"
#include "transform/names.h"

namespace ricci {
namespace {

// Moves axis `from` to the front.
Value to_front(Value v, std::size_t from) {
  if (from == 0) return v;
  Axes perm{static_cast<std::int64_t>(from)};
  for (std::size_t i = 0; i < v.rank(); ++i) {
    if (i != from) perm.emplace_back(static_cast<std::int64_t>(i));
  }
  return transpose(v, {.perm = perm});
}

Op with_type(const Op& leaf, const Type& type) {
  if (const auto* in = leaf.as<op::Input>()) {
    return Op(op::Input{.name = in->name, .type = type, .role = in->role});
  }
  return Op(op::Param{.name = leaf.as<op::Param>()->name, .type = type});
}

}  // namespace

void Batching::batch_leaf(NodeId leaf, std::size_t axis) { leaves_[leaf] = axis; }

void Batching::sweep() {
  for (NodeId id = 0; id < from_.size(); ++id) {
    const Node& node = from_.nodes()[id];
    if (const auto it = leaves_.find(id); it != leaves_.end()) {
      Type type = node.types[0];
      type.dims.insert(type.dims.begin() + static_cast<std::ptrdiff_t>(it->second), size_);
      Node leaf = node;
      leaf.op = with_type(node.op, type);
      leaf.types = {type};
      const Value v = graph().value({graph().append(std::move(leaf)), 0});
      build_.map({id, 0}, to_front(v, it->second));
      batched_[{id, 0}] = true;
      continue;
    }
    std::vector<BatchedValue> operands;
    bool any = random_ == BatchedRandom::Split && draws_numbers(node);
    for (const ValueId v : node.operands) {
      operands.push_back(value(v));
      any = any || operands.back().batched;
    }
    if (any) {
      batch_node(id, std::move(operands));
    } else {
      build_.copy(id);
    }
  }
}

void Batching::batch_node(NodeId id, std::vector<BatchedValue> operands) {
  const Node& node = from_.nodes()[id];
  std::vector<Type> types;
  for (const ValueId v : node.operands) types.push_back(from_.type(v));
  const ProvenanceScope scope(graph(), node.provenance ? *node.provenance : Provenance{});
  const VmapContext context(graph(), node, operands, types, size_, body_transforms(random_));
  const BatchedValues out = at_node(node, [&] { return apply_batch(context); });
  for (std::uint32_t r = 0; r < out.size(); ++r) {
    if (!out[r].value.valid()) continue;
    build_.map({id, r}, out[r].value);
    if (out[r].batched) batched_[{id, r}] = true;
    keep_name(node, r, out[r].value);
  }
}

BatchedValue Batching::value(ValueId old) { return {build_.value(old), batched_.contains(old)}; }

Value Batching::lifted(ValueId old) {
  const BatchedValue v = value(old);
  return v.batched ? v.value : repeat_for_batch(v.value, size_);
}

Transformed Batching::finish(const std::vector<Value>& outputs) {
  graph().set_outputs(outputs);
  return {std::move(graph()), build_.id_map(), {}};
}

}  // namespace ricci
