// Collects the lowering rules; a primitive or structured op without one does not link.
#include <array>

#include "rule/tables/lower_rules.h"
#include "support/float_environment.h"

namespace ricci {
namespace {

using Rule = Lowering (*)(const Op&, const LowerContext&);

template <class T>
concept HasRule = requires(const T& op, const LowerContext& c) { rule::lower(op, c); };

// An op without a rule is a call of no role.
template <class T>
constexpr Rule rule_of() {
  if constexpr (HasRule<T>) {
    return [](const Op& op, const LowerContext& c) { return rule::lower(*op.as<T>(), c); };
  } else {
    return nullptr;
  }
}

constexpr auto Rules = std::to_array<Rule>({
#define RICCI_OP(Type, builder) rule_of<op::Type>(),
#include "ricci/op/list.def"
});

}  // namespace

Lowering lower_node(const Graph& graph, const Node& node) {
  const DefaultFloatEnvironment floats;
  const Rule rule = Rules[static_cast<std::size_t>(node.op.kind())];
  if (rule == nullptr) return {};
  LowerContext c{node, {}, {}, node.types[0].static_dims()};
  for (const ValueId v : node.operands) {
    c.operands.push_back(graph.type(v).static_dims());
    c.dtypes.push_back(graph.type(v).dtype);
  }
  return rule(node.op, c);
}

loop::Call call_of(const Op& op, std::span<const Type> operands, std::span<const Type> results) {
  const DefaultFloatEnvironment floats;
  const Rule rule = Rules[static_cast<std::size_t>(op.kind())];
  if (rule == nullptr) return {};
  const Node node{.op = op, .operands = {}, .types = {results.begin(), results.end()}};
  LowerContext c{node, {}, {}, results[0].static_dims()};
  for (const Type& t : operands) {
    c.operands.push_back(t.static_dims());
    c.dtypes.push_back(t.dtype);
  }
  return rule(op, c).call;
}

}  // namespace ricci
