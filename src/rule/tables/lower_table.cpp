// Collects the lowering rules; a primitive without one does not link.
#include <array>

#include "rule/tables/lower_rules.h"
#include "support/float_environment.h"

namespace ricci {
namespace {

using Rule = Lowering (*)(const Op&, const LowerContext&);

template <class T>
Lowering run(const Op& op, const LowerContext& c) {
  return rule::lower(*op.as<T>(), c);
}

// Most composites are expanded instead.
template <class T>
constexpr Rule composite_rule() {
  if constexpr (requires(const T& op, const LowerContext& c) { rule::lower(op, c); }) {
    return run<T>;
  } else {
    return nullptr;
  }
}

constexpr auto Rules = std::to_array<Rule>({
#define RICCI_OP(Type, builder) nullptr,
#define RICCI_PRIMITIVE(Type, builder) run<op::Type>,
#define RICCI_COMPOSITE(Type, builder) composite_rule<op::Type>(),
#define RICCI_PRIMITIVE_FAMILY RICCI_PRIMITIVE
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

}  // namespace ricci
