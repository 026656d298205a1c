// Quantising ops written out in element-wise functions and reductions, which fuse.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ricci/build/reduce.h"
#include "ricci/quant/tiny_float.h"

#include "rule/derivative_parts.h"
#include "rule/quant_parts.h"
#include "rule/tables/expand_rules.h"

namespace ricci::rule {

Value per_channel(Graph& graph, const std::vector<double>& numbers, DType dtype,
                  const std::optional<Axis>& axis, std::size_t rank) {
  if (!axis) return graph.constant(Tensor::from_numbers<double>(Type{dtype, {}}, numbers));
  Dims dims(rank - axis->index(), Dim(1));
  dims[0] = Dim(static_cast<std::int64_t>(numbers.size()));
  return graph.constant(Tensor::from_numbers<double>(Type{dtype, dims}, numbers));
}

namespace {

// A float of 8 bits: how many bits its fraction has, and its range.
struct TinyFormat {
  int fraction;
  int least_exponent;
  int most_exponent;
  double largest;
  double not_a_number;  // its code
};
constexpr TinyFormat E4m3Format{3, -6, 8, 448, 0x7F};
constexpr TinyFormat E5m2Format{2, -14, 15, 57344, 0x7E};

// The code of v: with E the exponent, counted from the least one, it is E·2^f + rne(|v|·2^(f - E)),
// where a fraction that rounds up carries into the exponent.
Value tiny_code(Value v, CodeKind kind) {
  const bool e5 = kind == CodeKind::E5m2;
  const TinyFormat f = e5 ? E5m2Format : E4m3Format;
  const Value size = min(abs(v), f.largest);
  Value exponent = scalar_like(v, 0);
  Value unit = scalar_like(v, std::ldexp(1.0, f.fraction - f.least_exponent));
  for (int e = f.least_exponent + 1; e <= f.most_exponent; ++e) {
    const Value reached = ge(size, std::ldexp(1.0, e));
    exponent = exponent + where(reached, scalar_like(v, 1), scalar_like(v, 0));
    unit = unit * where(reached, scalar_like(v, 0.5), scalar_like(v, 1));
  }
  Value code = exponent * std::ldexp(1.0, f.fraction) + round(size * unit);
  if (e5) {
    const Value infinite = gt(abs(v), std::numeric_limits<float>::max());
    code = where(infinite, scalar_like(v, 0x7C), code);
  }
  code = where(is_nan(v), scalar_like(v, f.not_a_number), code);
  // 1/v tells -0 from 0. A NaN's sign is not looked at.
  const Value negative = logical_or(lt(v, 0.0), lt(reciprocal(v), 0.0));
  return code + where(negative, scalar_like(v, 128), scalar_like(v, 0));
}

Value tiny_values(Graph& graph, CodeKind kind) {
  std::vector<double> values;
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    values.push_back(kind == CodeKind::E4m3 ? quant::fp8_e4m3_value(byte)
                                            : quant::fp8_e5m2_value(byte));
  }
  return graph.constant(Tensor::from_numbers<double>(f32({256}), values));
}

Value shared_extreme(ReduceKind kind, Value x, const Axes& axes) {
  return axes.empty() ? x : reduce(x, {.op = kind, .axes = axes, .keep_dim = true});
}

// decay·state + (1 - decay)·now, where something was seen before
Value running(const op::FakeQuantize& op, Value state, Value now, Value seen) {
  return where(seen, state * op.decay.value + now * (1 - op.decay.value), now);
}

// Lows and highs to scale and zero point.
void set_range(FakeScale& out, Value low, Value high, std::int64_t bits) {
  const double last = last_code(bits);
  out.scale = max((high - low) / last, LeastScale);
  out.zero = clamped(round(-low / out.scale), 0, last);
}

// Row r of ranges [2, …], put where scales broadcast.
Value range_row(Value ranges, std::int64_t r, const ScaleSharing& sharing) {
  return reshape_to(narrow(ranges, {.axis = 0, .start = r, .len = 1}), sharing.kept);
}

FakeScale asymmetric_scale(const op::FakeQuantize& op, Value x, Value state, ScaleSharing sharing) {
  FakeScale out{std::move(sharing), {}, {}, {}};
  const ScaleSharing& s = out.sharing;
  Value low;
  Value high;
  if (op.scale_mode != ScaleMode::Fixed) {
    low = min(shared_extreme(ReduceKind::Min, x, s.shared), 0.0);
    high = max(shared_extreme(ReduceKind::Max, x, s.shared), 0.0);
  }
  if (state.valid()) {
    const Value old_low = range_row(state, 0, s);
    const Value old_high = range_row(state, 1, s);
    const bool fixed = op.scale_mode == ScaleMode::Fixed;
    const Value seen = gt(old_high, old_low);
    low = fixed ? old_low : running(op, old_low, low, seen);
    high = fixed ? old_high : running(op, old_high, high, seen);
  }
  set_range(out, low, high, op.bits);
  Dims row = s.scales;
  row.insert(row.begin(), Dim(1));
  out.state = concat({reshape_to(low, row), reshape_to(high, row)}, {.axis = 0});
  return out;
}

}  // namespace

