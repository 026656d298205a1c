// Quantisation: real numbers as codes of few bits and back, the same within floats for training,
// and products of codes. A code q with scale s and zero point z stands for (q - z)·s. Codes are
// integers that have a derivative: that of the number they stand for, in units of the scale, in
// f32.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ricci/op/conv.h"
#include "ricci/op/fields.h"

namespace ricci {

/// Which numbers a code can be: whole ones of so many bits, or floats of 8 bits. Codes of 4 bits
/// are kept in i8 and u8, one in each; `pack_nibbles` puts two into a byte.
enum class CodeKind : std::uint8_t { I8, U8, I16, I4, U4, E4m3, E5m2 };
constexpr auto enumerator_names(CodeKind) {
  return std::to_array<std::string_view>({"i8", "u8", "i16", "i4", "u4", "e4m3", "e5m2"});
}

/// What stands in for the derivative of rounding: how much of a cotangent passes.
enum class SteKind : std::uint8_t {
  Identity,         ///< all of it
  ClippedIdentity,  ///< all of it where x is in range, nothing elsewhere
  Tanh,             ///< 1 - tanh²(x/s)
  HardTanh,         ///< max(0, 1 - |x / (q_max·s)|)
};
constexpr auto enumerator_names(SteKind) {
  return std::to_array<std::string_view>({"identity", "clipped_identity", "tanh", "hard_tanh"});
}

/// Where scales come from: the values themselves, a running mean of those, or an operand.
enum class ScaleMode : std::uint8_t { PerBatch, Ema, Fixed };
constexpr auto enumerator_names(ScaleMode) {
  return std::to_array<std::string_view>({"per_batch", "ema", "fixed"});
}

/// The integer that such codes are kept in.
[[nodiscard]] DType code_dtype_of(CodeKind kind) noexcept;

}  // namespace ricci

namespace ricci::op {

/// Real numbers to codes.   q = clamp(rne(x / s_c) + z_c), c the channel: the index along `axis`
/// FP8 codes are rounded in their own format and have no zero point.
struct Quantize {
  std::optional<Axis> axis = {};               ///< absent: one channel
  std::vector<Real> scales = {1.0};            ///< one a channel
  std::vector<std::int64_t> zero_points = {};  ///< one a channel; none: all 0
  CodeKind to = CodeKind::I8;
  bool clip = false;

  static constexpr OpInfo info{
      .name = "quantize",
      .operands = "x",
      .results = "q",
      .traits = Trait::StraightThrough,
      .help = "real numbers as codes of few bits",
      .formula = "q = clamp(rne(x / scale_c) + zero_point_c); dx = dq / scale_c, straight through",
      .constraints =
          "c1 dtype: x is floating\n"
          "c2 attr: there is a scale for every channel, and a zero point or none at all\n"
          "c3 attr: scales are positive, and zero points are codes\n"
          "c4 attr: floating codes have no zero points",
      .codes = "q",
      .vjp = RuleSource::Written,
      .jvp = RuleSource::Written,
      .batch = RuleSource::Written};
  static void fields(auto& self, auto&& f) {
    f("axis", self.axis, "axis of the channels; absent: there is one");
    f("scales", self.scales, "what a step of the code is worth, per channel");
    f("zero_points", self.zero_points, "the code of 0, per channel; none: 0");
    f("to", self.to, "kind of code");
    f("clip", self.clip, "no derivative where the code saturates");
  }
  bool operator==(const Quantize&) const = default;
};

/// Codes to real numbers.   x = (q - z_c)·s_c
struct Dequantize {
  std::optional<Axis> axis = {};
  std::vector<Real> scales = {1.0};
  std::vector<std::int64_t> zero_points = {};
  std::optional<CodeKind> from = {};  ///< absent: the integers q holds
  DType to = DType::F32;

