// Derivatives of quantising ops, by definition: what rounding lets pass. Scales count as constants
// but where they are learned.
#include <array>

#include "rule/derivative_parts.h"
#include "rule/quant_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/jvp_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

// Where a code is not at the end of its range.
Value not_saturated(const op::Quantize& op, Value x) {
  const bool small = is_small_float(x.dtype());
  const Value wide = small ? cast_to(x, DType::F32) : x;
  Value v = wide / scales_of(x.graph(), op, wide.dtype(), x.rank());
  if (is_floating_code(op.to)) return le(abs(v), op.to == CodeKind::E4m3 ? 448.0 : 57344.0);
  v = round(v);
  if (const Value zero = zero_points_of(x.graph(), op, v.dtype(), v.rank()); zero.valid()) {
    v = v + zero;
  }
  const CodeRange range = range_of(op.to);
  return logical_and(ge(v, static_cast<double>(range.low)), le(v, static_cast<double>(range.high)));
}

// t / s_c from one dtype to another. Scales are what f32 can say: smaller floats may have 0 in the
// place of one.
Value per_step(const op::Quantize& op, Value x, Value t, DType to) {
  t = cast_to(t, widened(t.dtype()));
  t = t / scales_of(t.graph(), op, t.dtype(), t.rank());
  if (op.clip) t = where(not_saturated(op, x), t, zero_like(t));
  return cast_to(t, to);
}

}  // namespace

// [quantize-dtypes] dx = g / s_c, in x's dtype
Cotangents vjp(const op::Quantize& op, const VjpContext& c) {
  return {per_step(op, c[0], c.cotangent(), c[0].dtype())};
}
Tangents jvp(const op::Quantize& op, JvpContext& c) {
  return {per_step(op, c[0], c.tangent(0), DType::F32)};
}

// dq = g·s_c
Cotangents vjp(const op::Dequantize& op, const VjpContext& c) {
  const Value g = cast_to(c.cotangent(), widened(op.to));
  return {cast_to(g * scales_of(c.graph(), op, g.dtype(), g.rank()), DType::F32)};
}
Tangents jvp(const op::Dequantize& op, JvpContext& c) {
  const Value t = cast_to(c.tangent(0), widened(op.to));
  return {cast_to(t * scales_of(c.graph(), op, t.dtype(), t.rank()), op.to)};
}

namespace {

template <class O>
BatchedValues batch_channels(O op, const VmapContext& c) {
  if (op.axis) op.axis = shifted(*op.axis);
  return c.emit(Op(std::move(op)), std::array{c[0]});
}

}  // namespace

BatchedValues batch(const op::Quantize& op, const VmapContext& c) { return batch_channels(op, c); }
BatchedValues batch(const op::Dequantize& op, const VmapContext& c) {
  return batch_channels(op, c);
}

namespace {

// [fq-backward-scale] the factor at the scale that the values were rounded with
Value through_rounding(const op::FakeQuantize& op, Value x, Value state, Value v) {
  if (op.ste == SteKind::Identity) return v;
  const auto wide = [&](Value a) { return a.valid() ? cast_to(a, widened(a.dtype())) : a; };
  const FakeScale s = fake_scale(op, wide(stop_gradient(x)), wide(state));
  const Value out = fake_quantize_backward(wide(x), s.state, wide(v),
                                           {.bits = op.bits,
                                            .axis = op.axis,
                                            .group = op.group,
                                            .ste = op.ste,
                                            .asymmetric = op.asymmetric});
  return cast_to(out, x.dtype());
}

}  // namespace

Cotangents vjp(const op::FakeQuantize& op, const VjpContext& c) {
  Cotangents out = c.none();
  const Value g = c.cotangent(0);
  if (g.valid()) out[0] = through_rounding(op, c[0], c.size() > 1 ? c[1] : Value(), g);
  return out;
}
Tangents jvp(const op::FakeQuantize& op, JvpContext& c) {
  Tangents out = c.none();
  if (c.live(0)) out[0] = through_rounding(op, c[0], c.size() > 1 ? c[1] : Value(), c.tangent(0));
  return out;
}

Cotangents vjp(const op::FakeQuantizeLsq& op, const VjpContext& c) {
  return add_wanted(c.graph(),
                    Op(op::FakeQuantizeLsqBackward{
                        .bits = op.bits, .axis = op.axis, .grad_scale = op.grad_scale}),
                    std::array{c[0], c[1], c.cotangent()}, {c.needs(0), c.needs(1)});
}

// t_y = 1[|z| ≤ q]·t_x + ψ(z)·t_s
Tangents jvp(const op::FakeQuantizeLsq& op, JvpContext& c) {
  // As the expansion of the backward op has it: a count of elements is no number of f16.
  const DType dtype = c[0].dtype();
  const auto wide = [&](Value v) { return cast_to(v, widened(dtype)); };
  const Value x = wide(c[0]);
  const LsqSlopes slopes = lsq_slopes(x, wide(c[1]), op.bits, op.axis);
  Value t;
  if (c.live(0)) t = where(slopes.inside, wide(c.tangent(0)), zero_like(x));
  if (c.live(1)) {
    Value by_scale = slopes.by_scale * reshape_to(wide(c.tangent(1)), slopes.sharing.kept);
    if (op.grad_scale) by_scale = by_scale * lsq_grad_factor(x, slopes.sharing, op.bits);
    t = sum_of(t, by_scale);
  }
  return {cast_to(t, dtype)};
}

}  // namespace ricci::rule
