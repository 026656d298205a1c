// Element-wise ops and generators as instructions.
#include "ricci/support/error.h"

#include "rule/tables/lower_rules.h"

namespace ricci::rule {
namespace {

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

// The key operand, if there is one, is operand `k`.
Lowering drawn(loop::RandomKind kind, std::int64_t key, std::array<double, 2> range, std::size_t k,
               const LowerContext& c) {
  Lowering l{.form = Lowering::Form::Pointwise};
  l.instr = instruction(loop::Code::Random, kind, c);
  l.instr.number = key;
  l.instr.range = range;
  l.instr.access.strides = loop::contiguous(c.result).strides;
  if (k < c.operands.size()) l.key = k;
  return l;
}

std::int64_t key_of(std::optional<std::int64_t> key, std::int64_t more) {
  check_internal(key.has_value(), "a random node has a key");
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(*key) +
                                   static_cast<std::uint64_t>(more));
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
  return pointwise(instruction(loop::Code::Unary, op.kind, c), c);
}

Lowering lower(const op::Binary& op, const LowerContext& c) {
  return pointwise(instruction(loop::Code::Binary, op.kind, c), c);
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

// Every word of a stream depends on its position alone.
Lowering lower(const op::RngNormal& op, const LowerContext& c) {
  return drawn(loop::RandomKind::Normal, key_of(op.key, op.op_seed), {op.mean, op.scale},
               op.shape ? 0 : 1, c);
}
Lowering lower(const op::RngUniform& op, const LowerContext& c) {
  return drawn(loop::RandomKind::Uniform, key_of(op.key, op.op_seed), {op.low, op.high},
               op.shape ? 0 : 1, c);
}
Lowering lower(const op::RngBits& op, const LowerContext& c) {
  return drawn(loop::RandomKind::Bits, key_of(op.key, 0), {}, 0, c);
}

}  // namespace ricci::rule
