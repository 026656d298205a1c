// Backward ops of the functions of one operand, from the table of derivatives.
#include "ricci/build/build.h"

#include "rule/tables/derivative_table.h"
#include "rule/tables/eval_rules.h"
#include "rule/tables/expand_rules.h"

namespace ricci::rule {
namespace {

const Expression& slope_expression(UnaryKind kind) {
  const Expression* slope = derivative(kind);
  check_internal(slope != nullptr, "infer lets only functions with a derivative through");
  return *slope;
}

// dx[i] = f'(x[i])·dy[i]
void eval_backward(UnaryKind kind, EvalContext& c) {
  const Expression& slope = slope_expression(kind);
  const RealNd x = c.real(0);
  RealNd dx = c.real(1);
  for (std::size_t i = 0; i < dx.size(); ++i) {
    dx.data[i] = evaluate_times(slope, dx.data[i], [&](Variable v) {
      return v == Variable::First ? x.data[i] : eval_unary(kind, x.data[i]);
    });
  }
  c.give(0, dx);
}

std::vector<Value> expand_backward(UnaryKind kind, const ExpandContext& c) {
  const Value dx = build_times(slope_expression(kind), c[1], [&](Variable v) {
    return v == Variable::First ? c[0] : activation(kind, c[0]);
  });
  return {broadcast_to(dx, c[0].dims())};
}

}  // namespace

void eval(const op::ReluBackward&, EvalContext& c) { eval_backward(UnaryKind::Relu, c); }
void eval(const op::ActivationBackward& op, EvalContext& c) { eval_backward(op.kind, c); }

std::vector<Value> expand(const op::ReluBackward&, const ExpandContext& c) {
  return expand_backward(UnaryKind::Relu, c);
}
std::vector<Value> expand(const op::ActivationBackward& op, const ExpandContext& c) {
  return expand_backward(op.kind, c);
}

}  // namespace ricci::rule
