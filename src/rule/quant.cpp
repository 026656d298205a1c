// Codes, and rounding to what codes can say.
#include "ricci/op/quant.h"

#include <algorithm>
#include <cmath>

#include "ricci/quant/tiny_float.h"

#include "op/code_range.h"
#include "rule/code_rounding.h"
#include "rule/quant_parts.h"
#include "rule/tables/eval_rules.h"

namespace ricci::rule {
namespace {

// The channel of a row-major position.
class Channels {
 public:
  Channels(const StaticDims& dims, const std::optional<Axis>& axis) {
    if (!axis) return;
    count_ = dims[axis->index()];
    for (std::size_t i = axis->index() + 1; i < dims.size(); ++i) inner_ *= dims[i];
  }
  [[nodiscard]] std::size_t of(std::size_t flat) const {
    return static_cast<std::size_t>(static_cast<std::int64_t>(flat) / inner_ % count_);
  }

 private:
  std::int64_t inner_ = 1;
  std::int64_t count_ = 1;
};

std::int64_t whole_code(double v, std::int64_t zero, const CodeRange& range) {
  if (std::isnan(v)) return 0;
  const double code = std::nearbyint(v) + static_cast<double>(zero);
  return static_cast<std::int64_t>(
      std::clamp(code, static_cast<double>(range.low), static_cast<double>(range.high)));
}

std::int64_t floating_code(float v, CodeKind kind) {
  return kind == CodeKind::E4m3 ? quant::to_fp8_e4m3(v) : quant::to_fp8_e5m2(v);
}
double floating_value(std::int64_t code, CodeKind kind) {
  const auto byte = static_cast<std::uint8_t>(code);
  return kind == CodeKind::E4m3 ? quant::fp8_e4m3_value(byte) : quant::fp8_e5m2_value(byte);
}

StaticDims static_dims(const Dims& dims) { return Type{DType::F64, dims}.static_dims(); }

}  // namespace

// q = clamp(rne(x / s_c) + z_c)
void eval(const op::Quantize& op, EvalContext& c) {
  const RealNd x = c.real(0);
  const Channels channels(x.dims, op.axis);
  const CodeRounding rounded(c.dtype(0));
  IntNd q(x.dims);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t at = channels.of(i);
    const double v = rounded(x.data[i] / rounded(op.scales[at].value));
    const std::int64_t zero = op.zero_points.empty() ? 0 : op.zero_points[at];
    q.data[i] = is_floating_code(op.to) ? floating_code(static_cast<float>(v), op.to)
                                        : whole_code(v, zero, range_of(op.to));
  }
  c.give(0, q);
}

// x = (q - z_c)·s_c
void eval(const op::Dequantize& op, EvalContext& c) {
  const IntNd q = c.numbers<std::int64_t>(0);
  const Channels channels(q.dims, op.axis);
  RealNd x(q.dims);
  for (std::size_t i = 0; i < q.size(); ++i) {
    const std::size_t at = channels.of(i);
    const std::int64_t zero = op.zero_points.empty() ? 0 : op.zero_points[at];
    const double code = op.from && is_floating_code(*op.from)
                            ? floating_value(q.data[i], *op.from)
                            : static_cast<double>(q.data[i] - zero);
    const double scale = op.scales[at].value;
    x.data[i] =
        code * (op.to == DType::F64 ? scale : static_cast<double>(static_cast<float>(scale)));
  }
  c.give(0, x);
}

namespace {

// Scale and zero point of codes that reach from low to high.
struct AffineScale {
  double scale;
  double zero;

