#include "schedule/rows_first.h"

#include <algorithm>
#include <memory>
#include <set>
#include <span>

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/lower.h"
#include "ricci/ir/rebuild.h"
#include "ricci/op/ops.h"
#include "ricci/transform/vmap.h"

#include "ir/draws_numbers.h"
#include "op/loop_layout.h"
#include "rewrite/replace_nodes.h"
#include "schedule/light_values.h"

namespace ricci::schedule {
namespace {

std::int64_t elements_of(const Type& type) {
  return type.is_static() ? type.numel().value_or(0) : 0;
}

// Worth more than to be read from memory: anything that is not element by element, and functions
// that take several instructions.
bool is_work(const Graph& body, const Node& node) {
  constexpr std::int64_t Several = 4;
  if (node.op.is<op::Matmul>() || node.op.is<op::Reduce>()) return true;
  return is_plain_instruction(body, node) && loop::weight(lower_node(body, node).instr) >= Several;
}

// What of a body depends on rows of xs, and on bcasts, alone.
class Rows {
 public:
  Rows(const op::Scan& op, const Graph& body)
      : body_(body),
        length_(op.length.value()),
        of_rows_(body.size(), false),
        alone_(body.size(), false),
        works_(body.size(), false),
        given_(body.size(), 0),
        needed_(body.size(), false),
        leaves_(body.size(), false) {
    const ScanLayout layout(op);
    std::size_t input = 0;
    for (NodeId id = 0; id < body.size(); ++id) {
      const Node& node = body.nodes()[id];
      if (!node.op.is<op::Input>()) {
        look(id, node);
        continue;
      }
      alone_[id] = input >= layout.first_bcast();
      of_rows_[id] = layout.is_x(input++);
      if (of_rows_[id]) given_[id] = elements_of(node.types[0]);
    }
    find_leaving();
  }

  [[nodiscard]] const std::vector<NodeId>& leaving() const noexcept { return frontier_; }
  /// Does the rest of the body need the node, or is it one of the signature?
  [[nodiscard]] bool stays(NodeId id) const { return needed_[id] && !leaves_[id]; }

 private:
  void look(NodeId id, const Node& node) {
    const bool plain = !node.op.is<op::Custom>() && node.bodies.empty() && !draws_numbers(node);
    alone_[id] = plain && node.types.size() == 1;
    works_[id] = is_work(body_, node);
    for (const ValueId v : node.operands) {
      alone_[id] = alone_[id] && alone_[v.node];
      of_rows_[id] = of_rows_[id] || of_rows_[v.node];
      works_[id] = works_[id] || (of_rows_[v.node] && works_[v.node]);
      given_[id] = std::max(given_[id], given_[v.node]);
    }
  }

  // It is stored for every step: no more than what it is made of, and where a step fills a device
  // there is nothing to gain.
  [[nodiscard]] bool may_leave(NodeId id) const {
    constexpr std::int64_t FewElements = 1 << 12;   // of a step
    constexpr std::int64_t MostElements = 1 << 24;  // of all
    const std::int64_t size = elements_of(body_.nodes()[id].types[0]);
    const bool is_small = size > 0 && size <= std::min(given_[id], FewElements) &&
                          size <= MostElements / std::max<std::int64_t>(length_, 1);
    return alone_[id] && of_rows_[id] && works_[id] && is_small;
  }

  void find_leaving() {
    for (const ValueId v : body_.outputs()) needed_[v.node] = true;
    for (NodeId id = static_cast<NodeId>(body_.size()); id-- > 0;) {
      const Node& node = body_.nodes()[id];
      if (node.op.is<op::Input>()) {
        needed_[id] = true;
        continue;
      }
      if (!needed_[id]) continue;
      leaves_[id] = may_leave(id);
      if (leaves_[id]) {
        frontier_.push_back(id);
        continue;
      }
      for (const ValueId v : node.operands) needed_[v.node] = true;
    }
    std::ranges::reverse(frontier_);
  }

