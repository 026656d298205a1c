#include "ricci/compiler/rewrite/precision.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "ricci/op/elementwise.h"
#include "ricci/support/error.h"
#include "ricci/support/text.h"

#include "rewrite/fp8_products.h"
#include "rewrite/name_pattern.h"
#include "rewrite/state_updates.h"

namespace ricci {
namespace {

void require_sense(const PrecisionPolicy& policy) {
  const auto require = [](DType dtype, std::string_view what) {
    if (dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16) return;
    throw UserError(ErrorCode::Attr,
                    fmt::format("a precision policy wants {} in {}", what, name(dtype)),
                    "ops on f32 values compute in f32, f16 or bf16");
  };
  require(policy.compute, "products");
  require(policy.reduction, "reductions");
  require(policy.elementwise, "element-wise functions");
  require(policy.data_movement, "moves");
  for (const PrecisionPolicy::Rule& r : policy.rules) require(r.dtype, "'" + r.pattern + "'");
  if (!policy.fp8) return;
  if (policy.compute == DType::F16) {
    throw UserError(ErrorCode::Attr, "a precision policy wants products of FP8 codes in f16",
                    "f16 does not hold products of codes as large as 448; compute in bf16 or f32");
  }
  for (const CodeKind kind : {policy.fp8->operands, policy.fp8->cotangents}) {
    if (kind == CodeKind::E4m3 || kind == CodeKind::E5m2) continue;
    throw UserError(ErrorCode::Attr, "an FP8 recipe wants codes of another kind",
                    "codes of FP8 are e4m3 or e5m2");
  }
}

// One graph under a policy. Every old value has a place in the new graph, in the dtype it was
// computed in, and is cast where it is read in another.
class Mixer {
 public:
  Mixer(const Graph& graph, const PrecisionPolicy& policy)
      : from_(graph), policy_(policy), rebuild_(graph), state_(state_updates(graph)) {}

  PassResult run() {
    for (NodeId id = 0; id < from_.size(); ++id) {
      const DType dtype = dtype_of(id);
      if (dtype == DType::F32 || !lower(id, dtype)) keep(id);
    }
    if (!changed_) return unchanged(from_);
    for (const ValueId v : from_.outputs()) rebuild_.map(v, in_dtype(v, from_.type(v).dtype));
    IdMap map = kept_values();
    Graph out = rebuild_.finish();
    return {std::move(out), std::move(map), true};
  }

 private:
  [[nodiscard]] DType dtype_of(NodeId id) const {
    const Node& node = from_.nodes()[id];
    const Numerics numerics = numerics_of(node.op.op_class(), node.op.info());
    if (numerics == Numerics::Boundary) return DType::F32;
    for (auto rule = policy_.rules.rbegin(); rule != policy_.rules.rend(); ++rule) {
      if (is_meant(rule->pattern, node, rule->ops_only)) return rule->dtype;
    }
    // In fewer bits a decay near 1 is 1, and what is added is lost: state would never move.
    if (state_.contains(id)) return DType::F32;
    switch (numerics) {
      case Numerics::Compute: return policy_.compute;
      case Numerics::Reduction: return policy_.reduction;
      case Numerics::Elementwise: return policy_.elementwise;
      case Numerics::DataMovement: return policy_.data_movement;
      case Numerics::Default:
      case Numerics::Boundary: break;
    }
    return DType::F32;
  }

  // The node in another dtype; false where no operand is f32, or the op does not take it.
  bool lower(NodeId id, DType dtype) {
    const Node& node = from_.nodes()[id];
    const std::vector<Type> before = operand_types(node);
    std::vector<Type> types = lowered_types(node, dtype, true);
    if (types == before) return false;
    if (!takes(node, types)) {
      std::vector<Type> others = lowered_types(node, dtype, false);
      if (others == types || others == before || !takes(node, others)) return false;
      types = std::move(others);
    }
    NodeSpec spec{.op = node.op,
                  .operands = {},
                  .bodies = {},
                  .wanted = node.wanted,
                  .names = node.names,
                  .provenance = node.provenance ? *node.provenance : Provenance{}};
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      spec.operands.push_back(in_dtype(node.operands[k], types[k].dtype).id());
    }
    const NodeId now = rebuild_.to().add(std::move(spec));
    for (std::uint32_t r = 0; r < node.types.size(); ++r) rebuild_.map({id, r}, ValueId{now, r});
    lowered_.insert(id);
    changed_ = true;
    return true;
  }

