// Reference values of model-level blocks.
#include "ricci/op/block.h"

#include <utility>

#include "op/block_operands.h"
#include "rule/fused_parts.h"
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

// out = (silu(x · gate) · (x · up)) · down
RealNd gated(const RealNd& x, const RealNd& up, const RealNd& gate, const RealNd& down) {
  RealNd inner = linear(x, up, {});
  const RealNd gates = linear(x, gate, {});
  for (std::size_t i = 0; i < inner.size(); ++i) {
    inner.data[i] *= eval_unary(UnaryKind::Silu, gates.data[i]);
  }
  return linear(inner, down, {});
}

RealNd rms(const EvalContext& c, const RealNd& x, std::size_t gamma, double eps) {
  return normalised_last(x, c.real(gamma), c.real(gamma + 1), eps, Centred::No);
}

// rms_norm of every head by itself
RealNd rms_of_heads(const EvalContext& c, RealNd x, std::size_t gamma, std::int64_t heads,
                    double eps) {
  const StaticDims flat = x.dims;
  x.dims.back() = heads;
  x.dims.push_back(flat.back() / heads);
  x = rms(c, x, gamma, eps);
  x.dims = flat;
  return x;
}

// [q | gate] of every head in `packed`: all q for part 0, all gates for part 1
RealNd halves_of_heads(const RealNd& packed, std::int64_t head_dim, std::int64_t part) {
  StaticDims dims = packed.dims;
  dims.back() /= 2;
  RealNd out(dims);
  for_each_index(dims, [&](const StaticDims& i) {
    StaticDims from = i;
    from.back() = (i.back() / head_dim) * 2 * head_dim + part * head_dim + i.back() % head_dim;
    out.at(i) = packed.at(from);
  });
  return out;
}

}  // namespace

void eval(const op::Linear& op, EvalContext& c) { eval_linear(op.activation, c); }
void eval(const op::LinearFused& op, EvalContext& c) { eval_linear(op.activation, c); }

void eval(const op::SharedLinearPair& /*op*/, EvalContext& c) {
  for (const std::size_t r : {0U, 1U}) {
    if (c.wanted(r)) c.give(r, linear(c.real(0), c.real(r + 1), {}));
  }
}

void eval(const op::Swiglu& /*op*/, EvalContext& c) {
  c.give(0, gated(c.real(0), c.real(1), c.real(2), c.real(3)));
}

void eval(const op::ResidualRmsNorm& op, EvalContext& c) {
  RealNd total = c.real(0);
  add_to(total, c.real(1));
  if (c.wanted(0)) c.give(0, rms(c, total, 2, op.eps));
  if (c.wanted(1)) c.give(1, total);
}

void eval(const op::DepthwiseConv1dCausal& /*op*/, EvalContext& c) {
  const RealNd x = c.real(0);
  const RealNd w = c.real(1);
  const RealNd before = c.operands() == 3 ? c.real(2) : RealNd();
  const std::int64_t taps = w.dims[3];
  RealNd out(x.dims);
  for_each_index(out.dims, [&](const StaticDims& i) {
    double total = 0;
    for (std::int64_t k = 0; k < taps; ++k) {
      const std::int64_t step = i[1] + k - (taps - 1);
      const double tap = w.at({i[2], 0, 0, k});
      if (step >= 0) {
        total += tap * x.at({i[0], step, i[2]});
      } else if (c.operands() == 3) {
        total += tap * before.at({i[0], step + taps - 1, i[2]});
      }
    }
    out.at(i) = total;
  });
  c.give(0, out);
}

void eval(const op::LlamaDecoderBlock& op, EvalContext& c) {
  using At = DecoderOperand;
  const RealNd cos = c.real(At::Cos);
  const RealNd sin = c.real(At::Sin);
  const auto turned = [&](const RealNd& x) {
    return rotated(x, cos, sin, op.head_dim, op.head_dim);
  };
  RealNd h = c.real(At::X);
  const RealNd n = rms(c, h, At::Ln1G, op.eps);
  const RealNd heads = attended(attention_of(op), turned(linear(n, c.real(At::Q), {})),
                                turned(linear(n, c.real(At::K), {})), linear(n, c.real(At::V), {}),
                                c.operands() > At::Mask ? c.real(At::Mask) : RealNd());
  add_to(h, linear(heads, c.real(At::O), {}));
  add_to(h, gated(rms(c, h, At::Ln2G, op.eps), c.real(At::Up), c.real(At::Gate), c.real(At::Down)));
  c.give(0, h);
}

void eval(const op::Qwen35MtpHead& op, EvalContext& c) {
  using At = MtpOperand;
  const RealNd hidden = c.real(At::Hidden);
  const RealNd table = c.real(At::Embed);
  const IntNd ids = c.indices(At::Ids, table.dims[0]);
  const IntNd last = c.indices(At::Last, hidden.dims[1]);
  RealNd embedded(hidden.dims);
  for_each_index(hidden.dims, [&](const StaticDims& i) {
    embedded.at(i) = table.at({ids.at({i[0], i[1]}), i[2]});
  });
  embedded = rms(c, embedded, At::ENormW, op.eps);
  const RealNd before = rms(c, hidden, At::HNormW, op.eps);
  const std::int64_t width = hidden.dims[2];
  RealNd both({hidden.dims[0], hidden.dims[1], 2 * width});
  for_each_index(both.dims, [&](const StaticDims& i) {
    both.at(i) = i[2] < width ? embedded.at(i) : before.at({i[0], i[1], i[2] - width});
  });
  RealNd h = linear(both, c.real(At::Eh), {});

  const RealNd n = rms(c, h, At::AttnNormW, op.eps);
  const std::int64_t shared = op.num_kv_heads.value_or(op.num_heads);
  const auto turned = [&](RealNd x, std::size_t norm, std::int64_t heads) {
    return rotated(rms_of_heads(c, std::move(x), norm, heads, op.eps), c.real(At::Cos),
                   c.real(At::Sin), op.head_dim, op.n_rot.value_or(op.head_dim));
  };
  const RealNd packed = linear(n, c.real(At::QGate), {});
  const RealNd gates = halves_of_heads(packed, op.head_dim, 1);
  RealNd heads = attended(
      attention_of(op), turned(halves_of_heads(packed, op.head_dim, 0), At::QNormW, op.num_heads),
      turned(linear(n, c.real(At::K), {}), At::KNormW, shared), linear(n, c.real(At::V), {}), {});
  for (std::size_t i = 0; i < heads.size(); ++i) {
    heads.data[i] *= eval_unary(UnaryKind::Sigmoid, gates.data[i]);
  }
  add_to(h, linear(heads, c.real(At::O), {}));
  add_to(h, gated(rms(c, h, At::PostNormW, op.eps), c.real(At::Up), c.real(At::Gate),
                  c.real(At::Down)));

  RealNd ends({hidden.dims[0], width});
  for_each_index(ends.dims,
                 [&](const StaticDims& i) { ends.at(i) = h.at({i[0], last.at({i[0]}), i[1]}); });
  c.give(0, linear(rms(c, ends, At::HeadNormW, op.eps), c.real(At::LmHead), {}));
}

}  // namespace ricci::rule
