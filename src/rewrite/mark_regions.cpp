// Regions of element-wise nodes, and of image transforms.
#include "ricci/compiler/rewrite/mark_regions.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "ricci/build/build.h"

#include "op/region_chain.h"
#include "rewrite/fusions.h"

namespace ricci {
namespace {

// The step a node becomes, without its operands; nothing for what is no step of a region.
std::optional<RegionStep> region_step(const Node& node) {
  if (const auto* unary = node.op.as<op::Unary>()) return RegionStep{unary->kind, {}};
  if (const auto* binary = node.op.as<op::Binary>()) return RegionStep{binary->kind, {}};
  if (const auto* compare = node.op.as<op::Compare>()) return RegionStep{compare->kind, {}};
  if (const auto* to = node.op.as<op::Cast>()) return RegionStep{to->to, {}};
  if (node.op.is<op::Where>()) return RegionStep{RegionStep::Where{}, {}};
  return std::nullopt;
}

// A tree of nodes that becomes one op: what it reads and its steps, by the nodes they come from.
class Tree {
 public:
  Tree(const Uses& uses, const std::function<bool(const Node&)>& joins, const RegionLimits& limits)
      : uses_(uses), joins_(joins), limits_(limits) {}

  /// Takes the node and what it alone reads, as far as the limits allow.
  RegionOperand take(NodeId id) {
    const Node& node = uses_.graph().node(id);
    std::vector<RegionOperand> operands;
    ++planned_;
    open_ += node.operands.size();
    for (const ValueId v : node.operands) {
      const Node& from = uses_.node(v);
      --open_;
      const bool room =
          std::cmp_less(planned_, limits_.max_steps) &&
          std::cmp_less_equal(inputs_.size() + open_ + from.operands.size(), limits_.max_inputs);
      operands.push_back(room && uses_.once(v) && joins_(from) ? take(v.node) : input(v));
    }
    nodes_.push_back(id);
    operands_.push_back(operands);
    return RegionOperand::step(static_cast<std::int64_t>(nodes_.size()) - 1);
  }

  [[nodiscard]] const std::vector<NodeId>& nodes() const { return nodes_; }
  [[nodiscard]] const std::vector<RegionOperand>& operands(std::size_t step) const {
    return operands_[step];
  }
  [[nodiscard]] const std::vector<ValueId>& inputs() const { return inputs_; }

 private:
  RegionOperand input(ValueId v) {
    const auto at = std::ranges::find(inputs_, v);
    if (at != inputs_.end()) return RegionOperand::input(at - inputs_.begin());
    inputs_.push_back(v);
    return RegionOperand::input(static_cast<std::int64_t>(inputs_.size()) - 1);
  }

