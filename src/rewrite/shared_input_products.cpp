#include <algorithm>
#include <map>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/fuse.h"

#include "rewrite/changes.h"

namespace ricci {
namespace {

// Products with one left operand, in node order.
using Group = std::vector<NodeId>;

// Which values are params, or elements of params moved about.
std::vector<bool> moved_params(const Graph& graph) {
  std::vector<bool> moved(graph.size(), false);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    moved[id] = node.op.is<op::Param>() ||
                (node.op.has(Trait::DataMovement) && !node.op.has(Trait::Faults) &&
                 !node.operands.empty() &&
                 std::ranges::all_of(node.operands, [&](ValueId v) { return moved[v.node]; }));
  }
  return moved;
}

// Multiplications of a product; nothing for one that is not of the kind.
std::optional<std::int64_t> work_of(const Graph& graph, const Node& node,
                                    const std::vector<bool>& moved) {
  if (!node.op.is<op::Matmul>() || !moved[node.operands[1].node]) return std::nullopt;
  const Type& weight = graph.type(node.operands[1]);
  if (weight.rank() != 2 || !weight.is_static() || !node.types[0].is_static()) return std::nullopt;
  const std::int64_t work = node.types[0].numel().value() * weight.dims[0].value();
  return work > 0 ? std::optional(work) : std::nullopt;
}

// As many products of one value as are worth it together; those left alone are no group.
std::vector<Group> find_groups(const Graph& graph, std::int64_t most_work) {
  struct Open {
    std::size_t group;
    std::int64_t work;
  };
  const std::vector<bool> moved = moved_params(graph);
  const std::vector<std::size_t> uses = graph.use_counts();
  std::vector<Group> groups;
  std::map<ValueId, Open> open;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    const auto work = work_of(graph, node, moved);
    if (!work || *work > most_work || uses[id] == 0) continue;
    const auto at = open.find(node.operands[0]);
    if (at != open.end() && at->second.work + *work <= most_work) {
      groups[at->second.group].push_back(id);
      at->second.work += *work;
    } else {
      open[node.operands[0]] = {groups.size(), *work};
      groups.push_back({id});
    }
  }
  std::erase_if(groups, [](const Group& group) { return group.size() < 2; });
  return groups;
}

class GroupedRebuild {
 public:
  GroupedRebuild(const Graph& graph, const std::vector<Group>& groups)
      : rebuild_(graph), group_of_(graph.size(), nullptr) {
    for (const Group& group : groups) {
      for (const NodeId id : group) group_of_[id] = &group;
    }
  }

  PassResult run() {
    const Graph& graph = rebuild_.from();
    // Weights may be made behind the first product of their group: leaves first, in their order.
    for (const NodeId id : graph.leaves()) rebuild_.copy(id);
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (group_of_[id] == nullptr) {
        copy(id);
      } else if (group_of_[id]->front() == id) {
        add(*group_of_[id]);
      }
    }
    return finished(rebuild_);
  }

 private:
  void copy(NodeId id) {
    if (rebuild_.has({id, 0})) return;
    for (const ValueId v : rebuild_.from().node(id).operands) {
      if (group_of_[v.node] == nullptr) copy(v.node);
    }
    rebuild_.copy(id);
  }

  void add(const Group& group) {
    const Graph& graph = rebuild_.from();
    const Node& first = graph.node(group.front());
    std::vector<Value> weights;
    for (const NodeId id : group) {
      const ValueId weight = graph.node(id).operands[1];
      copy(weight.node);
      weights.push_back(rebuild_.value(weight));
    }
    const ProvenanceScope scope(rebuild_.to(), first.provenance ? *first.provenance : Provenance{});
    const Value joined = matmul(rebuild_.value(first.operands[0]), concat(weights, {.axis = 1}));
    Dim start = 0;
    for (const NodeId id : group) {
      const Node& node = graph.node(id);
      const Dim width = node.types[0].dims.back();
      const Value part = narrow(joined, {.axis = -1, .start = start, .len = width});
      if (!node.names[0].empty()) part.named(node.names[0]);
      rebuild_.map({id, 0}, part);
      start = start + width;
    }
  }

  Rebuilder rebuild_;
  std::vector<const Group*> group_of_;
};

}  // namespace

PassResult fuse_shared_input_matmul(const Graph& graph, const SharedInputOptions& options) {
  const std::vector<Group> groups = find_groups(graph, options.most_work);
  if (groups.empty()) return unchanged(graph);
  return GroupedRebuild(graph, groups).run();
}

}  // namespace ricci