  static constexpr OpInfo info{
      .name = "dequantize",
      .operands = "q",
      .results = "x",
      .traits = Trait::StraightThrough,
      .help = "the real numbers that codes stand for",
      .formula = "x = (q - zero_point_c)·scale_c; dq = dx·scale_c, straight through",
      .constraints =
          "c1 dtype: q holds codes of its kind\n"
          "c2 attr: there is a scale for every channel, and a zero point or none at all\n"
          "c3 attr: scales are positive\n"
          "c4 attr: floating codes have no zero points\n"
          "c5 attr: the result is floating",
      .codes = "q",
      .vjp = RuleSource::Written,
      .jvp = RuleSource::Written,
      .batch = RuleSource::Written};
  static void fields(auto& self, auto&& f) {
    f("axis", self.axis, "axis of the channels; absent: there is one");
    f("scales", self.scales, "what a step of the code is worth, per channel");
    f("zero_points", self.zero_points, "the code of 0, per channel; none: 0");
    f("from", self.from, "kind of code; absent: the integers q holds");
    f("to", self.to, "dtype of the result");
  }
  bool operator==(const Dequantize&) const = default;
};

/// Rounds to what codes of `bits` bits can say and stays a float.
///   y = clamp(rne(x / s), -q, q)·s, q = 2^(bits - 1) - 1
/// A scale is for all of x, for an index along `axis`, or for `group` neighbours along `axis` in
/// every row for itself. Per batch s = max |x| / q over what shares it, at least 1e-12; `ema` takes
/// decay·state + (1 - decay)·s where the state is positive; `fixed` takes the state.
/// Asymmetric codes are 0 … Q = 2^bits - 1 over [lo, hi], which holds 0: s = (hi - lo)/Q,
/// z = rne(-lo / s), y = (clamp(rne(x / s) + z, 0, Q) - z)·s. Their state has two rows, lo and hi.
struct FakeQuantize {
  std::int64_t bits = 8;
  std::optional<Axis> axis = {};
  std::optional<std::int64_t> group = {};
  SteKind ste = SteKind::Identity;
  ScaleMode scale_mode = ScaleMode::PerBatch;
  Real decay = 0.9;
  bool asymmetric = false;

  static constexpr OpInfo info{
      .name = "fake_quantize",
      .operands = "x, state?",
      .results = "y, new_state?",
      .traits = Trait::StraightThrough,
      .help = "rounds to what a few bits can say, with a derivative for training",
      .formula = "y = clamp(rne(x / s), -q_max, q_max)·s, q_max = 2^(bits - 1) - 1; "
                 "dx = dy · (1; 1 where |x| ≤ q_max·s; 1 - tanh²(x/s); max(0, 1 - |x/(q_max·s)|))",
      .constraints = "c1 dtype: x and the state have one floating dtype\n"
                     "c2 attr: bits is between 2 and 16\n"
                     "c3 attr: a state is given exactly for ema and fixed\n"
                     "c4 attr: decay is between 0 and 1\n"
                     "c5 attr: a group needs an axis and divides its size\n"
                     "c6 shape: the state has a scale, or a range, for every channel or group",
      .no_gradient = "state",
      .vjp = RuleSource::Written,
      .jvp = RuleSource::Written};
  static void fields(auto& self, auto&& f) {
    f("bits", self.bits, "of a code, 2 to 16");
    f("axis", self.axis, "axis with scales of its own; absent: one scale");
    f("group", self.group, "neighbours along the axis that share a scale; absent: see axis");
    f("ste", self.ste, "what stands in for the derivative of rounding");
    f("scale_mode", self.scale_mode, "where scales come from");
    f("decay", self.decay, "what the running mean keeps of itself");
    f("asymmetric", self.asymmetric, "codes from 0 on, with a zero point");
  }
  bool operator==(const FakeQuantize&) const = default;
};

/// The derivative that stands in for that of fake_quantize, at the scale it used.
struct FakeQuantizeBackward {
  std::int64_t bits = 8;
  std::optional<Axis> axis = {};
  std::optional<std::int64_t> group = {};
  SteKind ste = SteKind::Identity;
  bool asymmetric = false;

