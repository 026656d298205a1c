// Derivatives and batching of scan. Nothing here depends on how long the loop is.
#include "ricci/ir/rebuild.h"

#include "op/loop_layout.h"
#include "rule/control/body_masks.h"
#include "rule/control/loop_rewriting.h"
#include "rule/control/scan_saving.h"
#include "rule/derivative_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/series_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

// Makes the forward half of a body out of a plan: it gives the saved values as stacked outputs. One
// that is the next carry is in the trajectory, unless that keeps only some rows.
struct SavingBody {
  std::shared_ptr<const Graph> body;
  std::vector<std::size_t> saved;  // which result each saved value is

  SavingBody(const BodyHalves& halves, std::size_t carries, bool thinned)
      : body(halves.forward), saved(halves.saved) {
    if (!thinned) return;
    std::vector<ValueId> outputs(body->outputs().begin(), body->outputs().end());
    for (std::size_t& at : saved) {
      if (at >= carries) continue;
      outputs.push_back(outputs[at]);
      at = outputs.size() - 1;
    }
    Graph longer = *body;
    longer.set_outputs(std::move(outputs));
    body = std::make_shared<const Graph>(std::move(longer));
  }
};

bool keeps_some(const op::Scan& op) {
  return op.num_checkpoints > 0 && !op.length.is(op.num_checkpoints);
}

// The carries a gradient is given.
struct KeptCarries {
  std::vector<Value> trajectories;
  std::int64_t checkpoints = 0;  // rows of the trajectories; 0 when they have all
  bool recomputed = false;       // those between them
};

// Of the trajectories the forward kept, those that `body_vjp` reads, and zeros for the others: a
// loop that is run for nothing else is not run.
KeptCarries kept_for(const op::Scan& op, const Graph& body_vjp, std::span<const Value> kept,
                     Graph& graph) {
  KeptCarries out{{kept.begin(), kept.end()}, op.num_checkpoints, keeps_some(op)};
  if (kept.empty()) return out;
  const Dim rows = kept[0].dims()[0];
  if (out.checkpoints == 0 && !(rows == op.length)) out.checkpoints = rows.value();
  out.recomputed = out.checkpoints > 0 && !op.length.is(out.checkpoints);
  std::vector<bool> read = read_inputs(body_vjp);
  read.resize(kept.size());
  if (out.recomputed) {
    // The cotangents of a trajectory have its rows.
    if (any(read) || op.save_trajectory) return out;
    out.checkpoints = 0;
    out.recomputed = false;
  }
  for (std::size_t k = 0; k < kept.size(); ++k) {
    if (read[k]) continue;
    const Dim length = out.checkpoints > 0 ? rows : op.length;
    out.trajectories[k] = filled(graph, stacked_type(length, row_type(kept[k].type())), 0);
  }
  return out;
}

}  // namespace

// Keeps the carries of every step, or as many as the scan has checkpoints, and the inner values of
// its steps that its policy saves. Residuals are the trajectories, then those values.
ForwardResults forward_keeping(const op::Scan& op, const ForwardContext& c) {
  const ScanLayout n(op);
  if (op.length.is(0)) {
    // Nothing to keep. The results are the node's own: a value that is both operand and result
    // would get its cotangent twice.
    std::vector<Value> trajectories;
    for (std::size_t k = 0; k < n.carries; ++k) {
      trajectories.push_back(filled(c.graph, stacked_type(0, c.operands[k].type()), 0));
    }
    return {c.graph.add_node(Op(op), c.operands, c.node.bodies), std::move(trajectories)};
  }
  ScanPlan plan = plan_saving(op, c);
  op::Scan keeping = op;
  keeping.save_trajectory = true;
  keeping.num_checkpoints = plan.checkpoints;
  if (op.save_bytes) {  // a choice is made once
    keeping.save = plan.policy;
    keeping.save_bytes.reset();
    if (plan.policy != ScanSave::Named) keeping.save_names.clear();
  }
  std::vector<Body> bodies = c.node.bodies;
  std::vector<std::size_t> saved;
  if (plan.halves) {
    SavingBody saving(*plan.halves, n.carries, keeps_some(keeping));
    bodies = {Body{"body", std::move(saving.body)}};
    saved = std::move(saving.saved);
  }
  std::vector<Value> results = c.graph.add_node(Op(keeping), c.operands, std::move(bodies));
  std::vector<Value> residuals(results.begin(),
                               results.begin() + static_cast<std::ptrdiff_t>(n.carries));
  for (const std::size_t at : saved) residuals.push_back(results[at]);
  results.resize(c.node.types.size());
  for (std::size_t k = 0; k < n.carries && !op.save_trajectory; ++k) {
    results[k] = last_carry(op, c.operands[k], residuals[k]);
  }
  return {std::move(results), std::move(residuals),
          plan.halves ? std::move(plan.halves->backward) : nullptr};
}

