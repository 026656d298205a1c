// Reference kernels of the normalisations. All but batch norm are one formula over rows: elements
// that have their statistics in common. Rms norm is the one whose mean is taken as 0.
#include "ricci/op/norm.h"

#include <cmath>

#include "rule/norm_parts.h"
#include "rule/tables/eval_rules.h"

namespace ricci::rule {
namespace {

// x̂ = (x - μ) s of a row, s = 1/√(v + eps), v = mean (x - μ)².
struct RowStatistics {
  std::vector<double> x_hat;
  double scale = 0;
};

RowStatistics statistics(const RealNd& x, const NormRow& row, double eps, Centred centred) {
  const auto count = static_cast<double>(row.size());
  double mean = 0;
  if (centred == Centred::Yes) {
    for (const NormElement& e : row) mean += x.data[e.at];
    mean /= count;
  }
  double variance = 0;
  for (const NormElement& e : row) variance += (x.data[e.at] - mean) * (x.data[e.at] - mean);
  variance /= count;
  RowStatistics out;
  out.scale = 1 / std::sqrt(variance + eps);
  for (const NormElement& e : row) out.x_hat.push_back((x.data[e.at] - mean) * out.scale);
  return out;
}

// Operands x, gamma, beta.
void normalise(EvalContext& c, const std::vector<NormRow>& rows, double eps, Centred centred) {
  c.give(0, normalised(c.real(0), rows, c.real(1), c.real(2), eps, centred));
}

// Operands x, gamma, dy. Over a row, with h = dy γ:
//   dx = s (h - mean h - x̂ mean(h x̂)), without the first mean when μ is 0 by definition
// and over everything: dγ_c = Σ dy x̂, dβ_c = Σ dy.
// For rms norm, s x̂ mean(h x̂) is r³ x mean(h x).
void normalise_backward(EvalContext& c, const std::vector<NormRow>& rows, double eps,
                        Centred centred) {
  const RealNd x = c.real(0);
  const RealNd gamma = c.real(1);
  const RealNd dy = c.real(2);
  RealNd dx(x.dims);
  RealNd dgamma(gamma.dims);
  RealNd dbeta(gamma.dims);
  for (const NormRow& row : rows) {
    const RowStatistics s = statistics(x, row, eps, centred);
    double mean_h = 0;
    double mean_hx = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double g = dy.data[row[i].at];
      const double h = g * gamma.data[row[i].channel];
      mean_h += h;
      mean_hx += h * s.x_hat[i];
      dgamma.data[row[i].channel] += g * s.x_hat[i];
      dbeta.data[row[i].channel] += g;
    }
    mean_h = centred == Centred::Yes ? mean_h / static_cast<double>(row.size()) : 0;
    mean_hx /= static_cast<double>(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double h = dy.data[row[i].at] * gamma.data[row[i].channel];
      dx.data[row[i].at] = s.scale * (h - mean_h - s.x_hat[i] * mean_hx);
    }
  }
  if (c.wanted(0)) c.give(0, dx);
  if (c.wanted(1)) c.give(1, dgamma);
  if (c.wanted(2)) c.give(2, dbeta);
}

}  // namespace

// There may be any number of rows without elements: nobody asks for them.
std::vector<NormRow> rows_along(const StaticDims& dims, std::size_t axis) {
  if (count_elements(dims) == 0) return {};
  StaticDims others = dims;
  others[axis] = 1;
  Nd<NormRow> rows(others);
  std::size_t at = 0;
  for_each_index(dims, [&](const StaticDims& i) {
    rows.at(i).push_back({at++, static_cast<std::size_t>(i[axis])});
  });
  return rows.data;
}

std::vector<NormRow> rows_of_groups(const StaticDims& dims, std::int64_t groups) {
  if (count_elements(dims) == 0) return {};
  Nd<NormRow> rows(StaticDims{dims[0], groups});
  std::size_t at = 0;
  for_each_index(dims, [&](const StaticDims& i) {
    const std::int64_t group = i[1] / (dims[1] / groups);
    rows.data[static_cast<std::size_t>(i[0] * groups + group)].push_back(
        {at++, static_cast<std::size_t>(i[1])});
  });
  return rows.data;
}

