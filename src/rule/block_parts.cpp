#include "rule/block_parts.h"

#include <array>

#include "ricci/build/build.h"

#include "op/block_operands.h"

namespace ricci::rule {
namespace {

Value gated_in_ops(Value x, Value up, Value gate, Value down, Fused fused) {
  if (fused == Fused::No) return matmul(silu(matmul(x, gate)) * matmul(x, up), down);
  const Value both = matmul(x, concat({up, gate}, {.axis = 1}));
  return matmul(fused_swiglu(both), down);
}

// {norm, sum} of a residual sum
std::array<Value, 2> sum_and_norm(Value x, Value residual, Value gamma, Value beta, Real eps,
                                  Fused fused) {
  if (fused == Fused::Yes) {
    Graph& graph = x.graph();
    const std::vector<Value> both = graph.add_node(Op(op::FusedResidualRmsNorm{.eps = eps}),
                                                   std::array{x, residual, gamma, beta});
    graph.set_wanted(both[1].id(), true);
    return {both[0], both[1]};
  }
  const Value total = x + residual;
  return {rms_norm(total, gamma, beta, {.eps = eps}), total};
}

// rms_norm of every head by itself
Value heads_normalised(Value x, Value gamma, Value beta, std::int64_t heads, std::int64_t head_dim,
                       Real eps) {
  const Dims d = x.dims();
  const Value apart = reshape_to(x, {d[0], d[1], heads, head_dim});
  return reshape_to(rms_norm(apart, gamma, beta, {.eps = eps}), d);
}

Value part_of_heads(Value packed, std::int64_t heads, std::int64_t head_dim, std::int64_t part) {
  const Dims d = packed.dims();
  const Value apart = reshape_to(packed, {d[0], d[1], heads, 2 * head_dim});
  const Value half = narrow(apart, {.axis = 3, .start = part * head_dim, .len = head_dim});
  return reshape_to(half, {d[0], d[1], heads * head_dim});
}

}  // namespace

BlockResults in_ops(const op::SharedLinearPair& /*op*/, std::span<const Value> in,
                    const std::vector<bool>& wanted, Fused /*fused*/) {
  BlockResults out(2);
  for (const std::size_t r : {0U, 1U}) {
    if (wanted[r]) out[r] = matmul(in[0], in[r + 1]);
  }
  return out;
}

BlockResults in_ops(const op::Swiglu& /*op*/, std::span<const Value> in,
                    const std::vector<bool>& /*wanted*/, Fused fused) {
  return {gated_in_ops(in[0], in[1], in[2], in[3], fused)};
}

BlockResults in_ops(const op::ResidualRmsNorm& op, std::span<const Value> in,
                    const std::vector<bool>& wanted, Fused fused) {
  if (!wanted[0]) return {Value(), in[0] + in[1]};
  if (!wanted[1] && fused == Fused::Yes) {
    return {fused_residual_rms_norm({in[0], in[1], in[2], in[3]}, {.eps = op.eps}), Value()};
  }
  const auto [norm, total] = sum_and_norm(in[0], in[1], in[2], in[3], op.eps, fused);
  return {norm, wanted[1] ? total : Value()};
}

// Channels become channels of a convolution along the steps, each a group of its own.
BlockResults in_ops(const op::DepthwiseConv1dCausal& /*op*/, std::span<const Value> in,
                    const std::vector<bool>& /*wanted*/, Fused /*fused*/) {
  const Dims x = in[0].dims();
  const Dim taps = in[1].dims()[3];
  const Type before{in[0].dtype(), {x[0], taps - Dim(1), x[2]}};
  const Value past = in.size() == 3 ? in[2] : filled(in[0].graph(), before, 0);
  const Value steps = transpose(concat({past, in[0]}, {.axis = 1}), {.perm = {0, 2, 1}});
  const Value kernel = reshape_to(in[1], {x[2], 1, taps});
  return {transpose(conv(steps, kernel, {.groups = x[2].value()}), {.perm = {0, 2, 1}})};
}

BlockResults in_ops(const op::LlamaDecoderBlock& op, std::span<const Value> in,
                    const std::vector<bool>& /*wanted*/, Fused fused) {
  using At = DecoderOperand;
  const auto turned = [&](Value x) {
    return rope(x, in[At::Cos], in[At::Sin], {.head_dim = op.head_dim});
  };
  const Value x = in[At::X];
  const Value n = rms_norm(x, in[At::Ln1G], in[At::Ln1B], {.eps = op.eps});
  const Value q = turned(matmul(n, in[At::Q]));
  const Value k = turned(matmul(n, in[At::K]));
  const Value v = matmul(n, in[At::V]);
  const op::Attention attrs = attention_of(op);
  const Value heads =
      in.size() > At::Mask ? attention(q, k, v, in[At::Mask], attrs) : attention(q, k, v, attrs);
  const auto [norm, h] =
      sum_and_norm(matmul(heads, in[At::O]), x, in[At::Ln2G], in[At::Ln2B], op.eps, fused);
  return {h + gated_in_ops(norm, in[At::Up], in[At::Gate], in[At::Down], fused)};
}

BlockResults in_ops(const op::Qwen35MtpHead& op, std::span<const Value> in,
                    const std::vector<bool>& /*wanted*/, Fused fused) {
  using At = MtpOperand;
  const auto rms = [&](Value x, std::size_t gamma) {
    return rms_norm(x, in[gamma], in[gamma + 1], {.eps = op.eps});
  };
  const std::int64_t shared = op.num_kv_heads.value_or(op.num_heads);
  const auto turned = [&](Value x, std::size_t norm, std::int64_t heads) {
    const Value n = heads_normalised(x, in[norm], in[norm + 1], heads, op.head_dim, op.eps);
    return rope(n, in[At::Cos], in[At::Sin], {.head_dim = op.head_dim, .n_rot = op.n_rot});
  };
  const Value embedded = rms(gather(in[At::Embed], in[At::Ids], {.axis = 0}), At::ENormW);
  const Value cur =
      matmul(concat({embedded, rms(in[At::Hidden], At::HNormW)}, {.axis = 2}), in[At::Eh]);
  const Value n = rms(cur, At::AttnNormW);
  const Value packed = matmul(n, in[At::QGate]);
  const Value q =
      turned(part_of_heads(packed, op.num_heads, op.head_dim, 0), At::QNormW, op.num_heads);
  const Value k = turned(matmul(n, in[At::K]), At::KNormW, shared);
  const Value gates = sigmoid(part_of_heads(packed, op.num_heads, op.head_dim, 1));
  const Value heads = attention(q, k, matmul(n, in[At::V]), attention_of(op)) * gates;
  const auto [norm, h] = sum_and_norm(matmul(heads, in[At::O]), cur, in[At::PostNormW],
                                      in[At::PostNormB], op.eps, fused);
  const Value f = h + gated_in_ops(norm, in[At::Up], in[At::Gate], in[At::Down], fused);

  const Dims d = f.dims();
  const Value rows = broadcast_to(reshape_to(in[At::Last], {d[0], 1, 1}), {d[0], 1, d[2]});
  const Value ends = reshape_to(take_along_axis(f, rows, {.axis = 1}), {d[0], d[2]});
  return {matmul(rms(ends, At::HeadNormW), in[At::LmHead])};
}

}  // namespace ricci::rule
