#include "ricci/compat/sequence.h"

#include <cmath>

#include "ricci/array/create.h"
#include "ricci/array/lift.h"
#include "ricci/array/nn.h"
#include "ricci/array/ops.h"
#include "ricci/array/shape.h"
#include "ricci/nn/transformer.h"
#include "ricci/op/ops.h"

#include "nn/layer.h"
#include "support/float_environment.h"

namespace ricci::nn {
namespace {

Conv1d causal_conv(std::int64_t channels, std::int64_t window, bool bias, DType dtype) {
  return {channels,
          channels,
          window,
          {.padding = window - 1, .groups = channels, .bias = bias, .dtype = dtype}};
}

// silu of a convolution with the past, of [batch, places, channels].
Array with_past(const Conv1d& conv, const Array& x, Here where) {
  const Array all = conv(transpose(x, {0, 2, 1}, where), where);
  const Array past = narrow(all, 2, 0, x.dim(1), where);
  return silu(transpose(past, {0, 2, 1}, where), where);
}

// silu of the convolution of the next places, before which `past` lies, and the past of those that
// come behind the places that count.
std::pair<Array, Array> step_with_past(const Conv1d& conv, const Array& x, const Array& past,
                                       const StepPlaces& at, Here where) {
  const std::int64_t rows = x.dim(0).value();
  const std::int64_t next = x.dim(1).value();
  const std::int64_t channels = x.dim(2).value();
  const std::int64_t window = conv.w.dim(2).value();
  const Array all = window > 1 ? concat({past, x}, 1, where) : x;
  Array sum = conv.b.valid() ? conv.b : zeros({channels}, {.dtype = x.dtype()}, where);
  for (std::int64_t k = 0; k < window; ++k) {
    const Array tap = reshape(narrow(conv.w, 2, k, 1, where), {channels}, where);
    sum = add(sum, mul(narrow(all, 1, k, next, where), tap, where), where);
  }
  if (window == 1) return {silu(sum, where), past};
  const std::int64_t length = window - 1 + next;
  const Array start = add(mul(arange(rows), length, where), at.count, where);
  const Array index = add(expand_dims(start, 1, where), arange(window - 1), where);
  return {silu(sum, where), take(reshape(all, {rows * length, channels}, where), index, 0, where)};
}

// [rows, next, 1]: which of the new places count.
Array counting(const Array& x, const StepPlaces& at, Here where) {
  const Array counts = lt(arange(x.dim(1).value()), expand_dims(at.count, 1, where), where);
  return expand_dims(counts, 2, where);
}

}  // namespace

MambaBlock::MambaBlock(std::int64_t width, const MambaOptions& o) {
  const DefaultFloatEnvironment floats;
  require_setting(width > 0 && o.expand > 0 && o.state > 0 && o.window > 0 && o.rank >= 0,
                  "MambaBlock", "its sizes are positive");
  const std::int64_t inner = o.expand * width;
  const std::int64_t rank = o.rank == 0 ? (width + 15) / 16 : o.rank;
  const LinearOptions plain{.bias = false, .dtype = o.dtype};
  in = Linear(width, 2 * inner, plain);
  conv = causal_conv(inner, o.window, true, o.dtype);
  select = Linear(inner, rank + 2 * o.state, plain);
  step = Linear(rank, inner, {.dtype = o.dtype});
  // Steps from 0.001 to 0.1, evenly in their logarithms: softplus of the bias.
  const Array size = exp(uniform(next_key(), {inner}, std::log(1e-3), std::log(0.1)));
  step.b = cast(size + log(-expm1(-size)), o.dtype);
  const Array index = cast(arange(o.state) + 1, DType::F32);
  a_log = cast(broadcast_to(log(index), {inner, o.state}), o.dtype);
  d = ones({inner}, {.dtype = o.dtype});
  out = Linear(inner, width, plain);
}

Array MambaBlock::operator()(const Array& x, Here where) const {
  const auto parts = split(in(x, where), 2, 2, where);
  const Array u = with_past(conv, parts[0], where);
  const Array selected = select(u, where);
  const std::int64_t rank = step.in_width();
  const std::int64_t state = a_log.dim(1).value();
  const Array delta = softplus(step(narrow(selected, 2, 0, rank, where), where), where);
  const Array b = narrow(selected, 2, rank, state, where);
  const Array c = narrow(selected, 2, rank + state, state, where);
  const Array y = selective_scan(u, delta, neg(exp(a_log, where), where), b, c,
                                 op::SelectiveScan{.state_size = state}, where);
  return out(mul(add(y, mul(u, d, where), where), silu(parts[1], where), where), where);
}

MambaState MambaBlock::make_state(std::int64_t rows) const {
  const DType dtype = conv.w.dtype();
  const std::int64_t inner = a_log.dim(0).value();
  const Dims h = {rows, inner, a_log.dim(1).value()};
  return {zeros({rows, conv.w.dim(2).value() - 1, inner}, {.dtype = dtype}),
          zeros(h, {.dtype = dtype == DType::F64 ? dtype : DType::F32})};
}

std::pair<Array, MambaState> MambaBlock::advance(const Array& x, const MambaState& before,
                                                 const StepPlaces& at, Here where) const {
  const std::int64_t state = a_log.dim(1).value();
  const std::int64_t rank = step.in_width();
  const auto parts = split(in(x, where), 2, 2, where);
  const auto [u, past] = step_with_past(conv, parts[0], before.past, at, where);
  const Array selected = select(u, where);
  // A step of size 0 leaves the state as it is: that of padding.
  const Array size = softplus(step(narrow(selected, 2, 0, rank, where), where), where);
  const Array delta = mul(size, cast(counting(x, at, where), size.dtype(), where), where);
  const auto [y, h] = lift(
      [&](Value in_u, Value in_delta, Value a, Value b, Value c, Value h0) {
        const WithState r =
            selective_scan_with_state(in_u, in_delta, a, b, c, {.state_size = state}, h0);
        return std::pair{r.out, r.state};
      },
      u, delta, neg(exp(a_log, where), where), narrow(selected, 2, rank, state, where),
      narrow(selected, 2, rank + state, state, where), before.h);
  const Array z = silu(parts[1], where);
  return {out(mul(add(y, mul(u, d, where), where), z, where), where), {past, h}};
}

GatedDeltaNet::GatedDeltaNet(std::int64_t width, std::int64_t head_count,
                             const GatedDeltaNetOptions& o)
    : heads(head_count) {
  require_setting(heads > 0 && width % heads == 0 && o.window > 0, "GatedDeltaNet",
                  "the number of heads divides the width");
  const std::int64_t key = o.key_width == 0 ? width / heads : o.key_width;
  const std::int64_t value = o.value_width == 0 ? key : o.value_width;
  const LinearOptions plain{.bias = false, .dtype = o.dtype};
  q = Linear(width, heads * key, plain);
  k = Linear(width, heads * key, plain);
  v = Linear(width, heads * value, plain);
  q_conv = causal_conv(heads * key, o.window, false, o.dtype);
  k_conv = causal_conv(heads * key, o.window, false, o.dtype);
  v_conv = causal_conv(heads * value, o.window, false, o.dtype);
  beta = Linear(width, heads, plain);
  decay = Linear(width, heads, {.dtype = o.dtype});
  a_log = zeros({heads}, {.dtype = o.dtype});
  norm = RMSNorm(value, {.eps = o.eps, .dtype = o.dtype});
  gate = Linear(width, heads * value, plain);
  out = Linear(heads * value, width, plain);
}

namespace {

// What the rule gives, normed, gated and mapped out.
Array gated(const GatedDeltaNet& net, const Array& o, const Array& x, Here where) {
  const Dims split_heads = {x.dim(0), x.dim(1), net.heads, -1};
  const Array gates = silu(reshape(net.gate(x, where), split_heads, where), where);
  const Array y = mul(net.norm(o, where), gates, where);
  return net.out(reshape(y, {x.dim(0), x.dim(1), -1}, where), where);
}

}  // namespace

Array GatedDeltaNet::operator()(const Array& x, Here where) const {
  const Dims split_heads = {x.dim(0), x.dim(1), heads, -1};
  const auto in_heads = [&](const Linear& map, const Conv1d& conv) {
    return reshape(with_past(conv, map(x, where), where), split_heads, where);
  };
  const Array queries = normalize(in_heads(q, q_conv), -1, 1e-6, where);
  const Array keys = normalize(in_heads(k, k_conv), -1, 1e-6, where);
  const Array g = neg(mul(exp(a_log, where), softplus(decay(x, where), where), where), where);
  const Array o =
      gated_delta_net(queries, keys, in_heads(v, v_conv), g, sigmoid(beta(x, where), where),
                      op::GatedDeltaNet{.state_size = queries.dim(3)}, where);
  return gated(*this, o, x, where);
}

GatedDeltaState GatedDeltaNet::make_state(std::int64_t rows) const {
  const DType dtype = q_conv.w.dtype();
  const auto past = [&](const Conv1d& conv) {
    return zeros({rows, conv.w.dim(2).value() - 1, conv.w.dim(0).value()}, {.dtype = dtype});
  };
  const Dims s = {rows, heads, k_conv.w.dim(0).value() / heads, v_conv.w.dim(0).value() / heads};
  return {past(q_conv), past(k_conv), past(v_conv),
          zeros(s, {.dtype = dtype == DType::F64 ? dtype : DType::F32})};
}

std::pair<Array, GatedDeltaState> GatedDeltaNet::advance(const Array& x,
                                                         const GatedDeltaState& before,
                                                         const StepPlaces& at, Here where) const {
  const Dims split_heads = {x.dim(0), x.dim(1), heads, -1};
  GatedDeltaState after;
  const auto in_heads = [&](const Linear& map, const Conv1d& conv, const Array& past,
                            Array& behind) {
    const auto [y, rest] = step_with_past(conv, map(x, where), past, at, where);
    behind = rest;
    return reshape(y, split_heads, where);
  };
  const Array queries = normalize(in_heads(q, q_conv, before.q, after.q), -1, 1e-6, where);
  const Array keys = normalize(in_heads(k, k_conv, before.k, after.k), -1, 1e-6, where);
  const Array values = in_heads(v, v_conv, before.v, after.v);
  // Nothing is forgotten and nothing learnt at places of padding.
  const Array counts = cast(counting(x, at, where), x.dtype(), where);
  const Array g = neg(mul(exp(a_log, where), softplus(decay(x, where), where), where), where);
  const std::int64_t width = queries.dim(3).value();
  const auto [o, s] = lift(
      [&](Value in_q, Value in_k, Value in_v, Value in_g, Value in_beta, Value state) {
        const WithState r = gated_delta_net_carry(in_q, in_k, in_v, in_g, in_beta, state, width);
        return std::pair{r.out, r.state};
      },
      queries, keys, values, mul(g, counts, where),
      mul(sigmoid(beta(x, where), where), counts, where), before.s);
  after.s = s;
  return {gated(*this, o, x, where), after};
}

}  // namespace ricci::nn
