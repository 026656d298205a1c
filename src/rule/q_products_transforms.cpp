// Derivatives of products of codes, straight through the rounding, and their batches.
#include <array>

#include "rule/code_products.h"
#include "rule/derivative_parts.h"
#include "rule/quant_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/jvp_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

// q - zero point in f32, with a derivative.
Value centred(Value q, const std::vector<std::int64_t>& zeros, std::size_t axis) {
  op::Dequantize op{.zero_points = zeros};
  if (zeros.size() > 1) {
    op.axis = Axis(static_cast<std::int64_t>(axis));
    op.scales.assign(zeros.size(), 1.0);
  }
  return dequantize(q, op);
}
Value centred(Value q, std::int64_t zero) { return centred(q, std::vector{zero}, 0); }

// v·mult along the axis of columns; where results saturate and that is asked for, 0.
template <class O>
Value rescaled(const O& op, Value v, std::size_t axis, std::span<const Value> operands) {
  if (op.to == DType::I32) return v;
  std::vector<double> numbers;
  for (const Real& m : op.mult) numbers.push_back(m.value);
  std::optional<Axis> along;
  if (numbers.size() > 1) along = Axis(static_cast<std::int64_t>(axis));
  v = v * per_channel(v.graph(), numbers, v.dtype(), along, v.rank());
  if (!op.clip) return v;
  // [int-op-clip-ste] the sums once more, as the kernel rounds them
  Value sums = exact_sums(op, operands[0], operands[1]);
  if (operands.size() == 3) {
    Value bias = cast_to(operands[2], DType::F64);
    if (bias.rank() == 1 && axis + 1 != sums.rank()) {
      bias = reshape_to(bias, {bias.dims()[0], 1, 1});
    }
    sums = sums + bias;
  }
  const Value code = unclamped_codes(op, sums, axis);
  const CodeRange range = clamped_range(op);
  const Value inside = logical_and(ge(code, static_cast<double>(range.low)),
                                   le(code, static_cast<double>(range.high)));
  return where(inside, v, zero_like(v));
}

// [.., m, n] → [Π.. · m, n]
Value merged_to_rows(Value v) {
  Dim rows = 1;
  for (std::size_t i = 0; i + 1 < v.rank(); ++i) rows = rows * v.dims()[i];
  return reshape_to(v, {rows, v.dims().back()});
}

}  // namespace

// [int-op-float-grads] with u = g·mult: dx = u·(w - w_zp)ᵀ, dw = (x - x_zp)ᵀ·u, dbias = Σ u
Cotangents vjp(const op::QMatmul& op, const VjpContext& c) {
  Cotangents out = c.none();
  const Value u = rescaled(op, c.cotangent(), c.cotangent().rank() - 1, c.operands());
  if (c.needs(0)) {
    const Value w = centred(c[1], op.w_zp, c[1].rank() - 1);
    out[0] = unbroadcast(matmul(u, transpose_last(w)), tangent_type(c[0].type()));
  }
  if (c.needs(1)) {
    const Value x = centred(c[0], op.x_zp);
    const bool shared = c[1].rank() == 2;
    out[1] = unbroadcast(
        matmul(transpose_last(shared ? merged_to_rows(x) : x), shared ? merged_to_rows(u) : u),
        tangent_type(c[1].type()));
  }
  if (c.size() == 3 && c.needs(2)) out[2] = unbroadcast(u, tangent_type(c[2].type()));
  return out;
}

// mult·(t_x·(w - w_zp) + (x - x_zp)·t_w + t_b)
Tangents jvp(const op::QMatmul& op, JvpContext& c) {
  Value t;
  if (c.live(0)) t = matmul(c.tangent(0), centred(c[1], op.w_zp, c[1].rank() - 1));
  if (c.live(1)) t = sum_of(t, matmul(centred(c[0], op.x_zp), c.tangent(1)));
  if (c.size() == 3 && c.live(2)) {
    t = sum_of(t, broadcast_to(c.tangent(2), c.node().types[0].dims));
  }
  return {rescaled(op, t, t.rank() - 1, c.operands())};
}