  static constexpr OpInfo info{
      .name = "fake_quantize_backward",
      .operands = "x, scale, dy",
      .results = "dx",
      .help = "derivative of fake_quantize",
      .formula = "dx = dy · (1; 1 where |x| ≤ q_max·s; 1 - tanh²(x/s); max(0, 1 - |x/(q_max·s)|))",
      .constraints = "c1 dtype: all operands have one floating dtype\n"
                     "c2 attr: bits is between 2 and 16\n"
                     "c3 attr: a group needs an axis and divides its size\n"
                     "c4 shape: there is a scale, or a range, for every channel or group\n"
                     "c5 shape: dy has x's shape",
      .no_gradient = "scale"};
  static void fields(auto& self, auto&& f) {
    f("bits", self.bits, "of a code, 2 to 16");
    f("axis", self.axis, "axis with scales of its own; absent: one scale");
    f("group", self.group, "neighbours along the axis that share a scale; absent: see axis");
    f("ste", self.ste, "what stands in for the derivative of rounding");
    f("asymmetric", self.asymmetric, "codes from 0 on; scale holds ranges");
  }
  bool operator==(const FakeQuantizeBackward&) const = default;
};

/// fake_quantize with a scale that is learned.   y = clamp(rne(z), -q, q)·s, z = x/s
///   dy/dx = 1 where |z| ≤ q, else 0;  dy/ds = ψ(z) = rne(z) - z where |z| ≤ q, else sign(z)·q
/// `grad_scale` multiplies the derivative by the scale by 1/√(N·q), N elements having it.
struct FakeQuantizeLsq {
  std::int64_t bits = 8;
  std::optional<Axis> axis = {};
  bool grad_scale = false;

  static constexpr OpInfo info{
      .name = "fake_quantize_lsq",
      .operands = "x, scale",
      .results = "y",
      .traits = Trait::StraightThrough,
      .help = "rounds to what a few bits can say, at a scale that is learned",
      .formula =
          "y = clamp(rne(z), -q_max, q_max)·s, z = x/s, s = max(scale, 1e-12); dx = dy where "
          "|z| ≤ q_max, else 0; dscale = Σ ψ(z)·dy, ψ = rne(z) - z where |z| ≤ q_max, else "
          "sign(z)·q_max",
      .constraints = "c1 dtype: x and scale have one floating dtype\n"
                     "c2 attr: bits is between 2 and 16\n"
                     "c3 shape: scale is [x.dim(axis)], or [1] without an axis",
      .vjp = RuleSource::Written,
      .jvp = RuleSource::Written};
  static void fields(auto& self, auto&& f) {
    f("bits", self.bits, "of a code, 2 to 16");
    f("axis", self.axis, "axis with scales of its own; absent: one scale");
    f("grad_scale", self.grad_scale, "the scale's derivative is multiplied by 1/√(N·q_max)");
  }
  bool operator==(const FakeQuantizeLsq&) const = default;
};

/// Both derivatives of fake_quantize_lsq.
struct FakeQuantizeLsqBackward {
  std::int64_t bits = 8;
  std::optional<Axis> axis = {};
  bool grad_scale = false;

  static constexpr OpInfo info{
      .name = "fake_quantize_lsq_backward",
      .operands = "x, scale, dy",
      .results = "dx, dscale",
      .help = "derivative of fake_quantize_lsq",
      .formula = "z = x/s: dx = dy where |z| ≤ q_max, else 0; dscale_c = Σ ψ(z)·dy",
      .constraints = "c1 dtype: all operands have one floating dtype\n"
                     "c2 attr: bits is between 2 and 16\n"
                     "c3 shape: scale is [x.dim(axis)], or [1] without an axis\n"
                     "c4 shape: dy has x's shape"};
  static void fields(auto& self, auto&& f) {
    f("bits", self.bits, "of a code, 2 to 16");
    f("axis", self.axis, "axis with scales of its own; absent: one scale");
    f("grad_scale", self.grad_scale, "dscale is multiplied by 1/√(N·q_max)");
  }
  bool operator==(const FakeQuantizeLsqBackward&) const = default;
};

/// A product of codes, as a code.   acc = bias + Σ_k (x - x_zp)(w - w_zp), exactly;
///   out = clamp(rne(acc·mult) + out_zp, low, high), or acc itself, wrapped, when it is i32
/// Zero points of w and factors are one for all, or one for each column.
struct QMatmul {
  std::int64_t x_zp = 0;
  std::vector<std::int64_t> w_zp = {0};
  std::int64_t out_zp = 0;
  std::vector<Real> mult = {1.0};
  DType to = DType::I8;
  std::optional<std::int64_t> low = {};
  std::optional<std::int64_t> high = {};
  bool clip = false;

