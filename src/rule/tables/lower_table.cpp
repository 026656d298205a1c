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

constexpr auto Rules = std::to_array<Rule>({
#define RICCI_OP(Type, builder) nullptr,
#define RICCI_PRIMITIVE(Type, builder) run<op::Type>,
#define RICCI_PRIMITIVE_FAMILY RICCI_PRIMITIVE
#include "ricci/op/list.def"
});

// What kernels do with complex numbers: moving, comparing and choosing, sums and products.
// Quotients and functions of them are calls.
bool is_for_complex(const Lowering& lowered) {
  if (lowered.form == Lowering::Form::Reduction) {
    return lowered.reduce == ReduceKind::Sum || lowered.reduce == ReduceKind::Prod;
  }
  if (lowered.form != Lowering::Form::Pointwise) return true;
  const loop::Instr& i = lowered.instr;
  switch (i.code) {
    case loop::Code::Unary: return i.unary() == UnaryKind::Neg || i.unary() == UnaryKind::Conjugate;
    case loop::Code::Binary:
      return i.binary() == BinaryKind::Add || i.binary() == BinaryKind::Sub ||
             i.binary() == BinaryKind::Mul;
    default: return true;
  }
}

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
  bool complex = is_complex(node.types[0].dtype);
  for (const DType d : c.dtypes) complex = complex || is_complex(d);
  Lowering lowered = rule(node.op, c);
  if (complex && !is_for_complex(lowered)) return {};
  return lowered;
}

}  // namespace ricci
