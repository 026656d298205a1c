// Generators and random numbers.
#include "ricci/op/generator.h"

#include "rule/draws.h"
#include "rule/tables/eval_rules.h"

namespace ricci::rule {
namespace {

// The node's stream; the key operand, if there is one, is operand `k`.
PhiloxStream stream_of(const EvalContext& c, std::optional<std::int64_t> key, std::int64_t op_seed,
                       std::size_t k) {
  check_internal(key.has_value(), "a random node has a key");
  auto sum = static_cast<std::uint64_t>(*key) + static_cast<std::uint64_t>(op_seed);
  if (k < c.operands()) {
    sum += static_cast<std::uint64_t>(c.tensor(k).numbers<std::int64_t>()[0]);
  }
  return {c.seed(), sum};
}

template <class Random>
PhiloxStream stream_of(const Random& op, const EvalContext& c) {
  return stream_of(c, op.key, op.op_seed, op.shape ? 0 : 1);
}

// Draws f(0), f(1), … in row-major order.
template <class F>
void give_draws(EvalContext& c, F&& f) {
  RealNd out(c.result_dims(0));
  for (std::size_t i = 0; i < out.size(); ++i) out.data[i] = f(static_cast<std::uint64_t>(i));
  c.give(0, out);
}

}  // namespace

// out[i_0, …, i_r] = i_axis
void eval(const op::Iota& op, EvalContext& c) {
  IntNd out(c.result_dims(0));
  for_each_index(out.dims,
                 [&](const StaticDims& index) { out.at(index) = index[op.axis.index()]; });
  c.give(0, out);
}

// out = dim
void eval(const op::DimSize& op, EvalContext& c) { c.give(0, IntNd({}, op.dim.value())); }

// out[i] = mean + scale·√(-2 ln u1)·cos(2π u2)
void eval(const op::RngNormal& op, EvalContext& c) {
  const PhiloxStream s = stream_of(op, c);
  const DType dtype = c.result_type(0).dtype;
  give_draws(c, [&](std::uint64_t i) { return draw_normal(s, dtype, i, op.mean, op.scale); });
}

// out[i] = low + u·(high - low)
void eval(const op::RngUniform& op, EvalContext& c) {
  const PhiloxStream s = stream_of(op, c);
  const DType dtype = c.result_type(0).dtype;
  give_draws(c, [&](std::uint64_t i) { return draw_uniform(s, dtype, i, op.low, op.high); });
}

// out[i] = word_i
void eval(const op::RngBits& op, EvalContext& c) {
  const PhiloxStream s = stream_of(c, op.key, 0, 0);
  IntNd out(c.result_dims(0));
  for (std::size_t i = 0; i < out.size(); ++i) out.data[i] = s.word(static_cast<std::uint64_t>(i));
  c.give(0, out);
}

}  // namespace ricci::rule
