// Products and linear systems as calls.
#include "rule/tables/lower_rules.h"

namespace ricci::rule {
namespace {

// Batch axes are aligned from the right; those that are missing or of size 1 repeat.
std::vector<std::int64_t> batch_axes(const StaticDims& operand, std::size_t count) {
  std::vector<std::int64_t> axes;
  const std::size_t missing = count + 2 - operand.size();
  for (std::size_t i = 0; i < count; ++i) {
    const bool repeats = i < missing || operand[i - missing] == 1;
    axes.push_back(repeats ? -1 : static_cast<std::int64_t>(i - missing));
  }
  return axes;
}

loop::GroupedProduct grouped(loop::Pass pass, const LowerContext& c) {
  const StaticDims& w = c.operands[1];
  const StaticDims& picks = c.operands[2];
  return {pass, c.operands[0][0], picks.size() == 1 ? 1 : picks[1], w[0], w[1], w[2]};
}

// A batch of matrices [.., N, N]; a right-hand side of lower rank is one column.
loop::Solve systems(loop::Solve::Matrix matrix, const LowerContext& c) {
  const StaticDims& a = c.operands[0];
  const StaticDims& b = c.operands[1];
  loop::Solve solve{.matrix = matrix, .has_columns = a.size() == b.size(), .rows = a.back()};
  solve.systems = a.size() == 2 ? 1 : loop::split_at(a, a.size() - 2).outer;
  if (solve.has_columns) solve.columns = b.back();
  return solve;
}

}  // namespace

Lowering lower(const op::Matmul&, const LowerContext& c) {
  const StaticDims& a = c.operands[0];
  loop::MatrixProduct product{
      .batch = {c.result.begin(), c.result.end() - 2},
      .rows = c.result[c.result.size() - 2],
      .depth = a.back(),
      .columns = c.result.back(),
  };
  product.a_batch = batch_axes(a, product.batch.size());
  product.b_batch = batch_axes(c.operands[1], product.batch.size());
  return as_call(std::move(product));
}

// Devices have matrix products: it is written out in those.
Lowering lower(const op::DotGeneral&, const LowerContext&) { return {}; }

Lowering lower(const op::GroupedMatmul&, const LowerContext& c) {
  return as_call(grouped(loop::Pass::Forward, c));
}
Lowering lower(const op::GroupedMatmulBackward&, const LowerContext& c) {
  return as_call(grouped(loop::Pass::Backward, c));
}

Lowering lower(const op::DenseSolve&, const LowerContext& c) {
  return as_call(systems(loop::Solve::Matrix::Dense, c));
}
Lowering lower(const op::BatchedDenseSolve&, const LowerContext& c) {
  return as_call(systems(loop::Solve::Matrix::Dense, c));
}
Lowering lower(const op::TriangularSolve& op, const LowerContext& c) {
  loop::Solve solve =
      systems(op.lower ? loop::Solve::Matrix::Lower : loop::Solve::Matrix::Upper, c);
  solve.transpose = op.transpose;
  solve.unit = op.unit;
  return as_call(solve);
}

}  // namespace ricci::rule
