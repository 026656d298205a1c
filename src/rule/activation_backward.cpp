// Backward ops of the functions of one operand, from the table of derivatives.
#include "ricci/build/build.h"

#include "rule/derivative_parts.h"
#include "rule/matrices.h"
#include "rule/tables/derivative_table.h"
#include "rule/tables/eval_rules.h"
#include "rule/tables/expand_rules.h"

namespace ricci::rule {
namespace {

const Expression& slope_expression(UnaryKind kind, DType dtype) {
  const Expression* slope = is_complex(dtype) ? complex_derivative(kind) : derivative(kind);
  check_internal(slope != nullptr, "infer lets only functions with a derivative through");
  return *slope;
}

// dx[i] = conj(f'(x[i]))·dy[i], as the conjugate of f'(x[i])·conj(dy[i])
template <class N>
void eval_backward(UnaryKind kind, EvalContext& c) {
  const Expression& slope = slope_expression(kind, c.dtype(0));
  const Nd<N> x = c.numbers<N>(0);
  Nd<N> dx = c.numbers<N>(1);
  for (std::size_t i = 0; i < dx.size(); ++i) {
    dx.data[i] = conjugated(
        evaluate_times(slope, conjugated(dx.data[i]), std::function<N(Variable)>([&](Variable v) {
                         return v == Variable::First ? x.data[i] : eval_unary(kind, x.data[i]);
                       })));
  }
  c.give(0, dx);
}

std::vector<Value> expand_backward(UnaryKind kind, const ExpandContext& c) {
  const Value dx = build_times(slope_expression(kind, c[0].dtype()), conj(c[1]), [&](Variable v) {
    return v == Variable::First ? c[0] : activation(kind, c[0]);
  });
  return {broadcast_to(conj(dx), c[0].dims())};
}

}  // namespace

void eval(const op::ReluBackward&, EvalContext& c) { eval_backward<double>(UnaryKind::Relu, c); }
void eval(const op::ActivationBackward& op, EvalContext& c) {
  if (is_complex(c.dtype(0))) return eval_backward<std::complex<double>>(op.kind, c);
  eval_backward<double>(op.kind, c);
}

std::vector<Value> expand(const op::ReluBackward&, const ExpandContext& c) {
  return expand_backward(UnaryKind::Relu, c);
}
std::vector<Value> expand(const op::ActivationBackward& op, const ExpandContext& c) {
  return expand_backward(op.kind, c);
}

}  // namespace ricci::rule
