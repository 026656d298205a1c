#include "rule/attention_parts.h"

#include <cmath>
#include <limits>

#include "ricci/build/build.h"

#include "rule/derivative_parts.h"

namespace ricci::rule {
namespace {

constexpr double InfiniteScore = std::numeric_limits<double>::infinity();

double scale_of(const op::Attention& op) {
  return op.score_scale ? op.score_scale->value : 1 / std::sqrt(static_cast<double>(op.head_dim));
}

}  // namespace

HeadedReal read_heads(const op::Attention& op, const RealNd& x, std::int64_t heads,
                      std::int64_t width) {
  return {op.layout.value_or(AttentionLayout::Fused), heads, width, x};
}

std::size_t HeadedReal::flat(std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d) const {
  const std::size_t rank = x.dims.size();
  switch (layout) {
    case AttentionLayout::Fused:
      return static_cast<std::size_t>((b * x.dims[rank - 2] + s) * x.dims[rank - 1] + h * width +
                                      d);
    case AttentionLayout::Bshd:
      return static_cast<std::size_t>(flat_index(x.dims, std::array{b, s, h, d}));
    case AttentionLayout::Bhsd: break;
  }
  return static_cast<std::size_t>(flat_index(x.dims, std::array{b, h, s, d}));
}

std::int64_t HeadedReal::batch() const {
  return layout == AttentionLayout::Fused && x.dims.size() == 2 ? 1 : x.dims[0];
}

std::int64_t HeadedReal::sequence() const {
  if (layout == AttentionLayout::Bshd) return x.dims[1];
  return x.dims[x.dims.size() - 2];
}

AttentionScores::AttentionScores(const op::Attention& op, EvalContext& c, std::size_t mask_index)
    : AttentionScores(op, c.real(0), c.real(1), c.real(2),
                      op.mask_kind.has_operand() ? c.real(mask_index) : RealNd()) {}

AttentionScores::AttentionScores(const op::Attention& attention, const RealNd& q_heads,
                                 const RealNd& k_heads, const RealNd& v_heads, RealNd mask)
    : op_(attention),
      mask_(std::move(mask)),
      q(read_heads(attention, q_heads, attention.num_heads, attention.head_dim)),
      k(read_heads(attention, k_heads, attention.num_kv_heads.value_or(attention.num_heads),
                   attention.head_dim)),
      v(read_heads(attention, v_heads, attention.num_kv_heads.value_or(attention.num_heads),
                   attention.value_width())),
      scale(scale_of(attention)) {}

bool AttentionScores::allowed(std::int64_t b, std::int64_t h, std::int64_t i,
                              std::int64_t j) const {
  const std::int64_t newest = i + k.sequence() - q.sequence();
  switch (op_.mask_kind.kind) {
    case MaskKind::Kind::None:
    case MaskKind::Kind::Bias: return true;
    case MaskKind::Kind::Causal: return j <= newest;
    case MaskKind::Kind::SlidingWindow: return j <= newest && j >= newest - op_.mask_kind.window;
    case MaskKind::Kind::Custom: break;
  }
  if (mask_.dims.size() == 2) return mask_.at({b, j}) >= 0.5;
  return mask_.at({b, h, i, j}) >= 0.5;
}

AttentionRow AttentionScores::row(std::int64_t b, std::int64_t h, std::int64_t i,
                                  std::optional<double> lse) const {
  const std::int64_t keys = k.sequence();
  AttentionRow r;
  r.p.assign(static_cast<std::size_t>(keys), 0.0);
  r.slope.assign(static_cast<std::size_t>(keys), 0.0);
  std::vector<double> z(static_cast<std::size_t>(keys), -InfiniteScore);
  double largest = -InfiniteScore;
  for (std::int64_t j = 0; j < keys; ++j) {
    if (!allowed(b, h, i, j)) continue;
    double score = 0;
    for (std::int64_t d = 0; d < op_.head_dim; ++d) {
      score += q.at(b, i, h, d) * k.at(b, j, kv_head(h), d);
    }
    score *= scale;
    double slope = 1;
    if (op_.attn_logit_softcap) {
      const double cap = *op_.attn_logit_softcap;
      const double t = std::tanh(score / cap);
      score = cap * t;
      slope = 1 - t * t;
    }
    if (op_.mask_kind.kind == MaskKind::Kind::Bias) score += mask_.at({b, h, i, j});
    const auto at = static_cast<std::size_t>(j);
    z[at] = score;
    r.slope[at] = slope;
    largest = std::isnan(score) ? score : (score > largest ? score : largest);
  }
  r.lse = -InfiniteScore;
  if (largest == -InfiniteScore || lse == -InfiniteScore) return r;  // no allowed key: a zero row
  double total = 0;
  for (std::size_t j = 0; j < z.size(); ++j) {
    if (z[j] == -InfiniteScore) continue;
    r.p[j] = std::exp(z[j] - lse.value_or(largest));
    total += r.p[j];
  }
  r.lse = lse.value_or(largest + std::log(total));
  if (lse) return r;
  for (double& p : r.p) p /= total;
  return r;
}

Value to_bhsd(const op::Attention& op, Value x, std::int64_t heads, std::int64_t width) {
  const AttentionLayout layout = op.layout.value_or(AttentionLayout::Fused);
  if (layout == AttentionLayout::Fused) {
    const Dim batch = x.rank() == 3 ? x.dims()[0] : Dim(1);
    x = reshape(x, {.new_shape = {batch, x.dims()[x.rank() - 2], heads, width}});
  }
  if (layout != AttentionLayout::Bhsd) x = transpose(x, {.perm = {0, 2, 1, 3}});
  if (heads == op.num_heads) return x;
  const Dims d = x.dims();
  const std::int64_t group = op.num_heads / heads;
  const Value spread = broadcast_to(reshape(x, {.new_shape = {d[0], d[1], 1, d[2], d[3]}}),
                                    {d[0], d[1], group, d[2], d[3]});
  return reshape(spread, {.new_shape = {d[0], op.num_heads, d[2], d[3]}});
}

Value from_bhsd(const op::Attention& op, Value x, const Dims& dims) {
  const AttentionLayout layout = op.layout.value_or(AttentionLayout::Fused);
  if (layout != AttentionLayout::Bhsd) x = transpose(x, {.perm = {0, 2, 1, 3}});
  return reshape_to(x, dims);
}

namespace {

// Which keys are allowed, as bool broadcastable to [batch, H, S_q, S_k]; invalid when all are.
Value allowed_keys(const op::Attention& op, Graph& graph, Value mask, const Dim& queries,
                   const Dim& keys) {
  const MaskKind kind = op.mask_kind;
  if (kind.kind == MaskKind::Kind::Custom) {
    const Value valid = mask.dtype() == DType::Bool
                            ? mask
                            : ge(mask, scalar_like(mask, is_float(mask.dtype()) ? 0.5 : 1));
    if (mask.rank() != 2) return valid;
    return reshape(valid, {.new_shape = {mask.dims()[0], 1, 1, mask.dims()[1]}});
  }
  if (kind.kind != MaskKind::Kind::Causal && kind.kind != MaskKind::Kind::SlidingWindow) return {};
  const Value i = iota(graph, {.shape = {queries, keys}, .axis = 0, .dtype = DType::I64});
  const Value j = iota(graph, {.shape = {queries, keys}, .axis = 1, .dtype = DType::I64});
  const Value newest = i + size_as_number(keys - queries, i);
  const Value ok = le(j, newest);
  if (kind.kind == MaskKind::Kind::Causal) return ok;
  return logical_and(ok, ge(j, newest - static_cast<double>(kind.window)));
}

}  // namespace

Value sum_groups(const op::Attention& op, Value x) {
  const std::int64_t kv_heads = op.num_kv_heads.value_or(op.num_heads);
  if (kv_heads == op.num_heads) return x;
  const Dims d = x.dims();
  const Value groups =
      reshape(x, {.new_shape = {d[0], kv_heads, op.num_heads / kv_heads, d[2], d[3]}});
  return sum(groups, {2});
}

AttentionGraph attention_graph(const op::Attention& op, Graph& graph, const AttentionOperands& in) {
  const std::int64_t kv_heads = op.num_kv_heads.value_or(op.num_heads);
  AttentionGraph g;
  g.q = to_bhsd(op, in.q, op.num_heads, op.head_dim);
  g.k = to_bhsd(op, in.k, kv_heads, op.head_dim);
  g.v = to_bhsd(op, in.v, kv_heads, op.value_width());
  g.scale = scale_of(op);
  Value z = matmul(g.q, transpose_last(g.k)) * g.scale;
  if (op.attn_logit_softcap) {
    const double cap = *op.attn_logit_softcap;
    g.bent = tanh(z / cap);
    z = g.bent * cap;
  }
  if (op.mask_kind.kind == MaskKind::Kind::Bias) z = z + in.mask;
  const Value allowed = allowed_keys(op, graph, in.mask, g.q.dims()[2], g.k.dims()[2]);
  const Value never = scalar_like(z, -InfiniteScore);
  const Value zero = scalar_like(z, 0.0);
  if (allowed.valid()) z = where(allowed, z, never);
  if (in.lse.valid()) {
    const Dims d = in.lse.dims();
    const Value lse = reshape(in.lse, {.new_shape = {d[0], d[1], d[2], 1}});
    g.p = exp(z - where(eq(lse, never), zero, lse));
    return g;
  }
  // A row without allowed keys is all -inf; shifting by a finite number makes it a zero row.
  g.largest = reduce(z, {.op = ReduceKind::Max, .axes = {3}, .keep_dim = true});
  const Value none = eq(g.largest, never);
  const Value e = exp(z - where(none, zero, g.largest));
  // … and by a total of 1, so that no derivative divides by zero.
  g.total = where(none, scalar_like(z, 1.0), sum(e, {3}, true));
  g.p = e / g.total;
  return g;
}

}  // namespace ricci::rule
