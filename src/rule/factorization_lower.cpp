// Functions of matrices as calls.
#include "rule/tables/lower_rules.h"

namespace ricci::rule {
namespace {

using Of = loop::MatrixFunction::Of;

Lowering matrix_function(Of of, const LowerContext& c) {
  const StaticDims& a = c.operands[0];
  loop::MatrixFunction f{.of = of, .rows = a[a.size() - 2], .columns = a.back()};
  if (a.size() > 2) f.matrices = loop::split_at(a, a.size() - 2).outer;
  return as_call(f);
}

}  // namespace

Lowering lower(const op::Cholesky&, const LowerContext& c) {
  return matrix_function(Of::Cholesky, c);
}
Lowering lower(const op::Lu&, const LowerContext& c) { return matrix_function(Of::Lu, c); }
Lowering lower(const op::Qr&, const LowerContext& c) { return matrix_function(Of::Qr, c); }
Lowering lower(const op::Eigh&, const LowerContext& c) { return matrix_function(Of::Eigh, c); }
Lowering lower(const op::Svd&, const LowerContext& c) { return matrix_function(Of::Svd, c); }
Lowering lower(const op::MatrixExp&, const LowerContext& c) {
  return matrix_function(Of::Exponential, c);
}
Lowering lower(const op::Adjugate&, const LowerContext& c) {
  return matrix_function(Of::Adjugate, c);
}

}  // namespace ricci::rule
