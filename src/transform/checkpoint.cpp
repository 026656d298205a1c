#include "ricci/transform/checkpoint.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "transform/leaves.h"

namespace ricci {
namespace {

// Moves the marked nodes into the body of one checkpoint.
class Wrapping {
 public:
  Wrapping(const Graph& graph, std::vector<bool> inside, std::vector<ValueId> results)
      : graph_(graph),
        inside_(std::move(inside)),
        build_(graph),
        body_("body", graph.registry()),
        results_(std::move(results)) {}

  Transformed run(const CheckpointOptions& options) {
    const std::vector<bool> after = dependents();
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!inside_[id] && !after[id]) build_.copy(id);
    }
    add_checkpoint(options);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (after[id]) build_.copy(id);
    }
    IdMap map = build_.id_map();
    return {build_.finish(), std::move(map), {}};
  }

 private:
  // Nodes outside that need the checkpoint's results.
  [[nodiscard]] std::vector<bool> dependents() const {
    std::vector<bool> out(graph_.size());
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (inside_[id]) continue;
      out[id] = std::ranges::any_of(graph_.nodes()[id].operands,
                                    [&](ValueId v) { return inside_[v.node] || out[v.node]; });
    }
    return out;
  }

  void add_checkpoint(const CheckpointOptions& options) {
    body_.reserve_keys(graph_.next_key());
    std::vector<Value> operands;
    declare_inputs(operands);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (inside_[id]) move_in(id);
    }
    check_names(options);
    add_used_outside();
    std::vector<ValueId> outputs;
    for (const ValueId v : results_) outputs.push_back(in_body_.at(v));
    body_.set_outputs(std::move(outputs));
    const std::vector<Value> given = build_.to().add_node(
        Op(op::Checkpoint{.policy = options.policy, .names = options.names}), operands,
        {Body{"body", std::make_shared<const Graph>(std::move(body_))}});
    for (std::size_t r = 0; r < given.size(); ++r) {
      const ValueId old = results_[r];
      build_.map(old, given[r]);
      const std::string& name = graph_.node(old.node).names[old.result];
      if (!name.empty()) build_.to().set_value_name(given[r].id(), name);
    }
  }

  // An input for each value the part reads; constants move in.
  void declare_inputs(std::vector<Value>& operands) {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!inside_[id]) continue;
      for (const ValueId v : graph_.nodes()[id].operands) {
        if (inside_[v.node] || in_body_.contains(v)) continue;
        const Node& source = graph_.nodes()[v.node];
        if (source.op.is<op::Constant>()) {
          in_body_[v] = {body_.append(source), 0};
          continue;
        }
        in_body_[v] = body_.input(fmt::format("in{}", operands.size()), graph_.type(v)).id();
        operands.push_back(build_.value(v));
      }
    }
  }

  void move_in(NodeId id) {
    Node node = graph_.nodes()[id];
    for (ValueId& v : node.operands) v = in_body_.at(v);
    const std::size_t count = node.types.size();
    const NodeId now = body_.append(std::move(node));
    for (std::uint32_t r = 0; r < count; ++r) in_body_[{id, r}] = {now, r};
  }

  void add_used_outside() {
    std::set<ValueId> seen(results_.begin(), results_.end());
    const auto use = [&](ValueId v) {
      if (inside_[v.node] && seen.insert(v).second) results_.push_back(v);
    };
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (inside_[id]) continue;
      for (const ValueId v : graph_.nodes()[id].operands) use(v);
    }
    for (const ValueId v : graph_.outputs()) use(v);
  }

  void check_names(const CheckpointOptions& options) const {
    for (const std::string& name : options.names) {
      const bool known = std::ranges::any_of(body_.nodes(), [&](const Node& node) {
        return std::ranges::find(node.names, name) != node.names.end();
      });
      if (known) continue;
      throw UserError(ErrorCode::Name,
                      fmt::format("the checkpointed part has no value named '{}'", name));
    }
  }

  const Graph& graph_;
  std::vector<bool> inside_;
  Rebuilder build_;
  Graph body_;
  std::vector<ValueId> results_;  // values of the part that are seen outside
  std::map<ValueId, ValueId> in_body_;
};

std::vector<ValueId> resolved(const Graph& graph, const std::vector<ValueRef>& refs) {
  std::vector<ValueId> out;
  for (const ValueRef& r : refs) {
    const ValueId v = r.in(graph);
    if (std::ranges::find(out, v) == out.end()) out.push_back(v);
  }
  return out;
}

// Nodes on a path from one of `from` to one of `to`.
std::vector<bool> between(const Graph& graph, const std::vector<ValueId>& from,
                          const std::vector<ValueId>& to) {
  const std::set<ValueId> first(from.begin(), from.end());
  const auto starts = [&](ValueId v) { return first.contains(v); };
  std::vector<bool> reached(graph.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    reached[id] = std::ranges::any_of(graph.nodes()[id].operands,
                                      [&](ValueId v) { return starts(v) || reached[v.node]; });
  }
  std::vector<bool> needed(graph.size());
  for (const ValueId v : to) {
    if (!starts(v)) needed[v.node] = true;
  }
  for (NodeId id = static_cast<NodeId>(graph.size()); id-- > 0;) {
    if (!needed[id]) continue;
    for (const ValueId v : graph.nodes()[id].operands) {
      if (!starts(v)) needed[v.node] = true;
    }
  }
  std::vector<bool> inside(graph.size());
  for (NodeId id = 0; id < graph.size(); ++id) inside[id] = reached[id] && needed[id];
  return inside;
}

void refuse_loops(const Graph& graph, const std::vector<bool>& inside) {
  std::vector<bool> depends(graph.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes()[id];
    bool outside_dependent = false;
    bool any = false;
    for (const ValueId v : node.operands) {
      outside_dependent = outside_dependent || (!inside[v.node] && depends[v.node]);
      any = any || inside[v.node] || depends[v.node];
    }
    if (inside[id] && outside_dependent) {
      throw UserError(ErrorCode::Refused,
                      fmt::format("the part cannot be checkpointed as one: its '{}' reads a value "
                                  "that is computed outside of it from the part itself",
                                  node.op.mnemonic()),
                      "leave that value out of the list the part starts from");
    }
    depends[id] = any;
  }
}

}  // namespace

Transformed checkpoint(const Graph& graph, const CheckpointOptions& options) {
  std::vector<bool> inside;
  for (const Node& node : graph.nodes()) inside.push_back(!node.is_leaf());
  return Wrapping(graph, std::move(inside), {}).run(options);
}

Transformed checkpoint(const Graph& graph, const std::vector<ValueRef>& from,
                       const std::vector<ValueRef>& to, const CheckpointOptions& options) {
  const std::vector<ValueId> ends = resolved(graph, to);
  std::vector<bool> inside = between(graph, resolved(graph, from), ends);
  refuse_loops(graph, inside);
  std::vector<ValueId> results;
  for (const ValueId v : ends) {
    if (!inside[v.node]) {
      throw UserError(ErrorCode::Refused,
                      fmt::format("'{}' does not depend on the values the part starts from",
                                  graph.node(v.node).op.mnemonic()));
    }
    results.push_back(v);
  }
  return Wrapping(graph, std::move(inside), std::move(results)).run(options);
}

}  // namespace ricci
