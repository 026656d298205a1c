#include "schedule/light_values.h"

#include <algorithm>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/lower.h"
#include "ricci/ir/rebuild.h"
#include "ricci/op/ops.h"

namespace ricci::schedule {
namespace {

class LightValues {
 public:
  LightValues(const Graph& graph, const Costs& costs)
      : graph_(graph),
        costs_(costs),
        uses_(graph.size(), 0),
        work_(graph.size(), 0),
        stored_(graph.size(), false) {
    for (const ValueId v : graph.outputs()) stored_[v.node] = true;
    for (auto id = static_cast<NodeId>(graph.size()); id-- > 0;) {
      const Node& node = graph.nodes()[id];
      if (is_plain_instruction(graph, node))
        work_[id] = loop::weight(lower_node(graph, node).instr);
      const bool reads_elements =
          work_[id] > 0 || node.op.is<op::Reduce>() || (node.op.is<op::Expand>() && !stored_[id]);
      for (const ValueId v : node.operands) {
        ++uses_[v.node];
        if (!reads_elements) stored_[v.node] = true;
      }
    }
  }

  Change run() {
    const ChangedBodies bodies(graph_,
                               [&](const Graph& body) { return light_values(body, costs_); });
    Rebuilder rebuild(graph_);
    bool changed = bodies.any();
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.nodes()[id];
      std::vector<bool> own;
      if (work_[id] > 0 || node.op.is<op::Reduce>()) own = computed_apart(node);
      if (std::ranges::find(own, true) == own.end()) {
        rebuild.copy(id, bodies.of(id, node));
        continue;
      }
      changed = true;
      const ProvenanceScope scope(rebuild.to(), node.provenance ? *node.provenance : Provenance{});
      std::vector<Value> operands = rebuild.operands(node);
      const Dims dims = walked(node);
      for (std::size_t k = 0; k < own.size(); ++k) {
        if (own[k]) operands[k] = broadcast_to(computed(rebuild, node.operands[k], dims), dims);
      }
      rebuild.map({id, 0}, rebuild.to().add_node(node.op, operands)[0]);
    }
    if (!changed) return std::nullopt;
    return finished(rebuild);
  }

 private:
  // What a node goes through element by element.
  [[nodiscard]] const Dims& walked(const Node& node) const {
    return node.op.is<op::Reduce>() ? graph_.type(node.operands[0]).dims : node.types[0].dims;
  }
  [[nodiscard]] std::int64_t elements(ValueId v) const { return *graph_.type(v).numel(); }

  // Which operands the node is better off computing for itself.
  [[nodiscard]] std::vector<bool> computed_apart(const Node& node) const {
    std::vector<bool> own;
    for (const ValueId v : node.operands) {
      const Dims& dims = walked(node);
      std::int64_t work = 0;
      bool gains = false;
      own.push_back(is_light(v, dims, work, gains) && gains);
    }
    return own;
  }

  [[nodiscard]] bool is_given(ValueId v, const Dims& dims) const {
    const Op& op = graph_.node(v.node).op;
    if (op.is<op::Iota>()) return true;
    const auto* constant = op.as<op::Constant>();
    if (constant != nullptr && constant->value.is_splat()) return true;
    return elements(v) * costs_.much_smaller <= *Type{DType::F32, dims}.numel();
  }

  // Is it made of what is given by few instructions? There is something to gain where one of these
  // would be stored for others, or because it is repeated.
  [[nodiscard]] bool is_light(ValueId v, const Dims& dims, std::int64_t& work, bool& gains) const {
    if (is_given(v, dims)) return true;
    const Node& node = graph_.node(v.node);
    if (node.op.is<op::Expand>()) {
      return !stored_[v.node] && is_light(node.operands[0], dims, work, gains);
    }
    if (work_[v.node] == 0 || stored_[v.node]) return false;
    work += work_[v.node];
    if (work > costs_.light_work) return false;
    gains = gains || uses_[v.node] > 1 || node.types[0].dims != dims;
    return std::ranges::all_of(node.operands,
                               [&](ValueId x) { return is_light(x, dims, work, gains); });
  }

  Value computed(Rebuilder& rebuild, ValueId v, const Dims& dims) const {
    const Node& node = graph_.node(v.node);
    if (is_given(v, dims)) {
      const bool number = node.op.is<op::Constant>();
      return number ? rebuild.value(v) : broadcast_to(rebuild.value(v), dims);
    }
    if (node.op.is<op::Expand>()) return computed(rebuild, node.operands[0], dims);
    std::vector<Value> operands;
    for (const ValueId x : node.operands) operands.push_back(computed(rebuild, x, dims));
    return rebuild.to().add_node(node.op, operands)[0];
  }

  const Graph& graph_;
  const Costs& costs_;
  std::vector<std::size_t> uses_;
  std::vector<std::int64_t> work_;  ///< of an instruction for each element; 0 for what is none
  std::vector<bool> stored_;        ///< somebody needs it as an array
};

}  // namespace

bool is_plain_instruction(const Graph& graph, const Node& node) {
  if (!node.op.has(Trait::Elementwise) || node.operands.empty()) return false;
  const Lowering lowered = lower_node(graph, node);
  if (lowered.form != Lowering::Form::Pointwise || lowered.indirect) return false;
  switch (lowered.instr.code) {
    case loop::Code::Unary:
    case loop::Code::Binary:
    case loop::Code::Compare:
    case loop::Code::Select:
    case loop::Code::Cast: return !loop::is_partial(lowered.instr);
    default: return false;
  }
}

Change light_values(const Graph& graph, const Costs& costs) {
  return LightValues(graph, costs).run();
}

}  // namespace ricci::schedule
