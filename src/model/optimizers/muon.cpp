// Muon: matrices move along the nearest matrix with orthonormal rows or columns, nearly.
#include <algorithm>

#include "model/optimizers/moments.h"

namespace ricci {
namespace {

// Newton and Schulz's iteration with the coefficients that grow small singular values fastest. The
// product x xᵀ is taken on the shorter side.
Value orthogonal_direction(Value x, double epsilon, std::int64_t iterations) {
  const bool tall = x.dims()[0].value() > x.dims()[1].value();
  if (tall) x = transpose_last(x);
  x = x / (euclidean_norm(x) + epsilon);
  for (std::int64_t i = 0; i < iterations; ++i) {
    const Value square = matmul(x, transpose_last(x));
    const Value factor = square * -4.7750 + matmul(square, square) * 2.0315;
    x = x * 3.4445 + matmul(factor, x);
  }
  return tall ? transpose_last(x) : x;
}

}  // namespace

std::vector<StateSlot> Muon::slots(const Type& param) const {
  if (!is_known_matrix(param)) return adam_slots(param);
  return {slot_like("momentum", param)};
}

std::vector<Value> Muon::scalars(const OptimizerStep& step) const {
  std::vector<Value> all = adam_scalars(adam_beta1, adam_beta2, step);
  all.push_back(bias_left(beta, step.count));
  all.push_back(bias_left(beta, step.count + 1.0));
  return all;
}

OptimizerUpdate Muon::update(const ParamStep& now) const {
  const std::vector<Value>& s = now.step.scalars;
  if (!is_known_matrix(now.param.type())) {
    return adamw_update({adam_beta1, adam_beta2, epsilon, weight_decay}, now, s);
  }
  const Value moved = moved_mean(now.state[0], now.gradient, beta);
  const Value ahead = nesterov ? moment_ahead(moved, now.gradient, beta, s[3], s[2]) : moved / s[2];
  const auto side = [&](std::size_t axis) {
    return static_cast<double>(now.param.dims()[axis].value());
  };
  const Value direction = orthogonal_direction(ahead, epsilon, iterations) *
                          std::sqrt(std::max(1.0, side(1) / std::max(1.0, side(0))));
  const Value rate = now.step.learning_rate;
  return {decayed(now.param, rate, weight_decay) - rate * direction, {moved}};
}

}  // namespace ricci
