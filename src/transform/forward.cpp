#include "transform/forward.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/jvp.h"
#include "ricci/op/table.h"

#include "transform/bodies.h"
#include "transform/codes.h"
#include "transform/dependence.h"
#include "transform/leaves.h"
#include "transform/located.h"
#include "transform/names.h"

namespace ricci {
namespace {

Provenance tangent_of(const Node& node) {
  Provenance p = node.provenance ? *node.provenance : Provenance{};
  const bool named = !node.names.empty() && !node.names[0].empty();
  p.origin =
      fmt::format("tangent of {}", named ? "%" + node.names[0] : std::string(node.op.mnemonic()));
  return p;
}

}  // namespace

void Forward::copy_leaves() {
  for (NodeId id = 0; id < from_.size(); ++id) {
    if (from_.nodes()[id].is_leaf()) build_.copy(id);
  }
}

void Forward::sweep() {
  std::vector<ValueId> moving;
  for (const auto& [v, tangent] : tangents_) moving.push_back(v);
  const Dependence depends(from_, moving);
  for (NodeId id = 0; id < from_.size(); ++id) {
    const Node& node = from_.nodes()[id];
    if (build_.has({id, 0})) continue;
    std::vector<Value> tangents;
    bool live = false;
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      tangents.push_back(depends.operands(id)[k] ? tangent(node.operands[k]) : Value());
      live = live || tangents.back().valid();
    }
    if (!live) {
      build_.copy(id);
      continue;
    }
    if (descriptor(node.op.kind()).jvp == RuleSource::Refused) {
      at_node(node, [&]() -> void {
        throw AutodiffError(ErrorCode::WrongStage,
                            fmt::format("'{}' has to be lowered before it can be differentiated",
                                        node.op.mnemonic()),
                            "use GraphModule::lower, or the functions of ricci/model/autodiff.h");
      });
    }
    const std::vector<Value> operands = build_.operands(node);
    const ProvenanceScope scope(graph(), tangent_of(node));
    JvpContext context(graph(), node, operands, tangents, body_transforms());
    const Tangents out = at_node(node, [&] { return apply_jvp(context); });
    const std::vector<Value>& results = context.results();
    for (std::uint32_t r = 0; r < node.types.size(); ++r) {
      if (results[r].valid()) {
        build_.map({id, r}, results[r]);
        keep_name(node, r, results[r]);
      }
      // A loop may carry zeros where its results depend on nothing that moves.
      if (out[r].valid() && depends({id, r})) tangents_[{id, r}] = out[r];
    }
  }
}

Value Forward::tangent(ValueId old) const {
  const auto it = tangents_.find(old);
  return it == tangents_.end() ? Value() : it->second;
}

Value Forward::tangent_or_zero(ValueId old) {
  const Value t = tangent(old);
  return t.valid() ? t : filled(graph(), type_of_tangent(from_, old), 0);
}

Transformed Forward::finish(const std::vector<Value>& outputs) {
  graph().set_outputs(outputs);
  return {std::move(graph()), build_.id_map(), {}};
}

}  // namespace ricci
