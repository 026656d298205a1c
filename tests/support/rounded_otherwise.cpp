#include "support/rounded_otherwise.h"

#include <algorithm>
#include <complex>
#include <functional>
#include <map>
#include <vector>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/op/ops.h"

#include "op/kinds.h"
#include "rewrite/replace_nodes.h"
#include "support/exact_nodes.h"

namespace ricci::testing {
namespace {

using Complex = std::complex<double>;

double last_place(DType dtype) {
  switch (dtype) {
    case DType::F64:
    case DType::C128: return 0x1p-52;
    case DType::F32:
    case DType::C64: return 0x1p-23;
    case DType::F16: return 0x1p-10;
    case DType::BF16: return 0x1p-7;
    default: return 0;
  }
}

// The value, each element off by up to two units in the last place.
Value nudged(Value v, Rng& rng) {
  const Type& type = v.type();
  if (!is_differentiable(type.dtype)) return v;
  const double unit = last_place(type.dtype);
  const auto off = [&] { return unit * (static_cast<double>(rng.below(5)) - 2); };
  std::vector<Complex> factors(static_cast<std::size_t>(type.numel().value()));
  for (Complex& f : factors) f = {1 + off(), is_complex(type.dtype) ? off() : 0};
  return mul(v, v.graph().constant(Tensor::from_numbers<Complex>(type, factors)));
}

// Does an op tell nothing from the least there is?
bool asks_for_nothing(const Graph& graph, const Node& node) {
  if (node.operands.empty() || !is_differentiable(graph.type(node.operands[0]).dtype)) return false;
  if (const auto* cast = node.op.as<op::Cast>()) return !is_differentiable(cast->to);
  if (const auto* compare = node.op.as<op::Compare>()) {
    return compare->kind == CompareKind::Eq || compare->kind == CompareKind::Ne;
  }
  if (const auto* reduce = node.op.as<op::Reduce>()) return is_logical(reduce->op);
  const auto* unary = node.op.as<op::Unary>();
  return unary != nullptr && unary->kind == UnaryKind::Sign;
}

// Where two roundings of a difference are as far apart as it is large.
Value may_be_nothing(Value difference, Value other) {
  const Value moved = abs(difference - other);
  return logical_and(is_finite(moved), le(abs(difference), moved));
}

// The operands with nothing for what may be it, given what another rounding makes of them.
std::vector<Value> with_nothing(const Node& node, std::vector<Value> x,
                                const std::vector<Value>& other) {
  if (node.op.is<op::Compare>()) {
    x[0] = where(may_be_nothing(x[0] - x[1], other[0] - other[1]), x[1], x[0]);
  } else {
    const Value nothing = x[0].graph().constant(Tensor::splat({x[0].dtype(), {}}, 0.0));
    x[0] = where(may_be_nothing(x[0], other[0]), nothing, x[0]);
  }
  return x;
}

// One graph, in which every value has a twin that is rounded in yet another way.
class Rounding {
 public:
  Rounding(const Graph& graph, Rng& rng) : rng_(rng) {
    someone_asks_ = std::ranges::any_of(
        graph.nodes(), [&](const Node& node) { return asks_for_nothing(graph, node); });
  }

  NewResults operator()(const NodeVisit& v) {
    if (v.node.is_leaf()) return std::nullopt;
    if (!someone_asks_) return made(v, v.operands);
    std::vector<Value> others;
    for (const Value& x : v.operands) others.push_back(twin_of(x));
    const bool asks = asks_for_nothing(v.rebuild.from(), v.node);
    std::vector<Value> results =
        made(v, asks ? with_nothing(v.node, v.operands, others) : v.operands);
    const std::vector<Value> twins =
        made(v, asks ? with_nothing(v.node, others, v.operands) : others);
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (results[r].valid()) twins_.emplace(results[r].id(), twins[r]);
    }
    return results;
  }

 private:
  [[nodiscard]] Value twin_of(Value v) const {
    const auto found = twins_.find(v.id());
    return found == twins_.end() ? v : found->second;
  }

  std::vector<Value> made(const NodeVisit& v, const std::vector<Value>& operands) {
    const bool rounds = !is_loop_or_branch(v.node) && !node_is_exact(v.rebuild.from(), v.node);
    NodeSpec spec{
        .op = v.node.op, .operands = {}, .bodies = v.node.bodies, .wanted = v.node.wanted};
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const bool moves = rounds && computes_with(v.rebuild.from(), v.node, k);
      spec.operands.push_back((moves ? nudged(operands[k], rng_) : operands[k]).id());
    }
    const NodeId id = v.graph().add(std::move(spec));
    std::vector<Value> results;
    for (std::uint32_t r = 0; r < v.node.types.size(); ++r) {
      const Value result = v.node.wanted[r] ? v.graph().value({id, r}) : Value();
      results.push_back(rounds && result.valid() ? nudged(result, rng_) : result);
    }
    return results;
  }

  Rng& rng_;
  bool someone_asks_ = false;  // nobody else needs twins
  std::map<ValueId, Value> twins_;
};

PassResult rounded(const Graph& graph, Rng& rng) {
  Rounding rounding(graph, rng);
  PassResult made = replace_nodes(graph, "nudge", std::ref(rounding),
                                  [&](const Graph& body) { return rounded(body, rng); });
  made.graph = dead_code_elimination(made.graph).graph;  // twins that nobody asks about
  return made;
}

}  // namespace

Graph rounded_otherwise(const Graph& graph, Rng& rng) { return rounded(graph, rng).graph; }

}  // namespace ricci::testing
