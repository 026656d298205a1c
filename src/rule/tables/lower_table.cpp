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

Lowering lowered(Rule rule, const LowerContext& c) {
  const DefaultFloatEnvironment floats;
  Lowering lowered = rule(c.node.op, c);
  bool complex = is_complex(c.node.types[0].dtype);
  for (const DType d : c.dtypes) complex = complex || is_complex(d);
  if (complex && !is_for_complex(lowered)) lowered.form = Lowering::Form::Call;
  return lowered;
}

}  // namespace

Lowering lower_node(const Graph& graph, const Node& node) {
  const Rule rule = Rules[static_cast<std::size_t>(node.op.kind())];
  if (rule == nullptr) return {};
  LowerContext c{node, {}, {}, node.types[0].static_dims()};
  for (const ValueId v : node.operands) {
    c.operands.push_back(graph.type(v).static_dims());
    c.dtypes.push_back(graph.type(v).dtype);
  }
  return lowered(rule, c);
}

loop::Call call_of(const Op& op, std::span<const Type> operands, std::span<const Type> results) {
  const Rule rule = Rules[static_cast<std::size_t>(op.kind())];
  if (rule == nullptr) return {};
  const Node node{.op = op, .operands = {}, .types = {results.begin(), results.end()}};
  LowerContext c{node, {}, {}, results[0].static_dims()};
  for (const Type& t : operands) {
    c.operands.push_back(t.static_dims());
    c.dtypes.push_back(t.dtype);
  }
  return lowered(rule, c).call;
}

}  // namespace ricci
