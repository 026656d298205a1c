#include "schedule/late_values.h"

#include <algorithm>
#include <map>
#include <set>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/lower.h"
#include "ricci/ir/rebuild.h"
#include "ricci/op/ops.h"

#include "schedule/light_values.h"

namespace ricci::schedule {
namespace {

class LateValues {
 public:
  LateValues(const Graph& graph, const Costs& costs)
      : graph_(graph),
        costs_(costs),
        work_(graph.size(), 0),
        calls_(graph.size(), 0),
        users_(graph.size()),
        stored_(graph.size(), false),
        waits_(graph.size(), false) {
    for (const ValueId v : graph.outputs()) stored_[v.node] = true;
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph.nodes()[id];
      if (is_plain_instruction(graph, node))
        work_[id] = loop::weight(lower_node(graph, node).instr);
      const bool call = is_call(node);
      for (const ValueId v : node.operands) {
        calls_[id] = std::max(calls_[id], calls_[v.node] + (call ? 1 : 0));
        users_[v.node].push_back(id);
        if (call) stored_[v.node] = true;
      }
    }
    for (NodeId id = 0; id < graph.size(); ++id) waits_[id] = work_[id] > 0 && waits(id);
  }

  Change run() {
    const ChangedBodies bodies(graph_,
                               [&](const Graph& body) { return late_values(body, costs_); });
    Rebuilder rebuild(graph_);
    bool changed = bodies.any();
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.nodes()[id];
      std::vector<std::set<NodeId>> own;  // by operand: the nodes that are copied
      for (const ValueId v : node.operands) own.push_back(made_late(v, id));
      if (std::ranges::all_of(own, [](const auto& nodes) { return nodes.empty(); })) {
        rebuild.copy(id, bodies.of(id, node));
        continue;
      }
      changed = true;
      const ProvenanceScope scope(rebuild.to(), node.provenance ? *node.provenance : Provenance{});
      std::vector<Value> operands = rebuild.operands(node);
      for (std::size_t k = 0; k < own.size(); ++k) {
        operands[k] = made(rebuild, node.operands[k], own[k], calls_[id]);
      }
      rebuild.map({id, 0}, rebuild.to().add_node(node.op, operands)[0]);
    }
    if (!changed) return std::nullopt;
    return finished(rebuild);
  }

 private:
  [[nodiscard]] bool is_call(const Node& node) const {
    if (node.operands.empty()) return false;
    return !node.bodies.empty() || lower_node(graph_, node).form == Lowering::Form::Call;
  }
  [[nodiscard]] std::int64_t elements(ValueId v) const { return *graph_.type(v).numel(); }
  [[nodiscard]] std::int64_t bytes(ValueId v) const {
    return elements(v) * size_of(graph_.type(v).dtype);
  }

  // What a value is made of: nodes, and the bytes of the arrays that these read.
  struct Making {
    std::int64_t elements = 0;
    std::set<NodeId> nodes;
    std::set<NodeId> arrays;
    std::int64_t bytes = 0;
  };

  // Is the value kept for someone behind a call, who is not better off making it anew?
  [[nodiscard]] bool waits(NodeId id) const {
    return std::ranges::any_of(users_[id], [&](NodeId user) {
      return calls_[user] > calls_[id] && made_late({id, 0}, user).empty();
    });
  }

  // Behind views there is an array that is there anyway: what a call gives, or what waits.
  [[nodiscard]] bool is_array(ValueId v) const {
    const Node& node = graph_.node(v.node);
    if (stored_[v.node] || is_call(node) || node.op.is<op::Input>() || waits_[v.node]) return true;
    if (node.operands.empty() || work_[v.node] > 0) return false;
    return lower_node(graph_, node).form == Lowering::Form::View && is_array(node.operands[0]);
  }

  [[nodiscard]] bool collect(ValueId v, Making& making) const {
    if (elements(v) * costs_.much_smaller <= making.elements || making.nodes.contains(v.node))
      return true;
    const Node& node = graph_.node(v.node);
    const auto* constant = node.op.as<op::Constant>();
    if (node.op.is<op::Iota>() || (constant != nullptr && constant->value.is_splat())) return true;
    if (is_array(v)) {
      if (making.arrays.insert(v.node).second) making.bytes += bytes(v);
      return true;
    }
    if (work_[v.node] == 0) return false;
    making.nodes.insert(v.node);
    return std::ranges::all_of(node.operands, [&](ValueId x) { return collect(x, making); });
  }

  // The nodes that a late reader has made anew; none where it is better to wait.
  [[nodiscard]] std::set<NodeId> made_late(ValueId v, NodeId reader) const {
    const bool waits = work_[reader] > 0 && calls_[reader] > calls_[v.node];
    if (!waits || work_[v.node] == 0 || stored_[v.node] || elements(v) < costs_.least_elements ||
        graph_.node(reader).types[0].dims != graph_.type(v).dims) {
      return {};
    }
    Making making{.elements = elements(v), .nodes = {}, .arrays = {}};
    if (!collect(v, making) || making.bytes >= bytes(v)) return {};
    if (work_twice(v, making) > costs_.early_work) return {};
    return making.nodes;
  }

  // Of the nodes that somebody wants before the late readers do.
  [[nodiscard]] std::int64_t work_twice(ValueId v, const Making& making) const {
    std::set<NodeId> early;
    std::int64_t work = 0;
    for (auto id = making.nodes.rbegin(); id != making.nodes.rend(); ++id) {
      const bool wanted = std::ranges::any_of(users_[*id], [&](NodeId user) {
        if (making.nodes.contains(user)) return early.contains(user);
        return *id != v.node || calls_[user] <= calls_[v.node];
      });
      if (!wanted) continue;
      early.insert(*id);
      work += work_[*id];
    }
    return work;
  }

  Value made(Rebuilder& rebuild, ValueId v, const std::set<NodeId>& nodes, std::int64_t calls) {
    if (!nodes.contains(v.node)) return rebuild.value(v);
    const auto known = made_.find({v.node, calls});
    if (known != made_.end()) return rebuild.to().value(known->second);
    const Node& node = graph_.node(v.node);
    std::vector<Value> operands;
    for (const ValueId x : node.operands) operands.push_back(made(rebuild, x, nodes, calls));
    const Value result = rebuild.to().add_node(node.op, operands)[0];
    made_.emplace(std::pair{v.node, calls}, result.id());
    return result;
  }

  const Graph& graph_;
  const Costs& costs_;
  std::vector<std::int64_t> work_;   ///< of an instruction for each element; 0 for what is none
  std::vector<std::int64_t> calls_;  ///< behind each other, before a node can run
  std::vector<std::vector<NodeId>> users_;
  std::vector<bool> stored_;  ///< somebody needs it as an array
  std::vector<bool> waits_;   ///< it is one, for someone behind a call
  std::map<std::pair<NodeId, std::int64_t>, ValueId> made_;
};

}  // namespace

Change late_values(const Graph& graph, const Costs& costs) {
  return LateValues(graph, costs).run();
}

}  // namespace ricci::schedule