RealNd normalised(const RealNd& x, const std::vector<NormRow>& rows, const RealNd& gamma,
                  const RealNd& beta, double eps, Centred centred) {
  RealNd y(x.dims);
  for (const NormRow& row : rows) {
    const RowStatistics s = statistics(x, row, eps, centred);
    for (std::size_t i = 0; i < row.size(); ++i) {
      y.data[row[i].at] = gamma.data[row[i].channel] * s.x_hat[i] + beta.data[row[i].channel];
    }
  }
  return y;
}

// μ = mean x, v = mean (x - μ)², y = γ (x - μ)/√(v + eps) + β, along the axis
void eval(const op::LayerNorm& op, EvalContext& c) {
  normalise(c, rows_along(c.dims(0), op.axis.index()), op.eps, Centred::Yes);
}
void eval(const op::LayerNormBackward& op, EvalContext& c) {
  normalise_backward(c, rows_along(c.dims(0), op.axis.index()), op.eps, Centred::Yes);
}

// r = 1/√(mean x² + eps), y = γ x r + β, along the axis
void eval(const op::RmsNorm& op, EvalContext& c) {
  normalise(c, rows_along(c.dims(0), op.axis.index()), op.eps, Centred::No);
}
void eval(const op::RmsNormBackward& op, EvalContext& c) {
  normalise_backward(c, rows_along(c.dims(0), op.axis.index()), op.eps, Centred::No);
}

// As layer_norm, with statistics over each example's groups of channels.
void eval(const op::GroupNorm& op, EvalContext& c) {
  normalise(c, rows_of_groups(c.dims(0), op.num_groups), op.eps, Centred::Yes);
}
void eval(const op::GroupNormBackward& op, EvalContext& c) {
  normalise_backward(c, rows_of_groups(c.dims(0), op.num_groups), op.eps, Centred::Yes);
}

// y = γ (x - mean)/√(var + eps) + β, along the axis
void eval(const op::BatchNormInference& op, EvalContext& c) {
  const RealNd x = c.real(0);
  const RealNd gamma = c.real(1);
  const RealNd beta = c.real(2);
  const RealNd mean = c.real(3);
  const RealNd var = c.real(4);
  RealNd y(x.dims);
  for_each_index(x.dims, [&](const StaticDims& i) {
    const std::int64_t k = i[op.axis.index()];
    const double x_hat = (x.at(i) - mean.at({k})) / std::sqrt(var.at({k}) + op.eps);
    y.at(i) = gamma.at({k}) * x_hat + beta.at({k});
  });
  c.give(0, y);
}

// s = 1/√(var + eps): dx = dy γ s, dγ = Σ dy (x - mean) s, dβ = Σ dy, dmean = -Σ dy γ s,
// dvar = -½ Σ dy γ (x - mean) s³, sums over all axes but the channel's
void eval(const op::BatchNormInferenceBackward& op, EvalContext& c) {
  const RealNd x = c.real(0);
  const RealNd gamma = c.real(1);
  const RealNd mean = c.real(2);
  const RealNd var = c.real(3);
  const RealNd dy = c.real(4);
  std::vector<RealNd> d = {RealNd(x.dims), RealNd(gamma.dims), RealNd(gamma.dims),
                           RealNd(gamma.dims), RealNd(gamma.dims)};
  for_each_index(x.dims, [&](const StaticDims& i) {
    const std::int64_t k = i[op.axis.index()];
    const double s = 1 / std::sqrt(var.at({k}) + op.eps);
    const double centred = x.at(i) - mean.at({k});
    const double g = dy.at(i);
    d[0].at(i) = g * gamma.at({k}) * s;
    d[1].at({k}) += g * centred * s;
    d[2].at({k}) += g;
    d[3].at({k}) -= g * gamma.at({k}) * s;
    d[4].at({k}) -= 0.5 * g * gamma.at({k}) * centred * s * s * s;
  });
  for (std::size_t r = 0; r < d.size(); ++r) {
    if (c.wanted(r)) c.give(r, d[r]);
  }
}

}  // namespace ricci::rule
