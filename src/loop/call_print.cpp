// The text form of calls: a role and its geometry.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ricci/compiler/loop/call.h"
#include "ricci/support/text.h"

namespace ricci::loop {
namespace {

std::string_view word(Convolution::Of of) {
  switch (of) {
    case Convolution::Of::Image: return "image";
    case Convolution::Of::ImageGradient: return "image gradient";
    case Convolution::Of::WeightGradient: return "weight gradient";
  }
  return "?";
}

std::string_view word(Pooling::Of of) {
  switch (of) {
    case Pooling::Of::Windows: return "windows";
    case Pooling::Of::ImageGradient: return "image gradient";
    case Pooling::Of::Selection: return "selection";
  }
  return "?";
}

std::string_view word(Solve::Matrix matrix) {
  switch (matrix) {
    case Solve::Matrix::Dense: return "dense";
    case Solve::Matrix::Lower: return "lower";
    case Solve::Matrix::Upper: return "upper";
  }
  return "?";
}

std::string_view word(FourierTransform::Of of) {
  switch (of) {
    case FourierTransform::Of::Complex: return "complex";
    case FourierTransform::Of::Blocks: return "in blocks";
    case FourierTransform::Of::RealToHalf: return "real to half";
    case FourierTransform::Of::HalfToReal: return "half to real";
  }
  return "?";
}

std::string_view word(MatrixFunction::Of of) {
  switch (of) {
    case MatrixFunction::Of::Cholesky: return "cholesky";
    case MatrixFunction::Of::Lu: return "lu";
    case MatrixFunction::Of::Qr: return "qr";
    case MatrixFunction::Of::Eigh: return "eigh";
    case MatrixFunction::Of::Svd: return "svd";
    case MatrixFunction::Of::Exponential: return "exponential";
    case MatrixFunction::Of::Adjugate: return "adjugate";
  }
  return "?";
}

std::string_view word(Splats::Stage stage) {
  switch (stage) {
    case Splats::Stage::Prepare: return "prepare";
    case Splats::Stage::Rasterize: return "rasterize";
    case Splats::Stage::Render: return "render";
    case Splats::Stage::Backward: return "backward";
  }
  return "?";
}

std::string_view backward(Pass pass) { return pass == Pass::Backward ? "backward, " : ""; }
std::string_view when(bool holds, std::string_view text) { return holds ? text : ""; }
std::string pair(const HeightAndWidth& p) { return fmt::format("{} x {}", p[0], p[1]); }

// [outer x size x inner], along the middle one.
std::string along(const AxisSplit& s) {
  return fmt::format("{} x {} x {}", s.outer, s.size, s.inner);
}

std::string strides(const HeadStrides& s) {
  return fmt::format("({}, {}, {})", s.batch, s.position, s.head);
}

std::string text(const HostCall& /*call*/) { return {}; }

std::string text(const MatrixProduct& p) {
  std::string out = fmt::format("{} x {} by {} x {}", p.rows, p.depth, p.depth, p.columns);
  if (p.batch.empty()) return out;
  return out + fmt::format(", batch [{}] of axes [{}] and [{}]", fmt::join(p.batch, ", "),
                           fmt::join(p.a_batch, ", "), fmt::join(p.b_batch, ", "));
}

std::string text(const GroupedProduct& p) {
  return fmt::format("{}{} rows x {} picks of {} x {}, {} experts", backward(p.pass), p.rows,
                     p.picks, p.depth, p.columns, p.experts);
}

std::string text(const PackedProduct& p) {
  std::string out = fmt::format("{}{}, {} x {} by {} x {}", quant::to_string(p.scheme),
                                when(p.transposed, " transposed"), p.rows,
                                p.transposed ? p.columns : p.depth, p.depth, p.columns);
  if (p.int8_activations) out += ", int8 activations";
  if (p.experts > 0) out += fmt::format(", {} picks of {} experts", p.picks, p.experts);
  return out;
}

std::string text(const PackedDecoding& p) {
  return fmt::format("{}, {} of {} x {}", quant::to_string(p.scheme), p.matrices, p.depth,
                     p.columns);
}

std::string text(const Rescaling& r) {
  std::string out =
      fmt::format("zeros {}, [{}], {}", r.x_zero, fmt::join(r.w_zeros, ", "), r.out_zero);
  std::vector<std::string> factors;
  for (const double f : r.factors) factors.push_back(print_f64(f));
  return out + fmt::format(", factors [{}], {} to {}", fmt::join(factors, ", "), r.low, r.high);
}

std::string text(const IntegerProduct& p) {
  const std::string batch = p.batch == 1 ? "" : fmt::format("{} of ", p.batch);
  return fmt::format("{}{} x {} by {} x {}, {}", batch, p.rows, p.depth, p.depth, p.columns,
                     text(p.rescaling));
}

std::string text(const Convolution& c) {
  return fmt::format(
      "{}, {} images, {} x {} to {} x {}, kernel {}, stride {}, padding {}, dilation {}, {} groups",
      word(c.of), c.images, c.channels_in, pair(c.size_in), c.channels_out, pair(c.size_out),
      pair(c.kernel), pair(c.stride), pair(c.padding), pair(c.dilation), c.groups);
}

std::string text(const IntegerConvolution& c) {
  return fmt::format("{}, {}", text(c.geometry), text(c.rescaling));
}

std::string text(const Pooling& p) {
  return fmt::format(
      "{}, {}{}, {} planes, {} to {}, kernel {}, stride {}, padding {}", word(p.of),
      name_of(p.kind), when(p.kind == ReduceKind::Mean && p.count_padding, " padded"), p.planes,
      pair(p.size_in), pair(p.size_out), pair(p.kernel), pair(p.stride), pair(p.padding));
}

std::string mask_text(const Attention& a) {
  switch (a.mask.kind) {
    case MaskKind::Kind::None: return "";
    case MaskKind::Kind::Causal: return ", causal";
    case MaskKind::Kind::SlidingWindow: return fmt::format(", window {}", a.mask.window);
    case MaskKind::Kind::Custom:
    case MaskKind::Kind::Bias: break;
  }
  return fmt::format(", {} in operand {} strides ({})",
                     a.mask.kind == MaskKind::Kind::Bias ? "bias" : "mask", a.mask_operand,
                     fmt::join(a.mask_strides, ", "));
}

std::string text(const Attention& a) {
  std::string out = fmt::format("{}batch {}, {} queries, {} keys, {} of {} heads of {}, scale {}",
                                backward(a.pass), a.batch, a.queries, a.keys, a.heads, a.kv_heads,
                                a.width, print_f64(a.scale));
  if (a.cap.value != 0) out += fmt::format(", cap {}", print_f64(a.cap));
  out += mask_text(a);
  out += fmt::format(", q {}, k {}", strides(a.q), strides(a.k));
  if (a.value_width != a.width) {
    out += fmt::format(", values of {}, v {}, out {}", a.value_width, strides(a.v), strides(a.out));
  }
  if (a.lse_operand >= 0) out += fmt::format(", lse in operand {}", a.lse_operand);
  if (a.mean_operand >= 0) out += fmt::format(", mean in operand {}", a.mean_operand);
  return out;
}

std::string text(const Solve& s) {
  return fmt::format("{}{}{}, {} of {} x {}, {} columns{}", word(s.matrix),
                     when(s.transpose, " transposed"), when(s.unit, " unit"), s.systems, s.rows,
                     s.rows, s.columns, when(!s.has_columns, " without an axis"));
}

std::string text(const MatrixFunction& f) {
  return fmt::format("{}, {} of {} x {}", word(f.of), f.matrices, f.rows, f.columns);
}

std::string text(const Sort& s) {
  return fmt::format("{}, {} kept{}", along(s.x), s.kept, when(s.descending, ", descending"));
}
std::string text(const ArgReduce& a) {
  return fmt::format("{}, {}", along(a.x), a.largest ? "largest" : "smallest");
}
std::string text(const Cumulative& c) {
  return fmt::format("{}, {}{}{}", name_of(c.kind), along(c.x), when(c.exclusive, ", exclusive"),
                     when(c.from_end, ", from the end"));
}
std::string text(const Gather& g) {
  return fmt::format("{} of {}, axis {}{}", g.picked, along(g.table), g.axis,
                     when(g.each, ", each element"));
}
std::string text(const Scatter& s) {
  return fmt::format("{} to {}{}", s.added, along(s.out), when(s.each, ", each element"));
}
std::string text(const ScatterInto& s) {
  return fmt::format("{} {} to {}", name_of(s.kind), s.updates, along(s.out));
}
std::string text(const DynamicSlice& s) {
  return fmt::format("{} of {}, axis {}{}", s.length, s.size, s.axis,
                     when(s.replaces, ", replaced"));
}

std::string key_text(std::uint64_t key, std::int64_t operand) {
  if (operand < 0) return fmt::format("key {}", key);
  return fmt::format("key {} plus operand {}", key, operand);
}

std::string text(const Sample& s) {
  return fmt::format("{} rows of {}, top_k {}, top_p {}, temperature {}, {}", s.rows, s.width,
                     s.top_k, print_f64(s.top_p), print_f64(s.temperature),
                     key_text(s.key, s.key_operand));
}
std::string text(const SelectiveScan& s) {
  return fmt::format("{}batch {}, {} steps, {} channels of {}{}{}{}", backward(s.pass), s.batch,
                     s.steps, s.channels, s.states, when(s.own_rates, ", rates of each row's own"),
                     when(s.has_initial_state, ", from a state"),
                     when(s.has_final_cotangent, ", from a final cotangent"));
}
std::string text(const GatedDelta& d) {
  return fmt::format("{}batch {}, {} steps, {} of {} heads, {} x {}{}{}", backward(d.pass), d.batch,
                     d.steps, d.heads, d.key_heads, d.key_width, d.value_width,
                     when(d.has_initial_state, ", from a state"),
                     when(d.has_final_cotangent, ", from a final cotangent"));
}

std::string text(const FourierTransform& f) {
  return fmt::format("{}{}, {} x {} x {}, scale {}", word(f.of), when(f.inverse, " inverse"),
                     f.batch, f.length, f.inner, print_f64(f.scale));
}

std::string text(const Splats& s) {
  return fmt::format("{}{}, {} images {} x {} of {} splats{}, {} coefficients to band {}, {}, "
                     "{}{}, tiles of {}, {} "
                     "entries, radius {}, cutoff {}, {} steps, threshold {}, gamma {}",
                     word(s.stage), when(s.known, " from what is known"), s.batch, s.height,
                     s.width, s.count, when(s.lens, " through a lens"), s.coefficients, s.degree,
                     name_of(s.color_source), name_of(s.opacity_space),
                     when(s.view_from_splat, ", seen from splats"), s.tile_size, s.entries,
                     print_f64(s.radius_scale), print_f64(s.alpha_cutoff), s.max_steps,
                     print_f64(s.transmittance_threshold), print_f64(s.gamma));
}

}  // namespace

std::string to_string(const Call& call) {
  const std::string geometry = std::visit([](const auto& c) { return text(c); }, call);
  if (geometry.empty()) return std::string(role_of(call));
  return fmt::format("{} [{}]", role_of(call), geometry);
}

}  // namespace ricci::loop