  const Graph& body_;
  std::int64_t length_;
  std::vector<bool> of_rows_;
  std::vector<bool> alone_;  ///< without carries
  std::vector<bool> works_;
  std::vector<std::int64_t> given_;  ///< elements of the largest row it is made of
  std::vector<bool> needed_;
  std::vector<bool> leaves_;
  std::vector<NodeId> frontier_;
};

// The body's bcasts and xs to what leaves it.
Graph leaving_graph(const Graph& body, const Rows& rows, std::size_t carries) {
  std::set<NodeId> wanted;
  std::vector<NodeId> waiting = rows.leaving();
  while (!waiting.empty()) {
    const NodeId id = waiting.back();
    waiting.pop_back();
    if (!wanted.insert(id).second) continue;
    for (const ValueId v : body.nodes()[id].operands) waiting.push_back(v.node);
  }
  Rebuilder rebuild(body);
  const std::vector<NodeId> inputs = body.inputs();
  for (std::size_t k = carries; k < inputs.size(); ++k) rebuild.copy(inputs[k]);
  for (const NodeId id : wanted) {
    if (!body.nodes()[id].op.is<op::Input>()) rebuild.copy(id);
  }
  std::vector<Value> outputs;
  for (const NodeId id : rows.leaving()) outputs.push_back(rebuild.value({id, 0}));
  rebuild.to().set_outputs(std::span<const Value>(outputs));
  return std::move(rebuild.to());
}

// The body that reads what has left it as further xs.
std::shared_ptr<const Graph> remainder(const Graph& body, const Rows& rows) {
  Rebuilder rebuild(body);
  for (const NodeId id : body.inputs()) rebuild.copy(id);
  for (const NodeId id : rows.leaving()) {
    const std::string name = rebuild.to().unique_name(fmt::format("row_{}", id));
    rebuild.map({id, 0}, rebuild.to().input(name, body.nodes()[id].types[0]));
  }
  for (NodeId id = 0; id < body.size(); ++id) {
    if (rows.stays(id) && !body.nodes()[id].op.is<op::Input>()) rebuild.copy(id);
  }
  return std::make_shared<const Graph>(rebuild.finish());
}

NewResults with_rows_first(const NodeVisit& v) {
  const auto* op = v.node.op.as<op::Scan>();
  constexpr std::int64_t FewSteps = 16;
  if (op == nullptr || !op->length.is_static() || op->length.value() < FewSteps) {
    return std::nullopt;
  }
  const Graph& body = *v.node.body("body");
  const Rows rows(*op, body);
  if (rows.leaving().empty()) return std::nullopt;
  const ScanLayout layout(*op);
  const Graph alone = leaving_graph(body, rows, layout.carries);
  std::vector<BatchedInput> batched;
  const std::vector<NodeId> inputs = alone.inputs();
  for (std::size_t k = layout.bcasts; k < inputs.size(); ++k) {
    batched.emplace_back(*alone.node(inputs[k]).leaf_name());
  }
  const Graph over_rows = vmap(alone, batched, op->length).graph;
  std::vector<Value> operands = v.operands;
  const std::vector<Value> given(operands.begin() + static_cast<std::ptrdiff_t>(layout.carries),
                                 operands.end());
  const std::vector<Value> more = inline_subgraph(over_rows, given, v.graph());
  operands.insert(operands.end(), more.begin(), more.end());
  op::Scan shorter = *op;
  shorter.num_xs += static_cast<std::int64_t>(more.size());
  NodeSpec spec{.op = Op(shorter),
                .operands = {},
                .bodies = {{"body", remainder(body, rows)}},
                .wanted = v.node.wanted};
  for (const Value& x : operands) spec.operands.push_back(x.id());
  const NodeId now = v.graph().add(std::move(spec));
  std::vector<Value> results;
  for (std::uint32_t r = 0; r < v.node.types.size(); ++r) {
    results.push_back(v.node.wanted[r] ? v.graph().value({now, r}) : Value());
  }
  return results;
}

}  // namespace

Change rows_first(const Graph& graph) {
  const auto is_scan = [](const Graph&, const Node& node) { return node.op.is<op::Scan>(); };
  return replace_where(graph, "rows_first", is_scan, with_rows_first);
}

}  // namespace ricci::schedule