Cotangents vjp(const op::Scan& op, const VjpContext& c) {
  const ScanLayout n(op);
  const Graph& body = *c.node().body("body");
  const std::vector<Type> outputs = output_types(body);
  const std::vector<bool> needed = loop_closure(
      c.needs(), n.carries, [&](const auto& inputs) { return c.bodies().depends(body, inputs); });
  std::vector<Value> upstreams;
  std::vector<bool> live;
  for (std::size_t r = 0; r < outputs.size(); ++r) {
    const bool counts = r >= n.carries || needed[r];
    upstreams.push_back(counts ? c.cotangent(r) : Value());
    live.push_back(r < n.carries ? needed[r] : upstreams[r].valid());
  }
  const std::vector<bool> wanted = derivative_mask(input_types(body));
  const auto body_vjp = c.backward() ? c.backward()
                                     : c.bodies().vjp(body, {.seeds = derivative_mask(outputs),
                                                             .live = live,
                                                             .wanted = wanted,
                                                             .needed = needed});
  const auto saved = c.residuals().subspan(n.carries);
  const KeptCarries kept = kept_for(op, *body_vjp, c.residuals().subspan(0, n.carries), c.graph());
  StepOperands<Value> operands(n, c.operands());
  const std::vector<Value> given = scan_backward(ScanBackwardArgs{
      .inits = std::move(operands.carries),
      .trajectories = kept.trajectories,
      .upstreams = upstreams,
      .bcasts = std::move(operands.bcasts),
      .xs = std::move(operands.xs),
      .saved = {saved.begin(), saved.end()},
      .length = op.length,
      .trajectory = op.save_trajectory,
      .checkpoints = kept.checkpoints,
      .reverse = op.reverse,
      .body_vjp = body_vjp,
      .forward_body = kept.recomputed ? std::make_shared<const Graph>(body) : nullptr});
  Cotangents out = c.none();
  for (std::size_t k = 0, next = 0; k < out.size(); ++k) {
    if (!wanted[k]) continue;
    if (c.needs(k)) out[k] = given[next];
    ++next;
  }
  return out;
}

// One loop over values and coefficients.
SeriesResults series(const op::Scan& op, const SeriesContext& c) {
  const ScanLayout n(op);
  const Graph& body = *c.node.body("body");
  const std::size_t outputs = body.outputs().size();
  const SeriesLayout in(loop_degrees(c, body, n.carries),
                        {n.carries, n.first_x(), c.operands.size()});
  std::vector<std::size_t> required(outputs, 0);
  for (std::size_t k = 0; k < n.carries; ++k) required[k] = in.degrees()[k];
  const BodySeries over = c.bodies.series(body, in.degrees(), required, c.order);
  const SeriesLayout out(over.degrees, {n.carries, outputs});
  check_internal(out.group_size(0) == in.group_size(0),
                 "a carry has as many coefficients after a step as before it");
  op::Scan joint = op;
  joint.num_carry = static_cast<std::int64_t>(in.group_size(0));
  joint.num_bcast = static_cast<std::int64_t>(in.group_size(1));
  joint.num_xs = static_cast<std::int64_t>(in.group_size(2));
  return out.split(add_scan(c.graph, joint, arranged_operands(c, in),
                            with_layouts(body, over, in, out, c.graph)));
}

// [scan-vmap] Only what depends on the batch gets it; time stays the first axis inside.
BatchedValues batch(const op::Scan& op, const VmapContext& c) {
  const ScanLayout n(op);
  const Graph& body = *c.node().body("body");
  const std::vector<bool> batched = loop_closure(c.batched(), n.carries, [&](const auto& inputs) {
    return c.bodies().batched_outputs(body, inputs);
  });
  std::vector<bool> required(body.outputs().size(), false);
  for (std::size_t k = 0; k < n.carries; ++k) required[k] = batched[k];
  const BatchedBody over = c.bodies().batch(body, batched, c.batch(), required);
  std::vector<Value> operands;
  for (std::size_t k = 0; k < c.size(); ++k) {
    const Value v = batched[k] ? c.lifted(k) : c[k];
    operands.push_back(n.is_x(k) && batched[k] ? swap_first_two(v) : v);
  }
  const std::vector<Value> results = add_scan(c.graph(), op, operands, over.graph);
  BatchedValues out;
  for (std::size_t r = 0; r < results.size(); ++r) {
    const bool has_batch = over.outputs[r];
    out.emplace_back(n.is_stacked(r) && has_batch ? swap_first_two(results[r]) : results[r],
                     has_batch);
  }
  return out;
}

}  // namespace ricci::rule
