// Products with what is done to their results: dense layers and gated linear units.
#include <algorithm>
#include <optional>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/fuse.h"

#include "rewrite/fusions.h"

namespace ricci {
namespace {

// A product and the bias that is added to it, of one length with its columns.
struct BiasedProduct {
  ValueId product;
  ValueId bias;
};
std::optional<BiasedProduct> biased_product(const Uses& uses, const Node& node) {
  if (!is_binary_node(node, BinaryKind::Add)) return std::nullopt;
  for (const std::size_t k : {0U, 1U}) {
    const ValueId product = node.operands[k];
    const ValueId bias = node.operands[1 - k];
    if (uses.as<op::Matmul>(product) == nullptr || !uses.once(product)) continue;
    // [fusion-guards]: the sum has the product's type, and the bias lies along its columns.
    const Type& type = uses.type(product);
    if (type != node.types[0] || !dtypes::floats.has(type.dtype)) continue;
    if (uses.type(bias) != Type{type.dtype, {type.dims.back()}}) continue;
    return BiasedProduct{product, bias};
  }
  return std::nullopt;
}

// The function of one operand a node is, where it keeps the dtype.
const op::Unary* epilogue(const Uses& uses, const Node& node) {
  const auto* unary = node.op.as<op::Unary>();
  return unary != nullptr && uses.type(node.operands[0]) == node.types[0] ? unary : nullptr;
}

Fusion dense_layer(const Uses& uses, NodeId at, const BiasedProduct& found,
                   std::optional<UnaryKind> activation) {
  const Node& product = uses.node(found.product);
  return {at, {{at, 0}}, [=, x = product.operands[0], w = product.operands[1]](Rebuilder& r) {
            return std::vector{fused_matmul_bias_act(r.value(x), r.value(w), r.value(found.bias),
                                                     {.activation = activation})};
          }};
}

std::vector<Fusion> find_dense_layers(const Graph& graph) {
  const Uses uses(graph);
  std::vector<Fusion> found;
  // Sums that a function behind them takes along.
  std::vector<bool> taken(graph.size(), false);
  for (auto id = static_cast<NodeId>(graph.size()); id-- > 0;) {
    const Node& node = graph.node(id);
    if (taken[id]) continue;
    if (const op::Unary* unary = epilogue(uses, node)) {
      const ValueId sum = node.operands[0];
      const auto layer = uses.once(sum) ? biased_product(uses, uses.node(sum)) : std::nullopt;
      if (!layer) continue;
      taken[sum.node] = true;
      found.push_back(dense_layer(uses, id, *layer, unary->kind));
    } else if (const auto layer = biased_product(uses, node)) {
      found.push_back(dense_layer(uses, id, *layer, std::nullopt));
    }
  }
  std::ranges::reverse(found);
  return found;
}

// silu of a value that is read once: that value.
std::optional<ValueId> silu_of(const Uses& uses, ValueId v) {
  const auto* unary = uses.as<op::Unary>(v);
  if (unary == nullptr || unary->kind != UnaryKind::Silu || !uses.once(v)) return std::nullopt;
  return uses.node(v).operands[0];
}

// Both factors of a gated unit.
struct Gated {
  ValueId up;
  ValueId gate;
};
template <class Fits>
std::optional<Gated> gated_unit(const Uses& uses, const Node& node, Fits&& fits) {
  if (!is_binary_node(node, BinaryKind::Mul) || !dtypes::floats.has(node.types[0].dtype)) {
    return std::nullopt;
  }
  for (const std::size_t k : {0U, 1U}) {
    const auto gate = silu_of(uses, node.operands[1 - k]);
    if (!gate) continue;
    const Gated unit{node.operands[k], *gate};
    if (uses.type(unit.up) == node.types[0] && uses.type(unit.gate) == node.types[0] &&
        unit.up != unit.gate && uses.once(unit.up) && uses.once(unit.gate) && fits(unit)) {
      return unit;
    }
  }
  return std::nullopt;
}

std::vector<Fusion> find_dual_products(const Graph& graph) {
  const Uses uses(graph);
  const auto two_products = [&](const Gated& unit) {
    for (const ValueId v : {unit.up, unit.gate}) {
      if (uses.as<op::Matmul>(v) == nullptr) return false;
    }
    const Node& up = uses.node(unit.up);
    const Node& gate = uses.node(unit.gate);
    return up.operands[0] == gate.operands[0] && uses.type(up.operands[1]).rank() == 2 &&
           uses.type(up.operands[1]) == uses.type(gate.operands[1]);
  };
  std::vector<Fusion> found;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const auto unit = gated_unit(uses, graph.node(id), two_products);
    if (!unit) continue;
    const Node& up = uses.node(unit->up);
    const Node& gate = uses.node(unit->gate);
    found.push_back({id,
                     {{id, 0}},
                     [x = up.operands[0], u = up.operands[1], g = gate.operands[1]](Rebuilder& r) {
                       const Value both = concat({r.value(u), r.value(g)}, {.axis = 1});
                       return std::vector{fused_swiglu(matmul(r.value(x), both))};
                     }});
  }
  return found;
}

// Where a half of a value with two halves along its last axis begins: 0, or half its size.
std::optional<Dim> start_of_half(const Uses& uses, ValueId v) {
  const auto* slice = uses.as<op::Narrow>(v);
  if (slice == nullptr) return std::nullopt;
  const Type& whole = uses.type(uses.node(v).operands[0]);
  if (!is_last_axis(slice->axis, whole) || !(slice->len * 2 == whole.dims.back())) {
    return std::nullopt;
  }
  if (!slice->start.is(0) && !(slice->start == slice->len)) return std::nullopt;
  return slice->start;
}

std::vector<Fusion> find_swiglus(const Graph& graph) {
  const Uses uses(graph);
  const auto two_halves = [&](const Gated& unit) {
    const auto up = start_of_half(uses, unit.up);
    const auto gate = start_of_half(uses, unit.gate);
    return up && gate && !(*up == *gate) &&
           uses.node(unit.up).operands[0] == uses.node(unit.gate).operands[0];
  };
  std::vector<Fusion> found;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const auto unit = gated_unit(uses, graph.node(id), two_halves);
    if (!unit) continue;
    const bool gate_first = start_of_half(uses, unit->gate)->is(0);
    found.push_back({id, {{id, 0}}, [=, packed = uses.node(unit->up).operands[0]](Rebuilder& r) {
                       return std::vector{
                           fused_swiglu(r.value(packed), {.gate_first = gate_first})};
                     }});
  }
  return found;
}

}  // namespace

PassResult fuse_matmul_bias_act(const Graph& graph) {
  return make_fusions(graph, "fuse_matmul_bias_act", find_dense_layers);
}

PassResult fuse_swiglu_dual_matmul(const Graph& graph) {
  return make_fusions(graph, "fuse_swiglu_dual_matmul", find_dual_products);
}

PassResult fuse_swiglu(const Graph& graph) {
  return make_fusions(graph, "fuse_swiglu", find_swiglus);
}

}  // namespace ricci