  const Uses& uses_;
  const std::function<bool(const Node&)>& joins_;
  const RegionLimits& limits_;
  std::int64_t planned_ = 0;
  std::size_t open_ = 0;  ///< operands of nodes taken that are yet to be looked at
  std::vector<NodeId> nodes_;
  std::vector<std::vector<RegionOperand>> operands_;
  std::vector<ValueId> inputs_;
};

std::vector<Value> values_of(Rebuilder& r, const std::vector<ValueId>& ids) {
  std::vector<Value> out;
  for (const ValueId v : ids) out.push_back(r.value(v));
  return out;
}

// Trees of nodes that may be joined, from the last node on; `fusion` makes something of each.
std::vector<Fusion> find_trees(const Graph& graph, const std::function<bool(const Node&)>& joins,
                               const RegionLimits& limits,
                               const std::function<std::optional<Fusion>(const Tree&)>& fusion) {
  const Uses uses(graph);
  std::vector<bool> taken(graph.size(), false);
  std::vector<Fusion> found;
  for (auto id = static_cast<NodeId>(graph.size()); id-- > 0;) {
    if (taken[id] || !joins(graph.node(id))) continue;
    Tree tree(uses, joins, limits);
    (void)tree.take(id);
    if (tree.nodes().size() < 2) continue;
    auto made = fusion(tree);
    if (!made) continue;
    for (const NodeId n : tree.nodes()) taken[n] = true;
    found.push_back(std::move(*made));
  }
  return found;
}

// An op that may be part of a transform region and moves samples of an image.
bool moves_samples(const Node& node) {
  return node.op.is<op::Resize>() || node.op.is<op::Reverse>() || node.op.is<op::Narrow>() ||
         node.op.is<op::Transpose>();
}

Fusion transform_fusion(NodeId at, std::vector<ValueId> inputs, std::vector<TransformStep> steps) {
  return {at, {{at, 0}}, [=, inputs = std::move(inputs), steps = std::move(steps)](Rebuilder& r) {
            return std::vector{transform_region(values_of(r, inputs), {.steps = steps})};
          }};
}

// The steps of a node that works element by element, on operands of its own.
std::optional<std::vector<RegionStep>> chain_of(const Node& node) {
  if (const auto* region = node.op.as<op::ElementwiseRegion>()) {
    if (region->outputs) return std::nullopt;
    return region->chain;
  }
  auto step = region_step(node);
  if (!step || node.operands.size() != 1) return std::nullopt;
  step->operands = {RegionOperand::input(0)};
  return std::vector{*step};
}

}  // namespace

PassResult mark_elementwise_regions(const Graph& graph, const RegionLimits& limits) {
  const std::function<bool(const Node&)> joins = [](const Node& node) {
    return region_step(node).has_value();
  };
  return make_fusions(graph, "mark_elementwise_regions", [&](const Graph& g) {
    return find_trees(g, joins, limits, [&](const Tree& tree) -> std::optional<Fusion> {
      std::vector<RegionStep> chain;
      for (std::size_t i = 0; i < tree.nodes().size(); ++i) {
        chain.push_back(*region_step(g.node(tree.nodes()[i])));
        chain.back().operands = tree.operands(i);
      }
      const NodeId at = tree.nodes().back();
      return Fusion{at, {{at, 0}}, [=, inputs = tree.inputs()](Rebuilder& r) {
                      return elementwise_region(values_of(r, inputs), {.chain = chain});
                    }};
    });
  });
}

PassResult mark_transform_regions(const Graph& graph) {
  const std::function<bool(const Node&)> joins = moves_samples;
  constexpr RegionLimits Any{.max_steps = LargestSize, .max_inputs = LargestSize};
  return make_fusions(graph, "mark_transform_regions", [&](const Graph& g) {
    return find_trees(g, joins, Any, [&](const Tree& tree) -> std::optional<Fusion> {
      std::vector<TransformStep> steps;
      bool resizes = false;
      for (std::size_t i = 0; i < tree.nodes().size(); ++i) {
        const Op& op = g.node(tree.nodes()[i]).op;
        resizes = resizes || op.is<op::Resize>();
        steps.push_back({op, tree.operands(i)});
      }
      if (!resizes) return std::nullopt;
      return transform_fusion(tree.nodes().back(), tree.inputs(), std::move(steps));
    });
  });
}

PassResult fuse_region_prologue(const Graph& graph) {
  return make_fusions(graph, "fuse_region_prologue", [](const Graph& g) {
    const Uses uses(g);
    std::vector<Fusion> found;
    for (NodeId id = 0; id < g.size(); ++id) {
      const Node& node = g.node(id);
      const auto chain = chain_of(node);
      if (!chain) continue;
      const auto resized = std::ranges::find_if(node.operands, [&](ValueId v) {
        const auto* resize = uses.as<op::Resize>(v);
        return resize != nullptr && resize->mode == ResizeMode::Nearest && uses.once(v);
      });
      if (resized == node.operands.end()) continue;
      // The resized operand is the first input, and its resize the first step.
      const auto slot = resized - node.operands.begin();
      const Node& resize = uses.node(*resized);
      std::vector<ValueId> inputs = {resize.operands[0]};
      std::vector<RegionOperand> now(node.operands.size());
      for (std::size_t k = 0; k < node.operands.size(); ++k) {
        if (std::cmp_equal(k, slot)) {
          now[k] = RegionOperand::step(0);
        } else {
          now[k] = RegionOperand::input(static_cast<std::int64_t>(inputs.size()));
          inputs.push_back(node.operands[k]);
        }
      }
      std::vector<TransformStep> steps = {{resize.op, {RegionOperand::input(0)}}};
      for (const RegionStep& step : *chain) {
        TransformStep next{step_op(step), step.operands};
        for (RegionOperand& o : next.operands) {
          o = o.from == RegionOperand::From::Input ? now[static_cast<std::size_t>(o.index)]
                                                   : RegionOperand::step(o.index + 1);
        }
        steps.push_back(std::move(next));
      }
      found.push_back(transform_fusion(id, std::move(inputs), std::move(steps)));
    }
    return found;
  });
}

}  // namespace ricci
