// Reverse rules and batching of transforms and frames; their forward rules follow from linearity.
#include "ricci/op/spectrum.h"

#include "rule/derivative_parts.h"
#include "rule/spectrum_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

// g times the factor of a transform, where the transposed transform has none of its own.
Value scaled(Value g, FftNorm norm, bool inverse, const Dim& n, double share = 1) {
  if (norm != FftNorm::Forward || !inverse) return g;
  if (n.is_static()) return g * (1 / (share * static_cast<double>(n.value())));
  return g / (size_as_number(n, g) * share);
}

// An orthonormal transform is so in both directions.
FftNorm transposed(FftNorm norm) {
  return norm == FftNorm::Ortho ? FftNorm::Ortho : FftNorm::Backward;
}

// Is a bin its own mirror image? bool, along an axis of `like` with the bins of n numbers.
Value is_own_mirror(Value like, Axis axis, const Dim& n) {
  Graph& graph = like.graph();
  const Dim& bins = like.dims()[axis.index()];
  const Value k = iota(graph, {.shape = {bins}, .axis = 0, .dtype = DType::I64});
  const Value edge = logical_or(eq(k, 0), eq(k + k, size_as_number(n, k)));
  Dims dims(like.rank(), Dim(1));
  dims[axis.index()] = bins;
  return reshape_to(edge, std::move(dims));
}

}  // namespace

Value resized(Value x, Axis axis, const Dim& size) {
  const Dim& now = x.dims()[axis.index()];
  if (now == size) return x;
  Dims high(x.rank(), Dim(0));
  high[axis.index()] = size - now;
  return pad(x, scalar_like(x, 0), {.low = Dims(x.rank(), Dim(0)), .high = high});
}

// The conjugate transpose of the matrix of roots has their conjugates.
Cotangents vjp(const op::Fft& op, const VjpContext& c) {
  const DType dtype = c[0].dtype();
  const double share = is_complex(dtype) ? 1 : 0.5;  // of the axis: a block
  Value g = cast_to(c.cotangent(), widened(dtype));
  g = scaled(g, op.norm, op.inverse, g.dims()[op.axis.index()], share);
  const Value dx = fft(g, {.axis = op.axis, .inverse = !op.inverse, .norm = transposed(op.norm)});
  return {cast_to(dx, dtype)};
}

// dx[j] = 2s · Re Σ_k g[k] · e^(+2πi·jk/n); irfft takes the bins with a mirror image twice.
Cotangents vjp(const op::Rfft& op, const VjpContext& c) {
  const Value x = c[0];
  const Value g = c.cotangent();
  const Dim& given = x.dims()[op.axis.index()];
  const Dim n = op.n.value_or(given);
  const Value once = where(is_own_mirror(g, op.axis, n), g + g, g);
  const Value dx = irfft(once, {.n = n, .axis = op.axis, .norm = transposed(op.norm)});
  return {cast_to(resized(dx, op.axis, given), x.dtype())};
}

// dx[k] = w_k/2 · s · Σ_j g[j] · e^(-2πi·jk/n)
Cotangents vjp(const op::Irfft& op, const VjpContext& c) {
  const Value g = scaled(c.cotangent(), op.norm, true, op.n);
  const Value bins = rfft(g, {.axis = op.axis, .norm = transposed(op.norm)});
  return {where(is_own_mirror(bins, op.axis, op.n), bins * 0.5, bins)};
}

Cotangents vjp(const op::Frame& op, const VjpContext& c) {
  const Value dx = overlap_add(c.cotangent(), {.hop = op.hop, .axis = op.axis});
  return {resized(dx, op.axis, c[0].dims()[op.axis.index()])};
}

Cotangents vjp(const op::OverlapAdd& op, const VjpContext& c) {
  const Dim& len = c[0].dims()[op.axis.index() + 1];
  return {frame(c.cotangent(), {.frame_len = len, .hop = op.hop, .axis = op.axis})};
}

BatchedValues batch(const op::Fft& op, const VmapContext& c) {
  return {fft(c[0], {.axis = shifted(op.axis), .inverse = op.inverse, .norm = op.norm})};
}
BatchedValues batch(const op::Rfft& op, const VmapContext& c) {
  return {rfft(c[0], {.n = op.n, .axis = shifted(op.axis), .norm = op.norm})};
}
BatchedValues batch(const op::Irfft& op, const VmapContext& c) {
  return {irfft(c[0], {.n = op.n, .axis = shifted(op.axis), .norm = op.norm})};
}
BatchedValues batch(const op::Frame& op, const VmapContext& c) {
  return {frame(c[0], {.frame_len = op.frame_len, .hop = op.hop, .axis = shifted(op.axis)})};
}
BatchedValues batch(const op::OverlapAdd& op, const VmapContext& c) {
  return {overlap_add(c[0], {.hop = op.hop, .axis = shifted(op.axis)})};
}

}  // namespace ricci::rule
