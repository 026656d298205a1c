// Element-wise ops and generators as instructions.
#include "rule/tables/lower_rules.h"

namespace ricci::rule {
namespace {

bool faults_on_integers(BinaryKind kind) {
  switch (kind) {
    case BinaryKind::Div:
    case BinaryKind::Rem:
    case BinaryKind::Pow: return true;
    case BinaryKind::Add:
    case BinaryKind::Sub:
    case BinaryKind::Mul:
    case BinaryKind::Max:
    case BinaryKind::Min:
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

template <class Kind>
loop::Instr instruction(loop::Code code, Kind kind, const LowerContext& c) {
  loop::Instr i{.code = code, .dtype = c.node.types[0].dtype};
  i.kind = static_cast<std::uint8_t>(kind);
  return i;
}

Lowering constant(loop::Number number, const LowerContext& c) {
  return pointwise({.code = loop::Code::Constant, .dtype = c.node.types[0].dtype, .number = number},
                   c);
}

std::uint64_t stream_key(const std::optional<std::int64_t>& key, std::int64_t seed) {
  return static_cast<std::uint64_t>(key.value_or(0)) + static_cast<std::uint64_t>(seed);
}
// The operand that is added to the key of a stream, when there is one.
std::int64_t key_operand(const LowerContext& c, std::size_t at) {
  return at < c.operands.size() ? static_cast<std::int64_t>(at) : -1;
}

}  // namespace

AxisMap aligned_axes(const StaticDims& from, const StaticDims& to) {
  AxisMap map(to.size(), -1);
  const std::size_t shift = to.size() - from.size();
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] == to[shift + i]) map[shift + i] = static_cast<std::int64_t>(i);
  }
  return map;
}

Lowering pointwise(loop::Instr instr, const LowerContext& c) {
  Lowering l{.form = Lowering::Form::Pointwise, .instr = std::move(instr)};
  for (const StaticDims& dims : c.operands) l.reads.push_back(aligned_axes(dims, c.result));
  return l;
}

Lowering lower(const op::Unary& op, const LowerContext& c) {
  Lowering l = pointwise(instruction(loop::Code::Unary, op.kind, c), c);
  l.call = loop::Elementwise{op.kind};
  return l;
}

Lowering lower(const op::Binary& op, const LowerContext& c) {
  Lowering l = pointwise(instruction(loop::Code::Binary, op.kind, c), c);
  l.call = loop::Elementwise{op.kind};
  // Loops have no way to say which element divided by zero.
  if (is_int(c.dtypes[0]) && faults_on_integers(op.kind)) l.form = Lowering::Form::Call;
  return l;
}

Lowering lower(const op::Compare& op, const LowerContext& c) {
  return pointwise(instruction(loop::Code::Compare, op.kind, c), c);
}

Lowering lower(const op::Where&, const LowerContext& c) {
  return pointwise(instruction(loop::Code::Select, 0, c), c);
}

Lowering lower(const op::Cast&, const LowerContext& c) {
  return pointwise(instruction(loop::Code::Cast, 0, c), c);
}

Lowering lower(const op::StopGradient&, const LowerContext&) {
  return {.form = Lowering::Form::View,
          .view = [](const Node&, const LowerContext&, const loop::Layout& l) {
            return std::optional(l);
          }};
}

Lowering lower(const op::Iota& op, const LowerContext& c) {
  loop::Instr i{.code = loop::Code::Index, .dtype = c.node.types[0].dtype};
  i.access.strides.assign(c.result.size(), 0);
  if (!c.result.empty()) i.access.strides[static_cast<std::size_t>(op.axis.value)] = 1;
  return pointwise(std::move(i), c);
}

Lowering lower(const op::DimSize& op, const LowerContext& c) {
  if (is_float(c.node.types[0].dtype)) return constant(static_cast<double>(op.dim.value()), c);
  return constant(op.dim.value(), c);
}

// Random streams are drawn by kernels of their own: every word depends on its position alone.
Lowering lower(const op::RngNormal& op, const LowerContext& c) {
  return as_call(loop::Random{loop::Random::Of::Normal, op.mean, op.scale,
                              stream_key(op.key, op.op_seed), key_operand(c, op.shape ? 0 : 1)});
}
Lowering lower(const op::RngUniform& op, const LowerContext& c) {
  return as_call(loop::Random{loop::Random::Of::Uniform, op.low, op.high - op.low,
                              stream_key(op.key, op.op_seed), key_operand(c, op.shape ? 0 : 1)});
}
Lowering lower(const op::RngBits& op, const LowerContext& c) {
  return as_call(
      loop::Random{loop::Random::Of::Words, 0, 1, stream_key(op.key, 0), key_operand(c, 0)});
}

}  // namespace ricci::rule
