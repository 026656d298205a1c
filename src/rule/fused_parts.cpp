#include "rule/fused_parts.h"

#include "rule/attention_parts.h"

namespace ricci::rule {

RealNd linear(const RealNd& x, const RealNd& w, const RealNd& bias, StaticDims out) {
  RealNd y(std::move(out));
  const std::size_t rank = y.dims.size();
  for_each_index(y.dims, [&](const StaticDims& i) {
    StaticDims ix = i;
    StaticDims iw = i;
    double total = 0;
    for (std::int64_t k = 0; k < x.dims.back(); ++k) {
      ix[rank - 1] = k;
      iw[rank - 2] = k;
      total += x.at(ix) * w.at(iw);
    }
    y.at(i) = total + (bias.data.empty() ? 0 : bias.at({i.back()}));
  });
  return y;
}

RealNd linear(const RealNd& x, const RealNd& w, const RealNd& bias) {
  StaticDims out = x.dims;
  out.back() = w.dims.back();
  return linear(x, w, bias, std::move(out));
}

RealNd columns(const RealNd& x, std::int64_t first, std::int64_t count) {
  StaticDims dims = x.dims;
  dims.back() = count;
  RealNd out(dims);
  for_each_index(dims, [&](const StaticDims& i) {
    StaticDims from = i;
    from.back() += first;
    out.at(i) = x.at(from);
  });
  return out;
}

RealNd rotated(const RealNd& x, const RealNd& cos, const RealNd& sin, std::int64_t head_dim,
               std::int64_t n_rot) {
  RealNd out(x.dims);
  const std::size_t rank = x.dims.size();
  const std::int64_t half = n_rot / 2;
  for_each_index(x.dims, [&](const StaticDims& i) {
    const std::int64_t step = i[rank - 2];
    const std::int64_t within = i[rank - 1] % head_dim;
    if (within >= n_rot) {
      out.at(i) = x.at(i);
      return;
    }
    const bool first = within < half;
    StaticDims other = i;
    other[rank - 1] += first ? half : -half;
    const std::int64_t pair = first ? within : within - half;
    const double turn = x.at(other) * sin.at({step, pair});
    out.at(i) = x.at(i) * cos.at({step, pair}) + (first ? -turn : turn);
  });
  return out;
}

void add_to(RealNd& x, const RealNd& y) {
  for_each_index(x.dims, [&](const StaticDims& i) { x.at(i) += y.at(i); });
}

RealNd normalised_last(const RealNd& x, const RealNd& gamma, const RealNd& beta, double eps,
                       Centred centred) {
  return normalised(x, rows_along(x.dims, x.dims.size() - 1), gamma, beta, eps, centred);
}

RealNd attended(const op::Attention& op, const RealNd& q, const RealNd& k, const RealNd& v,
                const RealNd& mask) {
  const AttentionScores scores(op, q, k, v, mask);
  RealNd out(q.dims);
  const HeadedReal shape = read_heads(op, out, op.num_heads, op.head_dim);
  for_each_index({shape.batch(), op.num_heads, shape.sequence()}, [&](const StaticDims& i) {
    const AttentionRow row = scores.row(i[0], i[1], i[2]);
    for (std::int64_t d = 0; d < op.head_dim; ++d) {
      double total = 0;
      for (std::int64_t j = 0; j < scores.k.sequence(); ++j) {
        const double p = row.p[static_cast<std::size_t>(j)];
        if (p != 0) total += p * scores.v.at(i[0], j, scores.kv_head(i[1]), d);
      }
      out.data[shape.flat(i[0], i[2], i[1], d)] = total;
    }
  });
  return out;
}

}  // namespace ricci::rule