  [[nodiscard]] std::vector<Type> operand_types(const Node& node) const {
    std::vector<Type> types;
    for (const ValueId v : node.operands) types.push_back(from_.type(v));
    return types;
  }

  // Types of operands with f32 lowered; `statistics`, results that are f32 though their node
  // computes in a smaller dtype, as the log-sum-exp of attention is, or without those.
  [[nodiscard]] std::vector<Type> lowered_types(const Node& node, DType dtype, bool statistics) {
    std::vector<Type> types = operand_types(node);
    for (std::size_t k = 0; k < types.size(); ++k) {
      const ValueId v = node.operands[k];
      if (types[k].dtype != DType::F32) continue;
      const bool is_statistic =
          lowered_.contains(v.node) && rebuild_.value(v).dtype() == DType::F32;
      if (statistics || !is_statistic) types[k].dtype = dtype;
    }
    return types;
  }

  // Results may have the other dtype in the place of f32, and none but that.
  [[nodiscard]] bool takes(const Node& node, const std::vector<Type>& types) const {
    try {
      const std::vector<Type> results = infer_types(node.op, types, {}, &from_.registry()).types;
      if (results.size() != node.types.size()) return false;
      for (std::size_t r = 0; r < results.size(); ++r) {
        const bool same =
            results[r].dims == node.types[r].dims &&
            (results[r].dtype == node.types[r].dtype || node.types[r].dtype == DType::F32);
        if (!same) return false;
      }
      return true;
    } catch (const Rejection&) {
      return false;
    } catch (const UserError&) {
      return false;  // an op registered at run time
    }
  }

  // The node as it was, with the bodies it has under the policy.
  void keep(NodeId id) {
    const Node& node = from_.nodes()[id];
    std::vector<Body> bodies =
        map_bodies(node, [&](const Graph& body) { return Mixer(body, policy_).run(); }, changed_);
    // What the node reads is in its old dtype while it is copied.
    std::vector<std::pair<ValueId, ValueId>> before;
    for (const ValueId v : node.operands) {
      before.emplace_back(v, rebuild_(v));
      rebuild_.map(v, in_dtype(v, from_.type(v).dtype));
    }
    rebuild_.copy(id, std::move(bodies));
    for (auto back = before.rbegin(); back != before.rend(); ++back) {
      rebuild_.map(back->first, back->second);
    }
  }

  Value in_dtype(ValueId old, DType dtype) {
    const Value now = rebuild_.value(old);
    if (now.dtype() == dtype) return now;
    const auto known = casts_.find({now.id(), dtype});
    if (known != casts_.end()) return rebuild_.to().value(known->second);
    const ProvenanceScope scope(rebuild_.to(), {"", {}, "mixed precision"});
    const Value made =
        rebuild_.to().add_node(Op(op::Cast{.to = dtype}), std::span(&now, 1)).front();
    casts_.emplace(std::pair(now.id(), dtype), made.id());
    return made;
  }

  // Where old values are: those that have become values of another dtype are gone.
  IdMap kept_values() {
    IdMap map = rebuild_.id_map();
    for (NodeId id = 0; id < from_.size(); ++id) {
      for (std::uint32_t r = 0; r < from_.nodes()[id].types.size(); ++r) {
        const std::optional<ValueId> now = map({id, r});
        if (now && rebuild_.to().type(*now) != from_.nodes()[id].types[r]) map.drop({id, r});
      }
    }
    return map;
  }

  const Graph& from_;
  const PrecisionPolicy& policy_;
  Rebuilder rebuild_;
  std::map<std::pair<ValueId, DType>, ValueId> casts_;
  std::set<NodeId> lowered_;  // in the old graph
  std::set<NodeId> state_;    // what makes the next values of params, likewise
  bool changed_ = false;
};

}  // namespace

PassResult auto_mixed_precision(const Graph& graph, const PrecisionPolicy& policy) {
  require_sense(policy);
  if (policy.keeps_all()) return unchanged(graph);
  if (!policy.fp8) return Mixer(graph, policy).run();
  PassResult coded = fp8_products(graph, policy);
  PassResult mixed = Mixer(coded.graph, policy).run();
  return {std::move(mixed.graph), coded.map.then(mixed.map), coded.changed || mixed.changed};
}

}  // namespace ricci
