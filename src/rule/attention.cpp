// Attention: per batch and head, R = scale · q kᵀ; Z = cap(R) + bias; P = softmax over allowed
// keys; out = P v; lse = log Σ e^Z. Its derivative recomputes P.
#include "ricci/op/attention.h"

#include "ricci/build/build.h"

#include "rule/attention_parts.h"
#include "rule/tables/eval_rules.h"
#include "rule/tables/expand_rules.h"

namespace ricci::rule {

void eval(const op::Attention& op, EvalContext& c) {
  const AttentionScores scores(op, c, 3);
  RealNd out(c.result_dims(0));
  const HeadedReal shape = read_heads(op, out, op.num_heads, op.value_width());
  RealNd lse(c.result_dims(1));
  for_each_index(lse.dims, [&](const StaticDims& index) {
    const std::int64_t b = index[0];
    const std::int64_t h = index[1];
    const std::int64_t i = index[2];
    const AttentionRow row = scores.row(b, h, i);
    lse.at(index) = row.lse;
    for (std::int64_t d = 0; d < op.value_width(); ++d) {
      double total = 0;
      for (std::int64_t j = 0; j < scores.k.sequence(); ++j) {
        const double p = row.p[static_cast<std::size_t>(j)];
        if (p != 0) total += p * scores.v.at(b, j, scores.kv_head(h), d);
      }
      out.data[shape.flat(b, i, h, d)] = total;
    }
  });
  if (c.wanted(0)) c.give(0, out);
  if (c.wanted(1)) c.give(1, lse);
}

std::vector<Value> expand(const op::Attention& op, const ExpandContext& c) {
  const Value mask = op.mask_kind.has_operand() ? c[3] : Value();
  const AttentionGraph g = attention_graph(op, c.graph, {c[0], c[1], c[2], mask, {}});
  std::vector<Value> results(2);
  if (c.wanted(0)) results[0] = from_bhsd(op, matmul(g.p, g.v), c.node.types[0].dims);
  if (c.wanted(1)) {
    // A row without allowed keys has largest -inf: so is the sum, as it should be.
    const Value lse = g.largest + log(g.total);
    const Dims d = lse.dims();
    results[1] = reshape(lse, {.new_shape = {d[0], d[1], d[2]}});
  }
  return results;
}

namespace {

// The gradients of one backward op while they are summed up.
struct AttentionGradients {
  HeadedReal dq;
  HeadedReal dk;
  HeadedReal dv;
  RealNd dbias;  // empty unless the bias has a gradient

