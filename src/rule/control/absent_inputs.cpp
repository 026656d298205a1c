#include "rule/control/absent_inputs.h"

#include <algorithm>
#include <optional>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/vjp.h"
#include "ricci/ir/rebuild.h"
#include "ricci/op/ops.h"
#include "ricci/op/table.h"

namespace ricci::rule {
namespace {

// What a function of two operands is when one is zero, or both are: an invalid value is zero,
// nothing means that zeros have to be written out.
std::optional<Value> binary_without(BinaryKind kind, Value a, Value b, const Dims& dims) {
  switch (kind) {
    case BinaryKind::Add:
      if (!a.valid() && !b.valid()) return Value();
      return broadcast_to(a.valid() ? a : b, dims);
    case BinaryKind::Sub:
      if (!a.valid() && !b.valid()) return Value();
      return broadcast_to(a.valid() ? a : -b, dims);
    case BinaryKind::Mul: return Value();
    case BinaryKind::Div:
      if (b.valid()) return Value();
      return std::nullopt;
    case BinaryKind::Max:
    case BinaryKind::Min:
    case BinaryKind::Pow:
    case BinaryKind::Rem:
    case BinaryKind::Atan2:
    case BinaryKind::Hypot:
    case BinaryKind::MakeComplex:
    case BinaryKind::LogicalAnd:
    case BinaryKind::LogicalOr:
    case BinaryKind::LogicalXor:
    case BinaryKind::BitwiseAnd:
    case BinaryKind::BitwiseOr:
    case BinaryKind::BitwiseXor:
    case BinaryKind::ShiftLeft:
    case BinaryKind::ShiftRight: break;
  }
  return std::nullopt;
}

class Inlining {
 public:
  Inlining(const Graph& body, Graph& target) : body_(body), target_(target), values_(body.size()) {}

  std::vector<Value> run(std::span<const Value> inputs) {
    std::size_t next = 0;
    for (NodeId id = 0; id < body_.size(); ++id) {
      const Node& node = body_.node(id);
      if (node.op.is<op::Input>()) {
        values_[id] = {inputs[next++]};
      } else {
        values_[id] = results(node);
      }
    }
    std::vector<Value> out;
    for (const ValueId v : body_.outputs()) out.push_back(values_[v.node][v.result]);
    return out;
  }

 private:
  std::vector<Value> results(const Node& node) {
    std::vector<Value> operands;
    for (const ValueId v : node.operands) operands.push_back(values_[v.node][v.result]);
    if (!std::ranges::all_of(operands, &Value::valid)) {
      if (is_zero(node, operands)) return std::vector<Value>(node.types.size());
      if (const auto* op = node.op.as<op::Binary>()) {
        const auto rest = binary_without(op->kind, operands[0], operands[1], node.types[0].dims);
        if (rest) return {*rest};
      }
    }
    Node copy = node;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      Value& v = operands[k];
      if (!v.valid()) v = filled(target_, body_.type(node.operands[k]), 0);
      copy.operands[k] = v.id();
    }
    const NodeId id = target_.append(std::move(copy));
    std::vector<Value> out;
    for (std::uint32_t r = 0; r < node.types.size(); ++r) {
      out.push_back(node.wanted[r] ? target_.value({id, r}) : Value());
    }
    return out;
  }

  // Is the node linear in what is absent, and in nothing that is there?
  [[nodiscard]] bool is_zero(const Node& node, const std::vector<Value>& operands) const {
    if (const auto* op = node.op.as<op::Unary>()) {
      return op->kind == UnaryKind::Neg || op->kind == UnaryKind::Conjugate;
    }
    if (const auto* op = node.op.as<op::Reduce>()) return op->op == ReduceKind::Sum;
    if (const auto* op = node.op.as<op::Cast>()) return is_differentiable(op->to);
    if (node.op.is<op::Where>()) return !operands[1].valid() && !operands[2].valid();
    const RuleSource source = descriptor(node.op.kind()).jvp;
    if (source == RuleSource::Multilinear) return true;
    if (source != RuleSource::Linear) return false;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const Type& type = body_.type(node.operands[k]);
      if (operands[k].valid() && carries_derivative(body_.registry(), node, k, type)) return false;
    }
    return true;
  }

  const Graph& body_;
  Graph& target_;
  std::vector<std::vector<Value>> values_;  // per node and result; invalid where zero
};

}  // namespace

std::vector<Value> inline_with_absent(const Graph& body, std::span<const Value> values,
                                      Graph& target) {
  if (std::ranges::all_of(values, &Value::valid)) return inline_subgraph(body, values, target);
  return Inlining(body, target).run(values);
}

}  // namespace ricci::rule
