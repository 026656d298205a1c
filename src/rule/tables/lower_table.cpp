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
bool is_for_complex(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::Sum:
    case ReduceKind::Prod: return true;
    case ReduceKind::Mean:
    case ReduceKind::Max:
    case ReduceKind::Min:
    case ReduceKind::Any:
    case ReduceKind::All:
    case ReduceKind::LogSumExp: break;
  }
  return false;
}

bool is_for_complex(BinaryKind kind) {
  switch (kind) {
    case BinaryKind::Add:
    case BinaryKind::Sub:
    case BinaryKind::Mul: return true;
    case BinaryKind::Div:
    case BinaryKind::Max:
    case BinaryKind::Min:
    case BinaryKind::Pow:
    case BinaryKind::Rem:
    case BinaryKind::Atan2:
    case BinaryKind::Hypot:
    case BinaryKind::LogicalAnd:
    case BinaryKind::LogicalOr:
    case BinaryKind::LogicalXor:
    case BinaryKind::BitwiseAnd:
    case BinaryKind::BitwiseOr:
    case BinaryKind::BitwiseXor:
    case BinaryKind::ShiftLeft:
    case BinaryKind::ShiftRight: break;
  }
  return false;
}

bool is_for_complex(const Lowering& lowered) {
  if (lowered.form == Lowering::Form::Reduction) return is_for_complex(lowered.reduce);
  if (lowered.form != Lowering::Form::Pointwise) return true;
  const loop::Instr& i = lowered.instr;
  switch (i.code) {
    case loop::Code::Unary: return i.unary() == UnaryKind::Neg || i.unary() == UnaryKind::Conjugate;
    case loop::Code::Binary: return is_for_complex(i.binary());
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
