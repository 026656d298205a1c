// Products of codes: exact sums, rounded once.
#include <algorithm>
#include <array>
#include <cmath>

#include "ricci/op/quant.h"

#include "op/code_range.h"
#include "rule/code_products.h"
#include "rule/tables/eval_rules.h"
#include "rule/tables/lower_rules.h"

namespace ricci::rule {
namespace {

// The entry for a column, or the one for all.
template <class T>
const T& entry(const std::vector<T>& list, std::int64_t column) {
  return list[list.size() == 1 ? 0 : static_cast<std::size_t>(column)];
}

// clamp(rne(acc·mult) + out_zp)
template <class O>
std::int64_t as_code(const O& op, std::int64_t sum, std::int64_t column) {
  if (op.to == DType::I32) return sum;
  const CodeRange range = clamped_range(op);
  const double scaled = static_cast<double>(sum) * entry(op.mult, column).value;
  const double code = std::nearbyint(scaled) + static_cast<double>(op.out_zp);
  return static_cast<std::int64_t>(
      std::clamp(code, static_cast<double>(range.low), static_cast<double>(range.high)));
}

template <class O>
loop::Rescaling rescaling(const O& op) {
  loop::Rescaling out{.x_zero = op.x_zp, .w_zeros = op.w_zp, .out_zero = op.out_zp};
  for (const Real& m : op.mult) out.factors.push_back(m.value);
  const CodeRange range = clamped_range(op);
  out.low = range.low;
  out.high = range.high;
  return out;
}

}  // namespace

// out[.., m, n] = clamp(rne(mult_n (bias_n + Σ_k (x - x_zp)(w - w_zp_n))) + out_zp)
void eval(const op::QMatmul& op, EvalContext& c) {
  const IntNd x = c.numbers<std::int64_t>(0);
  const IntNd w = c.numbers<std::int64_t>(1);
  const IntNd bias = c.operands() == 3 ? c.numbers<std::int64_t>(2) : IntNd(StaticDims{});
  IntNd out(c.result_dims(0));
  const std::size_t rank = out.dims.size();
  for_each_index(out.dims, [&](const StaticDims& index) {
    StaticDims ix = index;
    StaticDims iw = index;
    const std::int64_t column = index[rank - 1];
    std::int64_t total = bias.at(index);
    for (std::int64_t k = 0; k < x.dims.back(); ++k) {
      ix[rank - 1] = k;
      iw[rank - 2] = k;
      total += (x.at(ix) - op.x_zp) * (w.at(iw) - entry(op.w_zp, column));
    }
    out.at(index) = as_code(op, total, column);
  });
  c.give(0, out);
}

// The same over the taps of every window that lie inside the image.
void eval(const op::QConv2d& op, EvalContext& c) {
  const IntNd x = c.numbers<std::int64_t>(0);
  const IntNd w = c.numbers<std::int64_t>(1);
  const IntNd bias = c.operands() == 3 ? c.numbers<std::int64_t>(2) : IntNd(StaticDims{});
  const std::int64_t group_outputs = w.dims[0] / op.groups;
  IntNd out(c.result_dims(0));
  for_each_index(out.dims, [&](const StaticDims& at) {
    const std::int64_t o = at[1];
    std::int64_t total = bias.at({o});
    for_each_index({w.dims[1], w.dims[2], w.dims[3]}, [&](const StaticDims& tap) {
      const std::int64_t row = at[2] * op.stride[0] + tap[1] * op.dilation[0] - op.padding[0];
      const std::int64_t column = at[3] * op.stride[1] + tap[2] * op.dilation[1] - op.padding[1];
      if (row < 0 || row >= x.dims[2] || column < 0 || column >= x.dims[3]) return;
      const std::int64_t channel = o / group_outputs * w.dims[1] + tap[0];
      total += (x.at({at[0], channel, row, column}) - op.x_zp) *
               (w.at({o, tap[0], tap[1], tap[2]}) - entry(op.w_zp, o));
    });
    out.at(at) = as_code(op, total, o);
  });
  c.give(0, out);
}

// A batch of products that share w is one of more rows. One where every x has a w of its own is a
// batch; others are made of such ones before (`plain_code_product`).
Lowering lower(const op::QMatmul& op, const LowerContext& c) {
  if (!is_plain_code_product(c.operands)) return {};
  const StaticDims& x = c.operands[0];
  const StaticDims& w = c.operands[1];
  const std::size_t leading = w.size() - 2;
  loop::IntegerProduct product{
      .rescaling = rescaling(op), .depth = w[leading], .columns = w[leading + 1]};
  product.batch = loop::split_at(w, leading).outer;
  product.rows = leading == 0 ? loop::split_at(x, x.size() - 1).outer : x[leading];
  product.dtype = op.to;
  return as_call(std::move(product));
}

Lowering lower(const op::QConv2d& op, const LowerContext& c) {
  const StaticDims& x = c.operands[0];
  const StaticDims& w = c.operands[1];
  return as_call(
      loop::IntegerConvolution{.rescaling = rescaling(op),
                               .geometry = {.dtype = op.to,
                                            .images = x[0],
                                            .channels_in = x[1],
                                            .channels_out = w[0],
                                            .groups = op.groups,
                                            .size_in = {x[2], x[3]},
                                            .size_out = {c.result[2], c.result[3]},
                                            .kernel = {w[2], w[3]},
                                            .stride = {op.stride[0], op.stride[1]},
                                            .padding = {op.padding[0], op.padding[1]},
                                            .dilation = {op.dilation[0], op.dilation[1]}}});
}

}  // namespace ricci::rule
