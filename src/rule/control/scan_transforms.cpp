// Derivatives and batching of scan. Nothing here depends on how long the loop is.
#include "ricci/ir/rebuild.h"

#include "rule/control/body_masks.h"
#include "rule/control/loop_rewriting.h"
#include "rule/control/scan_saving.h"
#include "rule/derivative_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/series_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

struct Counts {
  std::size_t carries;
  std::size_t bcasts;
  std::size_t xs;

  explicit Counts(const op::Scan& op)
      : carries(static_cast<std::size_t>(op.num_carry)),
        bcasts(static_cast<std::size_t>(op.num_bcast)),
        xs(static_cast<std::size_t>(op.num_xs)) {}
  [[nodiscard]] std::size_t first_x() const { return carries + bcasts; }
};

// The carry after the last step, out of a trajectory.
Value last_of(const op::Scan& op, Value init, Value trajectory) {
  const Dim rows = trajectory.dims()[0];
  if (op.length.is_static()) {
    const Dim start = op.reverse ? Dim(0) : rows - Dim(1);
    return reshape_to(narrow(trajectory, {.axis = 0, .start = start, .len = 1}), init.dims());
  }
  // A loop that may turn out to be empty ends where it began.
  Dims one{1};
  one.insert(one.end(), init.dims().begin(), init.dims().end());
  const Value start = reshape_to(init, one);
  const Value all = op.reverse ? concat({trajectory, start}, {.axis = 0})
                               : concat({start, trajectory}, {.axis = 0});
  const Dim at = op.reverse ? Dim(0) : rows;
  return reshape_to(narrow(all, {.axis = 0, .start = at, .len = 1}), init.dims());
}

}  // namespace

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

// The scan with as many checkpoints as the trajectories that were kept have rows.
op::Scan as_kept(op::Scan op, std::span<const Value> residuals) {
  if (op.num_carry == 0 || op.num_checkpoints > 0) return op;
  const Dim& rows = residuals[0].dims()[0];
  if (!(rows == op.length)) op.num_checkpoints = rows.value();
  return op;
}

}  // namespace

// Keeps the carries of every step, or as many as the scan has checkpoints, and the inner values of
// its steps that its policy saves. Residuals are the trajectories, then those values.
ForwardResults forward_keeping(const op::Scan& op, const ForwardContext& c) {
  const Counts n(op);
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
    results[k] = last_of(op, c.operands[k], residuals[k]);
  }
  return {std::move(results), std::move(residuals),
          plan.halves ? std::move(plan.halves->backward) : nullptr};
}

Cotangents vjp(const op::Scan& op, const VjpContext& c) {
  const Counts n(op);
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
  const auto part = [](std::span<const Value> all, std::size_t first, std::size_t count) {
    const auto values = all.subspan(first, count);
    return std::vector<Value>(values.begin(), values.end());
  };
  const op::Scan keeping = as_kept(op, c.residuals());
  const std::vector<Value> given = scan_backward(ScanBackwardArgs{
      .inits = part(c.operands(), 0, n.carries),
      .trajectories = part(c.residuals(), 0, n.carries),
      .upstreams = upstreams,
      .bcasts = part(c.operands(), n.carries, n.bcasts),
      .xs = part(c.operands(), n.first_x(), n.xs),
      .saved = part(c.residuals(), n.carries, c.residuals().size() - n.carries),
      .length = op.length,
      .trajectory = op.save_trajectory,
      .checkpoints = keeping.num_checkpoints,
      .reverse = op.reverse,
      .body_vjp = body_vjp,
      .forward_body = keeps_some(keeping) ? std::make_shared<const Graph>(body) : nullptr});
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
  const Counts n(op);
  const Graph& body = *c.node.body("body");
  const std::size_t outputs = body.outputs().size();
  const SeriesLayout in(loop_degrees(c, body, n.carries),
                        {n.carries, n.first_x(), c.operands.size()});
  std::vector<std::size_t> required(outputs, 0);
  for (std::size_t k = 0; k < n.carries; ++k) required[k] = in.degrees()[k];
  const BodySeries over = c.bodies.series(body, in.degrees(), required, c.order);
  const SeriesLayout out(over.degrees, {n.carries, outputs});
  op::Scan joint = op;
  joint.num_carry = static_cast<std::int64_t>(in.group_size(0));
  joint.num_bcast = static_cast<std::int64_t>(in.group_size(1));
  joint.num_xs = static_cast<std::int64_t>(in.group_size(2));
  return out.split(add_scan(c.graph, joint, arranged_operands(c, in),
                            with_layouts(body, over, in, out, c.graph)));
}

// [scan-vmap] Only what depends on the batch gets it; time stays the first axis inside.
BatchedValues batch(const op::Scan& op, const VmapContext& c) {
  const Counts n(op);
  const Graph& body = *c.node().body("body");
  const std::vector<bool> batched = loop_closure(c.batched(), n.carries, [&](const auto& inputs) {
    return c.bodies().batched_outputs(body, inputs);
  });
  std::vector<bool> required(body.outputs().size(), false);
  for (std::size_t k = 0; k < n.carries; ++k) required[k] = batched[k];
  const BatchedBody over = c.bodies().batch(body, batched, c.batch(), required);
  std::vector<Value> operands;
  for (std::size_t k = 0; k < c.size(); ++k) {
    const bool row = k >= n.first_x();
    const Value v = batched[k] ? c.lifted(k) : c[k];
    operands.push_back(row && batched[k] ? swap_first_two(v) : v);
  }
  const std::vector<Value> results = add_scan(c.graph(), op, operands, over.graph);
  BatchedValues out;
  for (std::size_t r = 0; r < results.size(); ++r) {
    const bool stacked = r >= n.carries || op.save_trajectory;
    const bool has_batch = over.outputs[r];
    out.emplace_back(stacked && has_batch ? swap_first_two(results[r]) : results[r], has_batch);
  }
  return out;
}

}  // namespace ricci::rule
