#include "ricci/compiler/rewrite/batch_regions.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ricci/build/build.h"

#include "rewrite/replace_nodes.h"

namespace ricci {
namespace {

// A function of one operand as the step of a region; nothing for other nodes.
std::optional<RegionStep> unary_step(const Node& node) {
  if (const auto* unary = node.op.as<op::Unary>()) {
    return RegionStep::activation(unary->kind, RegionOperand::input(0));
  }
  if (const auto* to = node.op.as<op::Cast>()) {
    return RegionStep::cast(to->to, RegionOperand::input(0));
  }
  return std::nullopt;
}

// The chain of a region with one result.
const std::vector<RegionStep>* single_chain(const Node& node) {
  const auto* region = node.op.as<op::ElementwiseRegion>();
  if (region == nullptr || region->outputs || node.operands.empty()) return nullptr;
  return &region->chain;
}

// The value an axis-0 slice with at least one row is cut from; nothing for other values.
std::optional<ValueId> sliced_from(const Graph& graph, ValueId v) {
  const Node& node = graph.node(v.node);
  const auto* slice = node.op.as<op::Narrow>();
  if (slice == nullptr || slice->axis.index() != 0) return std::nullopt;
  if (!slice->len.is_static() || slice->len.is(0)) return std::nullopt;
  return node.operands[0];
}

// Does a node join at least two functions of slices of one value along axis 0, all other operands
// of which are the same values? `same` compares the function of an operand with that of the first;
// it is false for what is no function.
template <class Same>
bool joins_slices(const Graph& graph, const Node& node, Same&& same) {
  const auto* join = node.op.as<op::Concat>();
  if (join == nullptr || join->axis.index() != 0 || node.operands.size() < 2) return false;
  const Node& first = graph.node(node.operands[0].node);
  std::optional<ValueId> source;
  for (const ValueId v : node.operands) {
    const Node& function = graph.node(v.node);
    if (!same(function, first) || graph.type(v).dims[0].is(0)) return false;
    const auto from = sliced_from(graph, function.operands[0]);
    if (!from || (source && *source != *from)) return false;
    source = from;
    const auto others = std::span(function.operands).subspan(1);
    if (!std::ranges::equal(others, std::span(first.operands).subspan(1))) return false;
  }
  return true;
}

}  // namespace

PassResult mark_batch_slice_regions(const Graph& graph) {
  std::set<NodeId> marked;
  const auto same = [](const Node& a, const Node& b) {
    const auto step = unary_step(a);
    return step && step == unary_step(b);
  };
  for (const Node& node : graph.nodes()) {
    if (!joins_slices(graph, node, same)) continue;
    for (const ValueId v : node.operands) marked.insert(v.node);
  }
  const auto as_region = [&](const NodeVisit& v) -> NewResults {
    if (!marked.contains(v.id)) return std::nullopt;
    return elementwise_region({v.operands[0]}, {.chain = {*unary_step(v.node)}});
  };
  return replace_nodes(graph, "mark_batch_slice_regions", as_region, mark_batch_slice_regions);
}

PassResult fuse_batch_preprocess(const Graph& graph) {
  const std::vector<std::size_t> uses = graph.use_counts();
  const auto same = [](const Node& a, const Node& b) {
    const auto* chain = single_chain(a);
    const auto* other = single_chain(b);
    return chain != nullptr && other != nullptr && *chain == *other;
  };
  const auto as_batch = [&](const NodeVisit& v) -> NewResults {
    const auto& regions = v.node.operands;
    const auto used_here = [&](ValueId r) { return uses[r.node] == 1; };
    if (!joins_slices(graph, v.node, same) || !std::ranges::all_of(regions, used_here)) {
      return std::nullopt;
    }
    std::vector<Value> operands;
    for (const ValueId r : regions) {
      for (const ValueId o : graph.node(r.node).operands) operands.push_back(v.rebuild.value(o));
    }
    const Node& first = graph.node(regions[0].node);
    const auto each = static_cast<std::int64_t>(first.operands.size());
    return std::vector{batch_elementwise_region(
        operands, {.chain = *single_chain(first), .operands_per_plane = each})};
  };
  return replace_nodes(graph, "fuse_batch_preprocess", as_batch, fuse_batch_preprocess);
}

}  // namespace ricci
