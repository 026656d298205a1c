// Quantize moves up, dequantize moves down, and equal ones that meet are gone.
#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/quantize.h"
#include "ricci/op/ops.h"

#include "rewrite/code_ops.h"
#include "rewrite/replace_nodes.h"

namespace ricci {
namespace {

struct Decoded {
  CodeParams params;
  Value codes;
  DType dtype;
};

std::optional<Decoded> decoded(Value v) {
  const Node& node = v.graph().node(v.id().node);
  const auto* op = node.op.as<op::Dequantize>();
  if (op == nullptr) return std::nullopt;
  const Value codes = v.graph().value(node.operands[0]);
  const auto params = params_of(*op, codes.dtype());
  if (!params) return std::nullopt;
  return Decoded{*params, codes, op->to};
}

// Where the channels are after a move, read from its result back to its operand or the other way
// round; nothing where one scale is needed and there are several.
std::optional<CodeParams> moved(const Op& move, CodeParams params, bool to_operand) {
  if (!params.axis) return params;
  const auto* transpose = move.as<op::Transpose>();
  if (transpose == nullptr) return std::nullopt;
  if (to_operand) {
    params.axis = transpose->perm[params.axis->index()];
    return params;
  }
  for (std::size_t i = 0; i < transpose->perm.size(); ++i) {
    if (transpose->perm[i] == *params.axis) {
      params.axis = Axis(static_cast<std::int64_t>(i));
      return params;
    }
  }
  return std::nullopt;
}

template <class... T>
bool is_any(const Op& op) {
  return (op.is<T>() || ...);
}

// Ops that move elements of their first operand, whatever those are.
bool moves_codes(const Op& op) {
  return is_any<op::Reshape, op::Transpose, op::Expand, op::Narrow, op::TakeEvery, op::Reverse,
                op::Gather>(op);
}

Value apply(const Op& op, std::vector<Value> operands) {
  return operands[0].graph().add_node(op, operands)[0];
}

Value encode(Value x, const CodeParams& params) { return apply(Op(quantize_op(params)), {x}); }
Value decode(Value codes, const CodeParams& params, DType dtype) {
  return apply(Op(dequantize_op(params, dtype)), {codes});
}

// move(dequantize(q)) → dequantize(move(q))
NewResults past_move(const NodeVisit& v) {
  const auto from = decoded(v.operands[0]);
  if (!from) return std::nullopt;
  const auto params = moved(v.node.op, from->params, false);
  if (!params) return std::nullopt;
  std::vector<Value> operands = v.operands;
  operands[0] = from->codes;
  return std::vector{decode(apply(v.node.op, operands), *params, from->dtype)};
}

// concat of several with equal parameters
NewResults past_concat(const NodeVisit& v) {
  std::vector<Value> codes;
  std::optional<Decoded> first;
  for (const Value& x : v.operands) {
    const auto from = decoded(x);
    if (!from || from->params.axis) return std::nullopt;
    if (!first) first = from;
    const bool alike =
        say_the_same(first->params, from->params) && first->codes.dtype() == from->codes.dtype();
    if (!alike) return std::nullopt;
    codes.push_back(from->codes);
  }
  if (!first) return std::nullopt;
  return std::vector{decode(apply(v.node.op, codes), first->params, first->dtype)};
}

// relu(dequantize(q)) → dequantize(max(q, zero point))
NewResults past_relu(const NodeVisit& v) {
  const auto from = decoded(v.operands[0]);
  if (!from || from->params.axis || is_floating_code(from->params.to)) return std::nullopt;
  const auto zero = static_cast<double>(zero_point(from->params, 0));
  return std::vector{decode(max(from->codes, zero), from->params, from->dtype)};
}

// quantize(dequantize(q)) → q
NewResults cancelled(const NodeVisit& v, const CodeParams& params) {
  const auto from = decoded(v.operands[0]);
  if (!from || !say_the_same(from->params, params)) return std::nullopt;
  return std::vector{from->codes};
}

// quantize(move(x)) → move(quantize(x)); behind the maximum of windows, quantize(pool(x)) →
// quantize(pool(dequantize(quantize(x))))
NewResults before_move(const NodeVisit& v, const op::Quantize& op) {
  Graph& graph = v.graph();
  // A copy: adding nodes moves those that are there.
  const Node maker = graph.node(v.operands[0].id().node);
  if (op.clip || maker.operands.empty()) return std::nullopt;
  const CodeParams params = params_of(op);
  if (const auto* pool = maker.op.as<op::Pool>()) {
    const Value x = graph.value(maker.operands[0]);
    if (pool->kind != ReduceKind::Max || op.axis || decoded(x)) return std::nullopt;
    return std::vector{
        encode(apply(maker.op, {decode(encode(x, params), params, x.dtype())}), params)};
  }
  if (maker.op.is<op::Concat>()) {
    if (op.axis) return std::nullopt;
    std::vector<Value> codes;
    for (const ValueId x : maker.operands) codes.push_back(encode(graph.value(x), params));
    return std::vector{apply(maker.op, codes)};
  }
  if (!is_any<op::Reshape, op::Transpose, op::Expand, op::Reverse>(maker.op)) return std::nullopt;
  const auto there = moved(maker.op, params, true);
  if (!there) return std::nullopt;
  return std::vector{apply(maker.op, {encode(graph.value(maker.operands[0]), *there)})};
}

NewResults propagated(const NodeVisit& v) {
  if (const auto* op = v.node.op.as<op::Quantize>()) {
    if (auto codes = cancelled(v, params_of(*op))) return codes;
    return before_move(v, *op);
  }
  if (v.node.op.is<op::Concat>()) return past_concat(v);
  const auto* unary = v.node.op.as<op::Unary>();
  if (unary != nullptr && unary->kind == UnaryKind::Relu) return past_relu(v);
  return moves_codes(v.node.op) ? past_move(v) : std::nullopt;
}

}  // namespace

PassResult propagate_codes(const Graph& graph) {
  return to_fixpoint(
      graph, {[](const Graph& g) { return replace_nodes(g, "propagate_codes", propagated); }});
}

}  // namespace ricci
