#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/op/ops.h"

#include "ir/draws_numbers.h"
#include "op/loop_layout.h"
#include "rewrite/replace_nodes.h"
#include "support/phases.h"

namespace ricci {
namespace {

// Costs nothing where it stands, or next to nothing.
bool is_free(const Node& node) {
  const Op& op = node.op;
  return op.is<op::Constant>() || op.is<op::Iota>() || op.is<op::DimSize>() ||
         op.is<op::Reshape>() || op.is<op::Transpose>() || op.is<op::Expand>() ||
         op.is<op::Narrow>() || op.is<op::Reverse>() || op.is<op::StopGradient>();
}

// A matrix that products read the other way round than it lies: to bring it into their order before
// the loop costs less than in every step. Small ones are a few instructions there.
std::vector<bool> turned_factors(const Graph& body) {
  constexpr std::int64_t Large = 1 << 14;
  std::vector<bool> out(body.size(), false);
  for (const Node& node : body.nodes()) {
    if (!node.op.is<op::Matmul>()) continue;
    for (const ValueId v : node.operands) {
      const Type& type = body.type(v);
      out[v.node] = body.nodes()[v.node].op.is<op::Transpose>() && type.is_static() &&
                    type.numel().value_or(0) >= Large;
    }
  }
  return out;
}

// An element-wise op that broadcasts makes more than it reads: to read that again and again would
// cost more than to make it.
bool only_spreads(const Graph& body, const Node& node) {
  if (!node.op.has(Trait::Elementwise)) return false;
  const auto elements = [](const Type& t) { return t.is_static() ? t.numel().value_or(0) : 0; };
  std::int64_t largest = 0;
  for (const ValueId v : node.operands) largest = std::max(largest, elements(body.type(v)));
  return elements(node.types[0]) > largest;
}

// Is it registered at run time, or has it one that is in a body?
bool runs_custom(const Node& node) {
  if (node.op.is<op::Custom>()) return true;
  return std::ranges::any_of(node.bodies, [](const Body& body) {
    return std::ranges::any_of(body.graph->nodes(), runs_custom);
  });
}

// What of a scan's body is the same in every step, and worth computing before the loop.
class Invariants {
 public:
  Invariants(const op::Scan& op, const Graph& body)
      : op_(op),
        body_(body),
        same_(body.size(), false),
        turned_(turned_factors(body)),
        leaves_(body.size(), false) {
    std::size_t input = 0;
    const ScanLayout layout(op);
    for (NodeId id = 0; id < body.size(); ++id) {
      const Node& node = body.nodes()[id];
      same_[id] = node.op.is<op::Input>() ? layout.is_bcast(input++)
                                          : depends_on_same(node) && !is_kept_by_name(node);
    }
    find_leaving();
  }

  /// Nodes whose results the rest of the body reads.
  [[nodiscard]] const std::vector<NodeId>& leaving() const noexcept { return frontier_; }
  /// Does the rest of the body need the node, or is it one of the signature?
  [[nodiscard]] bool stays(NodeId id) const { return needed_[id] && !leaves_[id]; }

 private:
  [[nodiscard]] bool depends_on_same(const Node& node) const {
    if (draws_numbers(node) || runs_custom(node)) return false;
    return std::ranges::all_of(node.operands, [&](ValueId v) { return same_[v.node]; });
  }

  [[nodiscard]] bool is_kept_by_name(const Node& node) const {
    return std::ranges::any_of(node.names, [&](const std::string& name) {
      return !name.empty() && std::ranges::find(op_.save_names, name) != op_.save_names.end();
    });
  }

  void find_leaving() {
    needed_.assign(body_.size(), false);
    for (const ValueId v : body_.outputs()) needed_[v.node] = true;
    for (NodeId id = static_cast<NodeId>(body_.size()); id-- > 0;) {
      const Node& node = body_.nodes()[id];
      if (node.op.is<op::Input>()) {
        needed_[id] = true;
        continue;
      }
      if (!needed_[id]) continue;
      leaves_[id] = same_[id] && (turned_[id] || (!is_free(node) && !only_spreads(body_, node)));
      if (leaves_[id]) {
        frontier_.push_back(id);
        continue;
      }
      for (const ValueId v : node.operands) needed_[v.node] = true;
    }
    std::ranges::reverse(frontier_);
  }

  const op::Scan& op_;
  const Graph& body_;
  std::vector<bool> same_;
  std::vector<bool> turned_;
  std::vector<bool> needed_;
  std::vector<bool> leaves_;
  std::vector<NodeId> frontier_;
};

// Computes values of a body outside of it.
class Outside {
 public:
  Outside(const NodeVisit& visit, const Graph& body) : visit_(visit), body_(body) {
    const std::vector<NodeId> inputs = body.inputs();
    for (std::size_t k = 0; k < inputs.size(); ++k) made_[{inputs[k], 0}] = visit.operands[k];
  }