FakeScale fake_scale(const op::FakeQuantize& op, Value x, Value state) {
  ScaleSharing sharing = scale_sharing(x.dims(), op.axis, op.group).value();
  const Value split = reshape_to(x, sharing.split);
  if (op.asymmetric) return asymmetric_scale(op, split, state, std::move(sharing));
  Value scale = state.valid() ? reshape_to(state, sharing.kept) : Value();
  if (op.scale_mode != ScaleMode::Fixed) {
    // At least 0, for values that are none.
    const Value largest = max(shared_extreme(ReduceKind::Max, abs(split), sharing.shared), 0.0);
    const Value now = largest / largest_code(op.bits);
    scale = scale.valid() ? running(op, scale, now, gt(scale, 0.0)) : now;
  }
  scale = max(scale, LeastScale);
  const Value as_operand = reshape_to(scale, sharing.scales);
  return {std::move(sharing), scale, {}, as_operand};
}

FakeScale fake_scale(const op::FakeQuantizeBackward& op, const Dims& x, Value given) {
  FakeScale out{scale_sharing(x, op.axis, op.group).value(), {}, {}, given};
  if (op.asymmetric) {
    set_range(out, range_row(given, 0, out.sharing), range_row(given, 1, out.sharing), op.bits);
  } else {
    out.scale = max(reshape_to(given, out.sharing.kept), LeastScale);
  }
  return out;
}

LsqSlopes lsq_slopes(Value x, Value scale, std::int64_t bits, const std::optional<Axis>& axis) {
  LsqSlopes out{scale_sharing(x.dims(), axis, std::nullopt).value(), {}, {}};
  const double q = largest_code(bits);
  const Value z = x / max(reshape_to(scale, out.sharing.kept), LeastScale);
  out.inside = le(abs(z), q);
  out.by_scale = where(out.inside, stop_gradient(round(z)) - z, sign(z) * q);
  return out;
}

Value lsq_grad_factor(Value x, const ScaleSharing& sharing, std::int64_t bits) {
  Dim each = 1;
  for (const Axis a : sharing.shared) each = each * x.dims()[a.index()];
  return rsqrt(max(size_as_number(each, x), 1.0) * largest_code(bits));
}

std::vector<Value> expand(const op::Quantize& op, const ExpandContext& c) {
  Value v = c[0] / scales_of(c.graph, op, c[0].dtype(), c[0].rank());
  const DType dtype = code_dtype_of(op.to);
  if (is_floating_code(op.to)) return {cast_to(tiny_code(cast_to(v, DType::F32), op.to), dtype)};
  v = round(v);
  if (const Value zero = zero_points_of(c.graph, op, v.dtype(), v.rank()); zero.valid())
    v = v + zero;
  const CodeRange range = range_of(op.to);
  return {
      cast_to(clamped(v, static_cast<double>(range.low), static_cast<double>(range.high)), dtype)};
}