  static constexpr OpInfo info{
      .name = "q_matmul",
      .operands = "x, w, bias?",
      .results = "out",
      .traits = Trait::StraightThrough,
      .help = "a matrix product of codes",
      .formula = "x [.., M, K], w [.., K, N]: acc = bias + Σ_k (x_mk - x_zp)(w_kn - w_zp); "
                 "out = clamp(rne(acc·mult) + out_zp, low, high); straight through, "
                 "dx = (dout·mult)·(w - w_zp)ᵀ, dw = (x - x_zp)ᵀ·(dout·mult)",
      .constraints = "c1 shape: x and w are matrices, or batches of them that broadcast\n"
                     "c2 shape: inner sizes agree\n"
                     "c3 dtype: x is i8 or u8, w is i8 and the bias is i32\n"
                     "c4 shape: the bias broadcasts to the result\n"
                     "c5 attr: w_zp and mult have one entry, or one a column\n"
                     "c6 attr: the result is i8, u8 or i32\n"
                     "c7 attr: a result of i32 is not scaled, moved or clamped\n"
                     "c8 attr: zero points and the range lie within their dtypes",
      .codes = "x, w, bias, out"};
  static void fields(auto& self, auto&& f) {
    f("x_zp", self.x_zp, "the code of 0 in x");
    f("w_zp", self.w_zp, "the code of 0 in w: one, or one a column");
    f("out_zp", self.out_zp, "the code of 0 in the result");
    f("mult", self.mult, "x's scale times w's over the result's: one, or one a column");
    f("to", self.to, "dtype of the result: i8, u8, or i32 for the sums themselves");
    f("low", self.low, "least code of the result; absent: its dtype's");
    f("high", self.high, "largest code of the result; absent: its dtype's");
    f("clip", self.clip, "no derivative where the result saturates");
  }
  bool operator==(const QMatmul&) const = default;
};

/// A convolution of codes, as a code. What lies outside the image is x_zp: it takes no part.
struct QConv2d {
  HeightWidth stride = {1, 1};
  HeightWidth padding = {0, 0};
  HeightWidth dilation = {1, 1};
  std::int64_t groups = 1;
  std::int64_t x_zp = 0;
  std::vector<std::int64_t> w_zp = {0};
  std::int64_t out_zp = 0;
  std::vector<Real> mult = {1.0};
  DType to = DType::I8;
  std::optional<std::int64_t> low = {};
  std::optional<std::int64_t> high = {};
  bool clip = false;

  static constexpr OpInfo info{
      .name = "q_conv2d",
      .operands = "x, w, bias?",
      .results = "out",
      .traits = Trait::StraightThrough,
      .help = "a two-dimensional convolution of codes",
      .formula = "x [N, C_in, H, W], w [C_out, C_in/groups, kH, kW], bias [C_out]: as conv on "
                 "x - x_zp and w - w_zp, then as q_matmul with a column for each C_out",
      .constraints = "c1 shape: x and w have rank 4\n"
                     "c2 shape: the geometry is one that conv takes\n"
                     "c3 dtype: x is i8 or u8, w is i8 and the bias is i32\n"
                     "c4 shape: the bias is [C_out]\n"
                     "c5 attr: w_zp and mult have one entry, or one a channel of the result\n"
                     "c6 attr: the result is i8, u8 or i32\n"
                     "c7 attr: a result of i32 is not scaled, moved or clamped\n"
                     "c8 attr: zero points and the range lie within their dtypes",
      .codes = "x, w, bias, out"};
  static void fields(auto& self, auto&& f) {
    f("stride", self.stride, "steps between windows", Presence::Defaulted, Range::Window);
    f("padding", self.padding, "rows and columns of x_zp on each side", Presence::Defaulted,
      Range::Window);
    f("dilation", self.dilation, "steps between the kernel's taps", Presence::Defaulted,
      Range::Window);
    f("groups", self.groups, "parts the channels fall into");
    f("x_zp", self.x_zp, "the code of 0 in x");
    f("w_zp", self.w_zp, "the code of 0 in w: one, or one a channel of the result");
    f("out_zp", self.out_zp, "the code of 0 in the result");
    f("mult", self.mult, "x's scale times w's over the result's: one, or one a channel");
    f("to", self.to, "dtype of the result: i8, u8, or i32 for the sums themselves");
    f("low", self.low, "least code of the result; absent: its dtype's");
    f("high", self.high, "largest code of the result; absent: its dtype's");
    f("clip", self.clip, "no derivative where the result saturates");
  }
  bool operator==(const QConv2d&) const = default;
};

}  // namespace ricci::op