  void compute(NodeId last) {
    // By hand rather than by recursion: bodies may be long chains.
    std::vector<NodeId> waiting{last};
    while (!waiting.empty()) {
      const NodeId id = waiting.back();
      const Node& node = body_.nodes()[id];
      bool ready = true;
      for (const ValueId v : node.operands) {
        if (made_.contains(v)) continue;
        waiting.push_back(v.node);
        ready = false;
      }
      if (!ready) continue;
      waiting.pop_back();
      if (!is_made(id)) add(id, node);
    }
  }
  [[nodiscard]] Value value(ValueId of) const { return made_.at(of); }

 private:
  [[nodiscard]] bool is_made(NodeId id) const {
    const auto at = made_.lower_bound({id, 0});
    return at != made_.end() && at->first.node == id;
  }
  void add(NodeId id, const Node& node) {
    NodeSpec spec{.op = node.op, .operands = {}, .bodies = node.bodies, .wanted = node.wanted};
    for (const ValueId v : node.operands) spec.operands.push_back(made_.at(v).id());
    // A fault is reported, and time is counted, where the node stood.
    std::optional<ProvenanceScope> own;
    if (node.provenance) own.emplace(visit_.graph(), *node.provenance);
    const NodeId now = visit_.graph().add(std::move(spec));
    for (std::uint32_t r = 0; r < node.types.size(); ++r) {
      if (node.wanted[r]) made_[{id, r}] = visit_.graph().value({now, r});
    }
  }

  const NodeVisit& visit_;
  const Graph& body_;
  std::map<ValueId, Value> made_;
};

// The body that reads what has left it as further bcasts.
struct Remainder {
  std::shared_ptr<const Graph> body;
  std::vector<ValueId> taken;  ///< values of the old body, one per new bcast
};

// A name that is free in the old body and in the new one.
std::string free_name(const Graph& body, const Graph& now, const std::string& wish) {
  const std::string base = wish.empty() ? "same" : wish;
  std::string name = base;
  for (int n = 2; body.find(name) || now.find(name); ++n) name = fmt::format("{}_{}", base, n);
  return name;
}

Remainder remainder(const Graph& body, const Invariants& invariants, std::size_t first_x) {
  Remainder out;
  Rebuilder rebuild(body);
  const std::vector<NodeId> inputs = body.inputs();
  for (std::size_t k = 0; k < first_x; ++k) rebuild.copy(inputs[k]);
  for (const NodeId id : invariants.leaving()) {
    const Node& node = body.nodes()[id];
    for (std::uint32_t r = 0; r < node.types.size(); ++r) {
      if (!node.wanted[r]) continue;
      const std::string name = free_name(body, rebuild.to(), node.names[r]);
      rebuild.map({id, r}, rebuild.to().input(name, node.types[r]));
      out.taken.push_back({id, r});
    }
  }
  for (std::size_t k = first_x; k < inputs.size(); ++k) rebuild.copy(inputs[k]);
  for (NodeId id = 0; id < body.size(); ++id) {
    if (invariants.stays(id) && !body.nodes()[id].op.is<op::Input>()) rebuild.copy(id);
  }
  out.body = std::make_shared<const Graph>(rebuild.finish());
  return out;
}

NewResults without_invariants(const NodeVisit& v) {
  const auto* op = v.node.op.as<op::Scan>();
  if (op == nullptr || !op->length.is_static() || op->length.value() < 2) return std::nullopt;
  const Graph& body = *v.node.body("body");
  const Invariants invariants(*op, body);
  if (invariants.leaving().empty()) return std::nullopt;
  const ScanLayout layout(*op);
  const Remainder rest = remainder(body, invariants, layout.first_x());
  Outside outside(v, body);
  std::vector<Value> operands = v.operands;
  std::vector<Value> more;
  for (const NodeId id : invariants.leaving()) outside.compute(id);
  for (const ValueId id : rest.taken) more.push_back(outside.value(id));
  operands.insert(operands.begin() + static_cast<std::ptrdiff_t>(layout.first_x()), more.begin(),
                  more.end());
  op::Scan shorter = *op;
  shorter.num_bcast += static_cast<std::int64_t>(more.size());
  NodeSpec spec{
      .op = Op(shorter), .operands = {}, .bodies = {{"body", rest.body}}, .wanted = v.node.wanted};
  for (const Value& x : operands) spec.operands.push_back(x.id());
  const NodeId now = v.graph().add(std::move(spec));
  std::vector<Value> results;
  for (std::uint32_t r = 0; r < v.node.types.size(); ++r) {
    results.push_back(v.node.wanted[r] ? v.graph().value({now, r}) : Value());
  }
  return results;
}

}  // namespace

Change move_invariants(const Graph& graph) {
  const Phase phase("invariants of loops");
  const auto is_scan = [](const Graph&, const Node& node) { return node.op.is<op::Scan>(); };
  return replace_where(graph, "hoist_invariants", is_scan, without_invariants);
}

PassResult hoist_invariants(const Graph& graph) {
  return or_unchanged(graph, move_invariants(graph));
}

}  // namespace ricci
