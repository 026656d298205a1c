#include "transform/reverse.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/op/table.h"
#include "ricci/transform/error.h"

#include "rewrite/changes.h"
#include "rule/control/influence.h"
#include "transform/bodies.h"
#include "transform/expand_active.h"
#include "transform/join_slices.h"
#include "transform/located.h"
#include "transform/names.h"

namespace ricci {
namespace {

// As messages and dumps name a node: its op and where it was made.
std::string describe(const Node& node) {
  std::string out = fmt::format("'{}'", node.op.mnemonic());
  if (node.provenance && node.provenance->where.known()) {
    out += " at " + node.provenance->where.to_string();
  }
  return out;
}

Provenance gradient_of(const Node& node) {
  Provenance p = node.provenance ? *node.provenance : Provenance{};
  const bool named = !node.names.empty() && !node.names[0].empty();
  p.origin =
      fmt::format("gradient of {}", named ? "%" + node.names[0] : std::string(node.op.mnemonic()));
  return p;
}

// What is computed twice would be differentiated twice, and each cotangent be carried back to where
// both come from on its own. A value that is asked for counts for itself: then nothing is merged.
PassResult merged(PassResult prepared, const std::vector<ValueId>& wrt) {
  const auto is_leaf = [&](ValueId v) { return prepared.graph.node(v.node).is_leaf(); };
  if (!std::ranges::all_of(wrt, is_leaf)) return prepared;
  Change change = merge_common(prepared.graph);
  if (!change) return prepared;
  return {std::move(change->graph), prepared.map.then(change->map), true};
}

}  // namespace

Reverse::Reverse(const Graph& forward, const std::vector<ValueId>& wrt,
                 const std::vector<bool>& seeded, const ScanSaving& saving,
                 const std::vector<ValueId>& residuals)
    : wrt_(wrt), bodies_(body_transforms(saving)) {
  PassResult prepared = expand_for_vjp(forward, wrt, seeded);
  std::vector<ValueId> asked_for = wrt;
  for (ValueId& v : asked_for) v = prepared.map(v).value();
  prepared = merged(std::move(prepared), asked_for);
  prepared_ = std::move(prepared.graph);
  to_prepared_ = std::move(prepared.map);
  for (ValueId& v : wrt_) v = to_prepared_(v).value();
  depends_ = Dependence(prepared_, wrt_);
  const std::vector<ValueId> ends = seeded_outputs(prepared_, seeded);
  leads_ = leading_to(prepared_, ends);
  find_paths(ends);
  build_.emplace(prepared_);
  mirror(residuals);
}

// Result by result: what one result of a loop is made of another need not be.
void Reverse::find_paths(const std::vector<ValueId>& ends) {
  reaching_.insert(ends.begin(), ends.end());
  for (const Node& node : prepared_.nodes()) needed_.emplace_back(node.operands.size(), false);
  for (auto id = static_cast<NodeId>(prepared_.size()); id-- > 0;) {
    if (!leads_[id] || !depends_.passes(id)) continue;
    const Node& node = prepared_.nodes()[id];
    std::vector<bool> reaching;
    for (std::uint32_t r = 0; r < node.types.size(); ++r) {
      reaching.push_back(reaching_.contains({id, r}));
    }
    const std::vector<bool> leading = rule::leading_operands(prepared_, node, reaching);
    for (std::size_t k = 0; k < leading.size(); ++k) {
      if (!leading[k] || !depends_(node.operands[k])) continue;
      reaching_.insert(node.operands[k]);
      needed_[id][k] = true;
    }
  }
}

void Reverse::mirror(const std::vector<ValueId>& residuals) {
  Rebuilder& build = *build_;
  std::map<ValueId, Value> known;
  if (!residuals.empty()) {
    for (const NodeId id : prepared_.inputs()) build.copy(id);
    for (std::size_t i = 0; i < residuals.size(); ++i) {
      const ValueId v = to_prepared_(residuals[i]).value();
      known.emplace(
          v, graph().input(graph().unique_name(fmt::format("residual_{}", i)), prepared_.type(v)));
    }
  }
  for (NodeId id = 0; id < prepared_.size(); ++id) {
    const Node& node = prepared_.nodes()[id];
    if (build.has({id, 0})) continue;  // an input that went first
    // [TR-06] only what lies between a seed and what is asked for
    const bool active = std::ranges::find(needed_[id], true) != needed_[id].end();
    const OpDescriptor& d = descriptor(node.op.kind());
    if (active && d.vjp == RuleSource::Refused) {
      throw AutodiffError(
          ErrorCode::WrongStage,
          fmt::format("{} has to be lowered before it can be differentiated", describe(node)),
          "use GraphModule::lower, or the functions of ricci/model/autodiff.h");
    }
    Step step{&node, build.operands(node), {}, {}, needed_[id], {}};
    if (active && d.info->keeps_residuals) {
      keep(id, step);
    } else {
      build.copy(id);
    }
    for (std::uint32_t r = 0; r < node.types.size(); ++r) {
      const ValueId v{id, r};
      if (const auto it = known.find(v); it != known.end()) build.map(v, it->second);
      step.results.push_back(node.wanted[r] ? build.value(v) : Value());
    }
    if (active) steps_.push_back(std::move(step));
  }
}

// The forward of a node that keeps more than its results.
void Reverse::keep(NodeId id, Step& step) {
  const Node& node = *step.node;
  const ProvenanceScope scope(graph(), node.provenance ? *node.provenance : Provenance{});
  const std::vector<bool> live = live_results(id);
  ForwardResults forward = at_node(node, [&] {
    return forward_for_vjp({graph(), node, step.operands, step.needs, live, *bodies_});
  });
  for (std::uint32_t r = 0; r < forward.results.size(); ++r) {
    if (!forward.results[r].valid()) continue;
    build_->map({id, r}, forward.results[r]);
    keep_name(node, r, forward.results[r]);
  }
  step.residuals = std::move(forward.residuals);
  step.backward = std::move(forward.backward);
}

std::vector<bool> Reverse::live_results(NodeId id) const {
  std::vector<bool> out;
  for (std::uint32_t r = 0; r < prepared_.nodes()[id].types.size(); ++r) {
    const ValueId v{id, r};
    out.push_back(depends_(v) && reaching_.contains(v));
  }
  return out;
}

Value Reverse::value(ValueId original) { return build_->value(to_prepared_(original).value()); }

void Reverse::seed(std::size_t output, Value cotangent) {
  seeded_.push_back(output);
  accumulate((*build_)(prepared_.outputs()[output]), cotangent);
}

void Reverse::accumulate(ValueId value, Value cotangent) {
  const auto [it, fresh] = cotangents_.emplace(value, cotangent);
  if (fresh) return;
  // [SH-03] slices side by side make one tensor, without zeros that are added away
  const auto joined = joined_slices(it->second, cotangent);
  it->second = joined ? *joined : it->second + cotangent;
}

void Reverse::sweep() {
  for (std::size_t i = steps_.size(); i-- > 0;) take(steps_[i]);
}

void Reverse::take(const Step& step) {
  std::vector<Value> arrived(step.results.size());
  bool any = false;
  for (std::size_t r = 0; r < arrived.size(); ++r) {
    if (!step.results[r].valid()) continue;
    const auto it = cotangents_.find(step.results[r].id());
    if (it == cotangents_.end()) continue;
    arrived[r] = it->second;
    any = true;
  }
  if (!any) return;
  const ProvenanceScope scope(graph(), gradient_of(*step.node));
  const VjpContext context(graph(), *step.node, step.operands, step.results, step.residuals,
                           arrived, step.needs, *bodies_, step.backward);
  const Cotangents given = at_node(*step.node, [&] { return apply_vjp(context); });
  for (std::size_t k = 0; k < given.size(); ++k) {
    if (step.needs[k] && given[k].valid()) accumulate(step.operands[k].id(), given[k]);
  }
}

Value Reverse::cotangent(ValueId original) {
  const auto it = cotangents_.find(value(original).id());
  return it == cotangents_.end() ? Value() : it->second;
}

std::string Reverse::why_missing(ValueId original) const {
  const ValueId start = to_prepared_(original).value();
  if (!is_differentiable(prepared_.type(start).dtype)) {
    return fmt::format("its dtype {} has no derivative", name(prepared_.type(start).dtype));
  }
  // Everything it reaches, whether a derivative passes or not, and what leads to a seeded output.
  std::vector<bool> reached(prepared_.size());
  reached[start.node] = true;
  for (NodeId id = start.node + 1; id < prepared_.size(); ++id) {
    reached[id] = std::ranges::any_of(prepared_.nodes()[id].operands,
                                      [&](ValueId v) { return reached[v.node]; });
  }
  if (!leads_[start.node]) {
    return seeded_.size() == 1 ? "the first output does not depend on it"
                               : "no output depends on it";
  }
  const Dependence from(prepared_, std::array{start});
  for (NodeId id = start.node + 1; id < prepared_.size(); ++id) {
    if (!reached[id] || !leads_[id] || from.any(id)) continue;
    const Node& node = prepared_.nodes()[id];
    const bool fed = std::ranges::any_of(node.operands, [&](ValueId v) { return from(v); });
    if (fed) return fmt::format("{} lets no derivative pass", describe(node));
  }
  return "no derivative passes on the way to the output";
}

Transformed Reverse::finish(const std::vector<Value>& outputs) {
  graph().set_outputs(outputs);
  return {std::move(graph()), to_prepared_.then(build_->id_map()), {}};
}

}  // namespace ricci