BatchedValues batch(const op::QMatmul& op, const VmapContext& c) {
  const std::size_t rank = c.node().types[0].rank();
  std::vector<Value> operands{c.aligned(0, rank), c.aligned(1, rank)};
  if (c.size() == 3) {
    operands.push_back(c.aligned(2, rank));
    // A bias broadcasts to the result and cannot give it its batch.
    if (!c.batched(0) && !c.batched(1)) {
      Dims dims(rank + 1 - c.type(0).rank(), Dim(1));
      dims[0] = c.batch();
      dims.insert(dims.end(), c.type(0).dims.begin(), c.type(0).dims.end());
      operands[0] = broadcast_to(c[0], std::move(dims));
    }
  }
  return c.emit(Op(op), operands);
}

Cotangents vjp(const op::QConv2d& op, const VjpContext& c) {
  Cotangents out = c.none();
  const Value u = rescaled(op, c.cotangent(), 1, c.operands());
  const Dims& x = c[0].dims();
  const Dims& w = c[1].dims();
  if (c.needs(0)) {
    out[0] = conv2d_backward_input(u, centred(c[1], op.w_zp, 0),
                                   {.input_size = {x[2], x[3]},
                                    .stride = op.stride,
                                    .padding = op.padding,
                                    .dilation = op.dilation,
                                    .groups = op.groups});
  }
  if (c.needs(1)) {
    out[1] = conv2d_backward_weight(centred(c[0], op.x_zp), u,
                                    {.kernel_size = {w[2].value(), w[3].value()},
                                     .stride = op.stride,
                                     .padding = op.padding,
                                     .dilation = op.dilation,
                                     .groups = op.groups});
  }
  if (c.size() == 3 && c.needs(2)) out[2] = sum(u, {0, 2, 3});
  return out;
}

Tangents jvp(const op::QConv2d& op, JvpContext& c) {
  const op::Conv geometry{
      .stride = op.stride, .padding = op.padding, .dilation = op.dilation, .groups = op.groups};
  Value t;
  if (c.live(0)) t = conv(c.tangent(0), centred(c[1], op.w_zp, 0), geometry);
  if (c.live(1)) t = sum_of(t, conv(centred(c[0], op.x_zp), c.tangent(1), geometry));
  if (c.size() == 3 && c.live(2)) {
    const Value bias = reshape_to(c.tangent(2), {c[2].dims()[0], 1, 1});
    t = sum_of(t, broadcast_to(bias, c.node().types[0].dims));
  }
  return {rescaled(op, t, 1, c.operands())};
}

namespace {

// The lists of a convolution, once for each example.
template <class T>
std::vector<T> repeated(const std::vector<T>& list, std::int64_t times) {
  std::vector<T> out = list;
  for (std::int64_t i = 1; i < times && list.size() > 1; ++i) {
    out.insert(out.end(), list.begin(), list.end());
  }
  return out;
}

// Channels of examples behind each other, as groups of their own.
BatchedValues batch_as_groups(const op::QConv2d& op, const VmapContext& c) {
  const auto examples = c.batch().try_value();
  if (!examples) {
    throw UserError(ErrorCode::NeedsStaticDim,
                    "a batch of convolutions of codes with weights of their own has a known size",
                    "bind its symbol");
  }
  const Type& y = c.node().types[0];
  if (*examples == 0) return {filled(c.graph(), y.with(c.with_batch(y.dims)), 0)};
  op::QConv2d wide = op;
  wide.groups *= *examples;
  wide.w_zp = repeated(op.w_zp, *examples);
  wide.mult = repeated(op.mult, *examples);
  const Dims& x = c.type(0).dims;
  const Value images =
      reshape_to(move_axis(c.lifted(0), 0, 1), {x[0], c.batch() * x[1], x[2], x[3]});
  std::vector<Value> operands{images, c.folded(1)};
  if (c.size() == 3) operands.push_back(c.folded(2));
  const Value out = c.emit(Op(wide), operands)[0].value;
  return {
      move_axis(reshape_to(out, {y.dims[0], c.batch(), y.dims[1], y.dims[2], y.dims[3]}), 1, 0)};
}

}  // namespace

// Images of examples that share their weight are more images.
BatchedValues batch(const op::QConv2d& op, const VmapContext& c) {
  if (c.batched(1) || (c.size() == 3 && c.batched(2))) return batch_as_groups(op, c);
  std::vector<Value> operands{c.folded(0), c[1]};
  if (c.size() == 3) operands.push_back(c[2]);
  return {c.unfolded(c.emit(Op(op), operands)[0].value)};
}

}  // namespace ricci::rule
