// Fourier transforms as calls; frames as views that overlap.
#include "rule/tables/lower_rules.h"

namespace ricci::rule {
namespace {

using Of = loop::FourierTransform::Of;

// `n` numbers along an axis of `dims`.
Lowering fourier(Of of, std::int64_t n, const StaticDims& dims, Axis axis, bool inverse,
                 FftNorm norm) {
  const loop::AxisSplit split = loop::split_at(dims, axis.index());
  return as_call(loop::FourierTransform{.of = of,
                                        .batch = split.outer,
                                        .length = n,
                                        .inner = split.inner,
                                        .inverse = inverse,
                                        .scale = n == 0 ? 1 : fft_scale(norm, inverse, n)});
}

}  // namespace

Lowering lower(const op::Fft& op, const LowerContext& c) {
  const std::int64_t size = c.result[op.axis.index()];
  if (is_complex(c.dtypes[0])) {
    return fourier(Of::Complex, size, c.result, op.axis, op.inverse, op.norm);
  }
  return fourier(Of::Blocks, size / 2, c.result, op.axis, op.inverse, op.norm);
}

// Of a length of its own it is written out.
Lowering lower(const op::Rfft& op, const LowerContext& c) {
  if (op.n) return {};
  const std::int64_t n = c.operands[0][op.axis.index()];
  return fourier(Of::RealToHalf, n, c.operands[0], op.axis, false, op.norm);
}

Lowering lower(const op::Irfft& op, const LowerContext& c) {
  return fourier(Of::HalfToReal, op.n.value(), c.result, op.axis, true, op.norm);
}

Lowering lower(const op::Frame&, const LowerContext&) {
  return {.form = Lowering::Form::View,
          .view = [](const Node& node, const LowerContext&,
                     const loop::Layout& x) -> std::optional<loop::Layout> {
            const auto& op = *node.op.as<op::Frame>();
            const std::size_t a = op.axis.index();
            loop::Layout out = x;
            out.strides.insert(out.strides.begin() + static_cast<std::ptrdiff_t>(a),
                               op.hop * x.strides[a]);
            return out;
          }};
}

}  // namespace ricci::rule