  void add_row(const AttentionScores& at, const HeadedReal& dy, const AttentionRow& row,
               const StaticDims& index, std::optional<double> known_mean);
};

void AttentionGradients::add_row(const AttentionScores& at, const HeadedReal& dy,
                                 const AttentionRow& row, const StaticDims& index,
                                 std::optional<double> known_mean) {
  const std::int64_t b = index[0];
  const std::int64_t h = index[1];
  const std::int64_t i = index[2];
  const std::int64_t kv = at.kv_head(h);
  const std::int64_t width = at.q.width;
  const std::int64_t value_width = at.v.width;
  std::vector<double> dp(row.p.size(), 0.0);
  double mean = 0;  // Σ_j P dP
  for (std::size_t j = 0; j < dp.size(); ++j) {
    if (row.p[j] == 0) continue;
    for (std::int64_t d = 0; d < value_width; ++d) {
      dp[j] += dy.at(b, i, h, d) * at.v.at(b, static_cast<std::int64_t>(j), kv, d);
    }
    mean += row.p[j] * dp[j];
  }
  mean = known_mean.value_or(mean);
  for (std::size_t s = 0; s < dp.size(); ++s) {
    if (row.p[s] == 0) continue;
    const auto j = static_cast<std::int64_t>(s);
    const double dz = row.p[s] * (dp[s] - mean);
    // Writing at a broadcast index sums over the repeated axes.
    if (!dbias.data.empty()) dbias.at({b, h, i, j}) += dz;
    const double dr = at.scale * dz * row.slope[s];
    for (std::int64_t d = 0; d < value_width; ++d) {
      dv.x.data[dv.flat(b, j, kv, d)] += row.p[s] * dy.at(b, i, h, d);
    }
    for (std::int64_t d = 0; d < width; ++d) {
      dq.x.data[dq.flat(b, i, h, d)] += dr * at.k.at(b, j, kv, d);
      dk.x.data[dk.flat(b, j, kv, d)] += dr * at.q.at(b, i, h, d);
    }
  }
}

}  // namespace

// dv = Pᵀ dy; dP = dy vᵀ; dZ = P ⊙ (dP - Σ_j P ⊙ dP); dR = dZ ⊙ cap'(R);
// dq = scale · dR k; dk = scale · dRᵀ q. P = e^(Z - lse) when lse is given; mean is Σ_j P ⊙ dP.
void eval(const op::AttentionBackward& op, EvalContext& c) {
  const op::Attention forward = op.forward();
  const AttentionScores scores(forward, c, 4);
  const HeadedReal dy = read_heads(forward, c.real(3), op.num_heads, forward.value_width());
  const auto empty = [&](std::size_t r, const HeadedReal& like) {
    return read_heads(forward, RealNd(c.result_dims(r)), like.heads, like.width);
  };
  const bool bias = op.mask_kind.kind == MaskKind::Kind::Bias;
  AttentionGradients d{empty(0, scores.q), empty(1, scores.k), empty(2, scores.v),
                       bias ? RealNd(c.result_dims(3)) : RealNd()};
  const std::size_t lse_index = op.mask_kind.has_operand() ? 5 : 4;
  const bool known = c.operands() > lse_index;
  const RealNd lse = known ? c.real(lse_index) : RealNd();
  const bool known_mean = c.operands() > lse_index + 1;
  const RealNd mean = known_mean ? c.real(lse_index + 1) : RealNd();
  for_each_index({dy.batch(), op.num_heads, dy.sequence()}, [&](const StaticDims& at) {
    const auto own = known ? std::optional(lse.at(at)) : std::nullopt;
    d.add_row(scores, dy, scores.row(at[0], at[1], at[2], own), at,
              known_mean ? std::optional(mean.at(at)) : std::nullopt);
  });
  if (c.wanted(0)) c.give(0, d.dq.x);
  if (c.wanted(1)) c.give(1, d.dk.x);
  if (c.wanted(2)) c.give(2, d.dv.x);
  if (bias && c.wanted(3)) c.give(3, d.dbias);
}

std::vector<Value> expand(const op::AttentionBackward& op, const ExpandContext& c) {
  const op::Attention forward = op.forward();
  const bool takes_mask = op.mask_kind.has_operand();
  const std::size_t lse_index = takes_mask ? 5 : 4;
  const Value mask = takes_mask ? c[4] : Value();
  const Value lse = c.size() > lse_index ? c[lse_index] : Value();
  const AttentionGraph g = attention_graph(forward, c.graph, {c[0], c[1], c[2], mask, lse});
  const Value dy = to_bhsd(forward, c[3], op.num_heads, forward.value_width());
  const Value dp = matmul(dy, transpose_last(g.v));
  Value mean;
  if (c.size() > lse_index + 1) {
    const Dims d = c[lse_index + 1].dims();
    mean = reshape(c[lse_index + 1], {.new_shape = {d[0], d[1], d[2], 1}});
    if (mean.dtype() != dp.dtype()) mean = cast(mean, {.to = dp.dtype()});
  } else {
    mean = sum(g.p * dp, {3}, true);
  }
  const Value dz = g.p * (dp - mean);
  Value dr = dz * g.scale;
  if (g.bent.valid()) dr = dr * (1.0 - g.bent * g.bent);
  std::vector<Value> results(c.node.types.size());
  if (c.wanted(0)) results[0] = from_bhsd(forward, matmul(dr, g.k), c[0].dims());
  if (c.wanted(1)) {
    const Value dk = matmul(transpose_last(dr), g.q);
    results[1] = from_bhsd(forward, sum_groups(forward, dk), c[1].dims());
  }
  if (c.wanted(2)) {
    const Value dv = matmul(transpose_last(g.p), dy);
    results[2] = from_bhsd(forward, sum_groups(forward, dv), c[2].dims());
  }
  if (results.size() > 3 && c.wanted(3)) {
    Axes repeated;
    for (std::size_t i = 0; i < 4; ++i) {
      if (mask.dims()[i] != dz.dims()[i]) repeated.emplace_back(static_cast<std::int64_t>(i));
    }
    results[3] = repeated.empty() ? dz : sum(dz, repeated, true);
  }
  return results;
}

}  // namespace ricci::rule