  AffineScale(double low, double high, std::int64_t bits, const CodeRounding& rounded) {
    const double s = rounded(rounded(high - low) / last_code(bits));
    scale = std::isnan(s) ? s : std::max(s, rounded(LeastScale));
    zero = std::clamp(std::nearbyint(rounded(-low / scale)), 0.0, last_code(bits));
  }
};

// What fake quantisation needs to know of the values that share a scale.
class Ranges {
 public:
  Ranges(const op::FakeQuantize& op, EvalContext& c)
      : op_(op),
        rounded_(c.dtype(0)),
        sharing_(scale_sharing(c.node().types[0].dims, op.axis, op.group).value()),
        x_{static_dims(sharing_.split), c.real(0).data},
        low_(static_dims(sharing_.kept)),
        high_(static_dims(sharing_.kept)) {
    for_each_index(x_.dims, [&](const StaticDims& i) {
      const double v = op.asymmetric ? x_.at(i) : std::fabs(x_.at(i));
      low_.at(i) = std::isnan(v) || std::isnan(low_.at(i)) ? NAN : std::min(low_.at(i), v);
      high_.at(i) = std::isnan(v) || std::isnan(high_.at(i)) ? NAN : std::max(high_.at(i), v);
    });
    if (!op.asymmetric) {
      for (double& high : high_.data) high = rounded_(high / largest_code(op.bits));
    }
    if (c.operands() == 2) take_state(c.real(1));
    if (op.asymmetric) return;
    for (double& s : high_.data) s = std::isnan(s) ? s : std::max(s, rounded_(LeastScale));
  }

  [[nodiscard]] const RealNd& x() const { return x_; }
  // s = max |x| / q, or (hi - lo) / Q
  [[nodiscard]] AffineScale at(const StaticDims& i) const {
    AffineScale out(low_.at(i), high_.at(i), op_.bits, rounded_);
    if (!op_.asymmetric) {
      out.scale = high_.at(i);
      out.zero = 0;
    }
    return out;
  }
  // (clamp(rne(x / s) + z) - z)·s
  [[nodiscard]] double rounded_value(const StaticDims& i) const {
    const auto [s, z] = at(i);
    const double low = op_.asymmetric ? 0 : -largest_code(op_.bits);
    const double high = op_.asymmetric ? last_code(op_.bits) : largest_code(op_.bits);
    const double code = std::nearbyint(rounded_(x_.at(i) / s)) + z;
    return ((std::isnan(code) ? code : std::clamp(code, low, high)) - z) * s;
  }
  // Scales, or lows and highs.
  [[nodiscard]] std::vector<double> state() const {
    if (!op_.asymmetric) return high_.data;
    std::vector<double> both = low_.data;
    both.insert(both.end(), high_.data.begin(), high_.data.end());
    return both;
  }

 private:
  void take_state(const RealNd& state) {
    const std::size_t count = high_.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (!op_.asymmetric) {
        take(high_.data[i], state.data[i], state.data[i] > 0);
        continue;
      }
      const double lo = state.data[i];
      const double hi = state.data[count + i];
      take(low_.data[i], lo, hi > lo);
      take(high_.data[i], hi, hi > lo);
    }
  }
  // What was before, if anything was, and how far it is what is now.
  void take(double& now, double before, bool seen) const {
    const double decay = op_.decay.value;
    if (op_.scale_mode == ScaleMode::Fixed) {
      now = before;
    } else if (seen) {
      now = rounded_(rounded_(before * rounded_(decay)) + rounded_(now * rounded_(1 - decay)));
    }
  }

  const op::FakeQuantize& op_;
  CodeRounding rounded_;
  ScaleSharing sharing_;
  RealNd x_;
  RealNd low_;
  RealNd high_;  // scales, where codes are symmetric
};

}  // namespace

// y = (clamp(rne(x / s) + z) - z)·s
void eval(const op::FakeQuantize& op, EvalContext& c) {
  const Ranges ranges(op, c);
  RealNd y(c.result_dims(0));
  std::size_t at = 0;
  for_each_index(ranges.x().dims,
                 [&](const StaticDims& i) { y.data[at++] = ranges.rounded_value(i); });
  c.give(0, y);
  if (c.wanted(1)) c.give(1, RealNd{c.result_dims(1), ranges.state()});
}

