// Reference values of model-level blocks.
#include "ricci/op/block.h"

#include "rule/tables/eval_rules.h"

namespace ricci::rule {
namespace {

// out[β, n] = act(Σ_k x[β, k] · w[k, n] + bias[n])
void eval_linear(std::optional<UnaryKind> activation, EvalContext& c) {
  const RealNd x = c.real(0);
  const RealNd w = c.real(1);
  RealNd out(c.result_dims(0));
  for_each_index(out.dims, [&](const StaticDims& index) {
    const std::int64_t n = index.back();
    StaticDims from = index;
    double total = 0;
    for (std::int64_t k = 0; k < w.dims[0]; ++k) {
      from.back() = k;
      total += x.at(from) * w.at({k, n});
    }
    if (c.operands() == 3) total += c.real(2).at({n});
    out.at(index) = activation ? eval_unary(*activation, total) : total;
  });
  c.give(0, out);
}

}  // namespace

void eval(const op::Linear& op, EvalContext& c) { eval_linear(op.activation, c); }
void eval(const op::LinearFused& op, EvalContext& c) { eval_linear(op.activation, c); }

}  // namespace ricci::rule
