// The rotary embedding of a grid: a rotation of pairs by angles that only the place decides.
#include <cmath>
#include <numbers>

#include "rule/derivative_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/eval_rules.h"
#include "rule/tables/expand_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

// The angle of pair `pair` (of head_dim/2) at token p.
double angle(const op::AxialRope2d& op, std::int64_t p, std::int64_t pair) {
  const std::int64_t half = op.head_dim / 4;
  const std::int64_t cell = p / std::max<std::int64_t>(op.repeat_factor, 1);
  const std::int64_t place = pair < half ? cell % op.end_x : cell / op.end_x;
  const double exponent =
      -4.0 * static_cast<double>(pair % half) / static_cast<double>(op.head_dim);
  const double turn = static_cast<double>(place) * std::pow(op.theta.value, exponent);
  return op.inverse ? -turn : turn;
}

}  // namespace

// (y0, y1) = (x0 cos φ - x1 sin φ, x0 sin φ + x1 cos φ)
void eval(const op::AxialRope2d& op, EvalContext& c) {
  RealNd x = c.real(0);
  const StaticDims given = x.dims;
  x.dims = {given[0], given[1], op.num_heads, op.head_dim / 2, 2};
  for_each_index({given[0], given[1], op.num_heads, op.head_dim / 2}, [&](const StaticDims& at) {
    const double phi = angle(op, at[1], at[3]);
    double& x0 = x.at({at[0], at[1], at[2], at[3], 0});
    double& x1 = x.at({at[0], at[1], at[2], at[3], 1});
    const double y0 = x0 * std::cos(phi) - x1 * std::sin(phi);
    x1 = x0 * std::sin(phi) + x1 * std::cos(phi);
    x0 = y0;
  });
  x.dims = given;
  c.give(0, x);
}

std::vector<Value> expand(const op::AxialRope2d& op, const ExpandContext& c) {
  const Value x = c[0];
  const std::int64_t tokens = x.dims()[1].value();
  const std::int64_t pairs = op.head_dim / 2;
  constexpr std::int64_t Most = std::int64_t{1} << 26;
  if (tokens > Most / pairs) {
    throw UserError(ErrorCode::Refused, "a grid has more angles than can be written out",
                    "embed it in parts");
  }
  std::vector<double> cosines;
  std::vector<double> sines;
  for (std::int64_t p = 0; p < tokens; ++p) {
    for (std::int64_t i = 0; i < pairs; ++i) {
      cosines.push_back(std::cos(angle(op, p, i)));
      sines.push_back(std::sin(angle(op, p, i)));
    }
  }
  const Type table{x.dtype(), {tokens, 1, pairs, 1}};
  const Value cosine = c.graph.constant(Tensor::from_numbers<double>(table, cosines));
  const Value sine = c.graph.constant(Tensor::from_numbers<double>(table, sines));
  const Value heads = reshape_to(x, {x.dims()[0], tokens, op.num_heads, pairs, 2});
  const Value x0 = narrow(heads, {.axis = -1, .start = 0, .len = 1});
  const Value x1 = narrow(heads, {.axis = -1, .start = 1, .len = 1});
  const Value turned = concat({x0 * cosine - x1 * sine, x0 * sine + x1 * cosine}, {.axis = -1});
  return {reshape_to(turned, x.dims())};
}

// [AT-16] orthogonal: the transpose turns back
Cotangents vjp(const op::AxialRope2d& op, const VjpContext& c) {
  op::AxialRope2d back = op;
  back.inverse = !op.inverse;
  return {axial_rope2d(c.cotangent(), back)};
}

BatchedValues batch(const op::AxialRope2d& op, const VmapContext& c) {
  return {c.unfolded(axial_rope2d(c.folded(0), op))};
}

}  // namespace ricci::rule