std::vector<Value> expand(const op::Dequantize& op, const ExpandContext& c) {
  const DType wide = op.to == DType::F64 ? DType::F64 : DType::F32;
  Value v;
  if (op.from && is_floating_code(*op.from)) {
    const Value table = cast_to(tiny_values(c.graph, *op.from), wide);
    v = gather(table, cast_to(c[0], DType::I32), {.axis = 0});
  } else {
    v = cast_to(c[0], wide);
  }
  if (const Value zero = zero_points_of(c.graph, op, wide, v.rank()); zero.valid()) v = v - zero;
  return {v * scales_of(c.graph, op, DType::F32 == wide ? wide : DType::F64, v.rank())};
}

std::vector<Value> expand(const op::FakeQuantize& op, const ExpandContext& c) {
  const FakeScale s = fake_scale(op, c[0], c.operands.size() > 1 ? c[1] : Value());
  Value v = round(reshape_to(c[0], s.sharing.split) / s.scale);
  const double q = largest_code(op.bits);
  v = op.asymmetric ? clamped(v + s.zero, 0, last_code(op.bits)) - s.zero : clamped(v, -q, q);
  std::vector<Value> out{reshape_to(v * s.scale, c[0].dims()), {}};
  if (c.node.wanted[1]) out[1] = s.state;
  return out;
}

std::vector<Value> expand(const op::FakeQuantizeBackward& op, const ExpandContext& c) {
  const Value dy = c[2];
  if (op.ste == SteKind::Identity) return {dy};
  const FakeScale s = fake_scale(op, c[0].dims(), stop_gradient(c[1]));
  const Value x = reshape_to(c[0], s.sharing.split);
  const Value g = reshape_to(dy, s.sharing.split);
  const double q = largest_code(op.bits);
  Value dx;
  switch (op.ste) {
    case SteKind::Identity: break;
    case SteKind::ClippedIdentity: {
      const Value inside = op.asymmetric
                               ? logical_and(ge(x, -s.zero * s.scale),
                                             le(x, (last_code(op.bits) - s.zero) * s.scale))
                               : le(abs(x), s.scale * last_unclipped(op.bits, x.dtype()));
      dx = where(inside, g, zero_like(g));
      break;
    }
    case SteKind::Tanh: {
      const Value t = tanh(x / s.scale);
      dx = g * (1.0 - t * t);
      break;
    }
    case SteKind::HardTanh: dx = g * max(1.0 - abs(x / (s.scale * q)), 0.0); break;
  }
  return {reshape_to(dx, c[0].dims())};
}

std::vector<Value> expand(const op::FakeQuantizeLsq& op, const ExpandContext& c) {
  const ScaleSharing sharing = scale_sharing(c[0].dims(), op.axis, std::nullopt).value();
  const Value s = max(reshape_to(c[1], sharing.kept), LeastScale);
  const double q = largest_code(op.bits);
  return {clamped(round(c[0] / s), -q, q) * s};
}

std::vector<Value> expand(const op::FakeQuantizeLsqBackward& op, const ExpandContext& c) {
  const LsqSlopes slopes = lsq_slopes(c[0], c[1], op.bits, op.axis);
  const Value dy = c[2];
  std::vector<Value> out(2);
  if (c.node.wanted[0]) out[0] = where(slopes.inside, dy, zero_like(dy));
  if (c.node.wanted[1]) {
    Value d = slopes.by_scale * dy;
    if (!slopes.sharing.shared.empty()) d = sum(d, slopes.sharing.shared);
    d = reshape_to(d, c[1].dims());
    out[1] = op.grad_scale ? d * lsq_grad_factor(c[0], slopes.sharing, op.bits) : d;
  }
  return out;
}

}  // namespace ricci::rule
