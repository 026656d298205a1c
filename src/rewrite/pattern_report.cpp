#include "ricci/compiler/rewrite/pattern_report.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "ricci/compiler/rewrite/pass.h"

#include "rewrite/fusions.h"

namespace ricci {
namespace {

bool is_fused_op(const Op& op) {
  return op.mnemonic().starts_with("fused_") || op.is<op::ElementwiseRegion>() ||
         op.is<op::BatchElementwiseRegion>() || op.is<op::TransformRegion>();
}

void count_fused(const Graph& graph, std::map<std::string, std::size_t>& counts) {
  for (const Node& node : graph.nodes()) {
    if (is_fused_op(node.op)) ++counts[std::string(node.op.mnemonic())];
    for (const Body& body : node.bodies) count_fused(*body.graph, counts);
  }
}

class Misses {
 public:
  explicit Misses(const Graph& graph) : graph_(graph), uses_(graph), readers_(graph.size()) {
    for (NodeId id = 0; id < graph.size(); ++id) {
      for (const ValueId v : graph.node(id).operands) readers_[v.node].push_back(id);
    }
  }

  std::vector<PatternMiss> find() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      if (node.op.is<op::Matmul>()) look_at_product(id);
      if (node.op.is<op::FusedMatmulBiasAct>()) look_behind_layer(id);
      if (is_binary_node(node, BinaryKind::Mul)) look_at_gate(id);
    }
    look_at_shared_inputs();
    return std::move(found_);
  }

 private:
  void miss(std::string pattern, MissReason reason, NodeId id) {
    const Node& node = graph_.node(id);
    found_.push_back({std::move(pattern), reason, id,
                      node.provenance ? node.provenance->where : SourcePosition{}});
  }

  void look_at_product(NodeId id) {
    const std::vector<NodeId>& readers = readers_[id];
    const auto sum = std::ranges::find_if(
        readers, [&](NodeId r) { return is_binary_node(graph_.node(r), BinaryKind::Add); });
    if (sum == readers.end()) {
      const bool function =
          readers.size() == 1 && uses_.once({id, 0}) && graph_.node(readers[0]).op.is<op::Unary>();
      if (function) miss("matmul_bias_act", MissReason::NonAddBiasConsumer, id);
      return;
    }
    const Node& add = graph_.node(*sum);
    const ValueId other = add.operands[add.operands[0].node == id ? 1 : 0];
    const std::size_t rank = uses_.type(other).rank();
    // Two products added, or a residual: no bias.
    if (rank == graph_.node(id).types[0].rank()) return;
    const bool once = uses_.once({id, 0});
    miss("matmul_bias_act",
         rank > 1 ? MissReason::BiasRankTooHigh
                  : (once ? MissReason::NotFused : MissReason::MultiConsumer),
         id);
  }

  // A function behind a layer that it could have been part of.
  void look_behind_layer(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op.as<op::FusedMatmulBiasAct>()->activation || readers_[id].size() != 1) return;
    const Node& reader = graph_.node(readers_[id][0]);
    if (!reader.op.is<op::Unary>()) return;
    const bool changes = reader.types[0] != node.types[0];
    miss("matmul_bias_act",
         changes ? MissReason::UnsupportedEpilogueActivation
                 : (uses_.once({id, 0}) ? MissReason::NotFused : MissReason::MultiConsumer),
         id);
  }

  void look_at_gate(NodeId id) {
    const Node& node = graph_.node(id);
    for (const std::size_t k : {0U, 1U}) {
      const auto* silu = uses_.as<op::Unary>(node.operands[1 - k]);
      if (silu == nullptr || silu->kind != UnaryKind::Silu) continue;
      const ValueId up = node.operands[k];
      const ValueId gate = uses_.node(node.operands[1 - k]).operands[0];
      const auto both = [&]<class T>() {
        return uses_.as<T>(up) != nullptr && uses_.as<T>(gate) != nullptr;
      };
      const bool products = both.template operator()<op::Matmul>();
      const bool halves = both.template operator()<op::Narrow>();
      if (!products && !halves) continue;
      const bool shared = uses_.node(up).operands[0] == uses_.node(gate).operands[0];
      const bool once = uses_.once(up) && uses_.once(gate) && uses_.once(node.operands[1 - k]);
      if (!shared) {
        miss("swiglu", MissReason::SwigluNotSharedInput, id);
      } else if (!once) {
        miss("swiglu", MissReason::MultiConsumer, id);
      } else {
        miss(
            "swiglu",
            halves && !are_halves(up, gate) ? MissReason::SwigluGateBeforeUp : MissReason::NotFused,
            id);
      }
      return;
    }
  }

  [[nodiscard]] bool are_halves(ValueId a, ValueId b) const {
    const auto* first = uses_.as<op::Narrow>(a);
    const auto* second = uses_.as<op::Narrow>(b);
    return first->axis == second->axis && !(first->start == second->start) &&
           first->len * 2 == uses_.type(uses_.node(a).operands[0]).dims[first->axis.index()];
  }

  void look_at_shared_inputs() {
    std::map<ValueId, std::vector<NodeId>> products;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      if (node.op.is<op::Matmul>() && uses_.type(node.operands[1]).rank() == 2) {
        products[node.operands[0]].push_back(id);
      }
    }
    for (const auto& [x, ids] : products) {
      if (ids.size() >= 2) miss("shared_input_matmul", MissReason::SharedMatmulCount, ids[0]);
    }
  }

  const Graph& graph_;
  Uses uses_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<PatternMiss> found_;
};

constexpr std::array<std::string_view, 8> ReasonNames = {
    "multi_consumer",          "non_add_bias_consumer",
    "bias_rank_too_high",      "unsupported_epilogue_activation",
    "shared_matmul_count",     "swiglu_gate_before_up",
    "swiglu_not_shared_input", "not_fused"};

}  // namespace

std::string_view name(MissReason reason) noexcept {
  return ReasonNames[static_cast<std::size_t>(reason)];
}

std::string PatternMiss::to_string() const {
  std::string text = fmt::format("{} at node {}: {}", pattern, node, ricci::name(reason));
  if (where.known()) text += fmt::format("  ({})", where.to_string());
  return text;
}

std::string PatternReport::to_string() const {
  std::string text =
      fmt::format("{}: {} nodes before, {} after\n", context, nodes_before, nodes_after);
  for (const auto& [op, count] : fused) text += fmt::format("  {:<28} {}\n", op, count);
  for (const PatternMiss& m : misses) text += fmt::format("  left: {}\n", m.to_string());
  return text;
}

PatternReport report_patterns(const Graph& before, const Graph& after) {
  PatternReport report{after.name(), count_nodes(before), count_nodes(after), {}, {}};
  count_fused(after, report.fused);
  report.misses = Misses(after).find();
  return report;
}

}  // namespace ricci
