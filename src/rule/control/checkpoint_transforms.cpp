// Checkpointed sub-graphs: their derivatives are checkpoints too, so that what a gradient computes
// again is not merged with what the forward computed.
#include <algorithm>

#include "rule/control/body_masks.h"
#include "rule/control/loop_rewriting.h"
#include "rule/control/saved_values.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/expand_rules.h"
#include "rule/tables/series_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

bool is_kept(const op::Checkpoint& op, const Node& node, std::size_t r) {
  switch (op.policy) {
    case CheckpointPolicy::Nothing: return false;
    case CheckpointPolicy::Matmuls: return is_saved(Saved::Matmuls, {}, node, r);
    case CheckpointPolicy::Named: return is_saved(Saved::Named, op.names, node, r);
  }
  return false;
}

// The values of a body that its policy keeps for a gradient; never inputs, which are there anyway.
std::vector<ValueId> kept_values(const op::Checkpoint& op, const Graph& body) {
  std::vector<ValueId> out;
  for (NodeId id = 0; id < body.size(); ++id) {
    const Node& node = body.nodes()[id];
    if (node.op.is<op::Input>()) continue;
    for (std::uint32_t r = 0; r < node.types.size(); ++r) {
      if (is_kept(op, node, r)) out.push_back({id, r});
    }
  }
  return out;
}

std::vector<Value> add_checkpoint(Graph& graph, op::Checkpoint op, std::span<const Value> operands,
                                  std::shared_ptr<const Graph> body, std::vector<bool> wanted) {
  NodeSpec spec{.op = Op(std::move(op)),
                .bodies = {Body{"body", std::move(body)}},
                .wanted = std::move(wanted)};
  for (const Value& v : operands) spec.operands.push_back(v.id());
  const std::vector<bool> mask = spec.wanted;
  const NodeId id = graph.add(std::move(spec));
  std::vector<Value> out;
  for (std::uint32_t r = 0; r < mask.size(); ++r) {
    out.push_back(mask[r] ? graph.value({id, r}) : Value());
  }
  return out;
}

}  // namespace

// (outputs…, kept…) = body(inputs…)
std::vector<Value> expand(const op::Checkpoint&, const ExpandContext& c) {
  std::vector<Value> out = inline_subgraph(*c.node.body("body"), c.operands, c.graph);
  for (std::size_t r = 0; r < out.size(); ++r) {
    if (!c.wanted(r)) out[r] = Value();
  }
  return out;
}

// What the policy keeps becomes a result: an output of the body that it has, or one more.
ForwardResults forward_keeping(const op::Checkpoint& op, const ForwardContext& c) {
  const Graph& body = *c.node.body("body");
  std::vector<ValueId> outputs(body.outputs().begin(), body.outputs().end());
  std::vector<bool> wanted = c.node.wanted;
  std::vector<std::size_t> where_kept;
  for (const ValueId v : kept_values(op, body)) {
    const auto found = std::ranges::find(outputs, v);
    const auto at = static_cast<std::size_t>(found - outputs.begin());
    if (found == outputs.end()) {
      outputs.push_back(v);
      wanted.push_back(true);
    }
    wanted[at] = true;
    where_kept.push_back(at);
  }
  op::Checkpoint keeping = op;
  keeping.num_kept += static_cast<std::int64_t>(outputs.size() - body.outputs().size());
  Graph extended = body;
  extended.set_outputs(std::move(outputs));
  std::vector<Value> results =
      add_checkpoint(c.graph, std::move(keeping), c.operands,
                     std::make_shared<const Graph>(std::move(extended)), std::move(wanted));
  std::vector<Value> residuals;
  for (const std::size_t at : where_kept) residuals.push_back(results[at]);
  results.resize(c.node.types.size());
  return {std::move(results), std::move(residuals)};
}

Cotangents vjp(const op::Checkpoint& op, const VjpContext& c) {
  const Graph& body = *c.node().body("body");
  std::vector<Value> operands(c.operands().begin(), c.operands().end());
  operands.insert(operands.end(), c.residuals().begin(), c.residuals().end());
  std::vector<bool> live;
  for (std::size_t r = 0; r < c.node().types.size(); ++r) {
    live.push_back(c.cotangent(r).valid());
    if (live.back()) operands.push_back(c.cotangent(r));
  }
  const auto gradient = c.bodies().vjp(body, {.seeds = live,
                                              .live = live,
                                              .wanted = c.needs(),
                                              .needed = c.needs(),
                                              .residuals = kept_values(op, body)});
  op::Checkpoint again = op;
  again.num_kept = 0;
  return scattered(add_checkpoint(c.graph(), again, operands, without_roles(*gradient, c.graph()),
                                  std::vector<bool>(gradient->outputs().size(), true)),
                   c.needs());
}

// One checkpoint over values and coefficients; kept values, and their coefficients, stay last.
SeriesResults series(const op::Checkpoint& op, const SeriesContext& c) {
  const Graph& body = *c.node.body("body");
  const std::size_t all = body.outputs().size();
  const std::size_t outputs = all - static_cast<std::size_t>(op.num_kept);
  const SeriesLayout in(c.degrees(), {c.operands.size()});
  const BodySeries over =
      c.bodies.series(body, in.degrees(), std::vector<std::size_t>(all, 0), c.order);
  const SeriesLayout out(over.degrees, {outputs, all});
  Graph joint = *over.graph;
  const std::vector<Value> given =
      out.arranged(joint.output_values(), SeriesLayout(over.degrees, {all}));
  joint.set_outputs(given);
  op::Checkpoint both = op;
  both.num_kept = static_cast<std::int64_t>(out.group_size(1));
  return out.split(add_checkpoint(
      c.graph, both, arranged_operands(c, in), std::make_shared<const Graph>(std::move(joint)),
      out.arranged([&](std::size_t r, std::size_t) -> bool { return c.node.wanted[r]; })));
}

BatchedValues batch(const op::Checkpoint& op, const VmapContext& c) {
  const Graph& body = *c.node().body("body");
  const std::vector<bool> none(body.outputs().size(), false);
  const BatchedBody over = c.bodies().batch(body, c.batched(), c.batch(), none);
  std::vector<Value> operands;
  for (std::size_t k = 0; k < c.size(); ++k) operands.push_back(c[k]);
  const std::vector<Value> given =
      add_checkpoint(c.graph(), op, operands, over.graph, c.node().wanted);
  BatchedValues out;
  for (std::size_t r = 0; r < given.size(); ++r) out.emplace_back(given[r], over.outputs[r]);
  return out;
}

}  // namespace ricci::rule