// dx = dy·factor(x, s)
void eval(const op::FakeQuantizeBackward& op, EvalContext& c) {
  const ScaleSharing sharing = scale_sharing(c.node().types[0].dims, op.axis, op.group).value();
  const RealNd x{static_dims(sharing.split), c.real(0).data};
  const std::vector<double> given = c.real(1).data;
  const std::vector<double> dy = c.real(2).data;
  const StaticDims kept = static_dims(sharing.kept);
  const std::size_t count = static_cast<std::size_t>(count_elements(kept));
  const CodeRounding rounded(c.dtype(0));
  const double reach = rounded(last_unclipped(op.bits, c.dtype(0)));
  RealNd dx(c.result_dims(0));
  std::size_t at = 0;
  for_each_index(x.dims, [&](const StaticDims& i) {
    const auto group = static_cast<std::size_t>(flat_index(kept, i));
    const double v = x.at(i);
    double s = std::max(given[group], rounded(LeastScale));
    double high = rounded(reach * s);
    double low = -high;
    if (op.asymmetric) {
      const AffineScale affine(given[group], given[count + group], op.bits, rounded);
      s = affine.scale;
      low = rounded(-affine.zero * s);
      high = rounded((last_code(op.bits) - affine.zero) * s);
    }
    double factor = 1;
    switch (op.ste) {
      case SteKind::Identity: break;
      case SteKind::ClippedIdentity: factor = v >= low && v <= high ? 1 : 0; break;
      case SteKind::Tanh: factor = 1 - std::tanh(v / s) * std::tanh(v / s); break;
      case SteKind::HardTanh:
        factor = std::max(0.0, 1 - std::fabs(v / (largest_code(op.bits) * s)));
        break;
    }
    dx.data[at] = factor * dy[at];
    ++at;
  });
  c.give(0, dx);
}

// y = clamp(rne(x / s), -q, q)·s
void eval(const op::FakeQuantizeLsq& op, EvalContext& c) {
  const RealNd x = c.real(0);
  const RealNd scale = c.real(1);
  const Channels channels(x.dims, op.axis);
  const CodeRounding rounded(c.dtype(0));
  const double q = largest_code(op.bits);
  RealNd y(x.dims);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double s = std::max(scale.data[channels.of(i)], rounded(LeastScale));
    const double code = std::nearbyint(rounded(x.data[i] / s));
    y.data[i] = (std::isnan(code) ? code : std::clamp(code, -q, q)) * s;
  }
  c.give(0, y);
}

// dx = dy where |z| ≤ q;  dscale_c = g Σ ψ(z)·dy, g = 1 or 1/√(N·q)
void eval(const op::FakeQuantizeLsqBackward& op, EvalContext& c) {
  const RealNd x = c.real(0);
  const RealNd scale = c.real(1);
  const RealNd dy = c.real(2);
  const Channels channels(x.dims, op.axis);
  const CodeRounding rounded(c.dtype(0));
  const double q = largest_code(op.bits);
  RealNd dx(x.dims);
  RealNd dscale(scale.dims);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t at = channels.of(i);
    const double z = rounded(x.data[i] / std::max(scale.data[at], rounded(LeastScale)));
    const bool inside = std::fabs(z) <= q;
    if (inside) dx.data[i] = dy.data[i];
    const double outside = std::isnan(z) ? z : std::copysign(q, z);
    dscale.data[at] += (inside ? std::nearbyint(z) - z : outside) * dy.data[i];
  }
  if (op.grad_scale) {
    const double each =
        static_cast<double>(x.size()) / static_cast<double>(std::max<std::size_t>(scale.size(), 1));
    for (double& d : dscale.data) d *= 1 / std::sqrt(std::max(each, 1.0) * q);
  }
  if (c.wanted(0)) c.give(0, dx);
  if (c.wanted(1)) c.give(1, dscale);
}

}  // namespace ricci::rule
