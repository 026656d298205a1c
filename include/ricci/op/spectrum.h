// Fourier transforms, frames of a signal, and the log-mel spectrum of speech.
//
// A complex signal is an array of c64 or c128, or a real one whose axis holds two blocks, the real
// parts and behind them the imaginary ones: [re_0 … re_{N-1}, im_0 … im_{N-1}].
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ricci/op/fields.h"

namespace ricci {

/// What a transform of N numbers is multiplied by: `Backward` 1 both ways; `Forward` 1, and 1/N
/// for the inverse; `Ortho` 1/√N both ways.
enum class FftNorm : std::uint8_t { Backward, Forward, Ortho };
constexpr auto enumerator_names(FftNorm) {
  return std::to_array<std::string_view>({"backward", "forward", "ortho"});
}

/// Over what log_mel's maximum is taken: the mels of each frame, or those of all frames (the last
/// but one axis).
enum class MelScope : std::uint8_t { Frame, Utterance };
constexpr auto enumerator_names(MelScope) {
  return std::to_array<std::string_view>({"frame", "utterance"});
}

/// The factor of a transform of n numbers.
[[nodiscard]] double fft_scale(FftNorm norm, bool inverse, std::int64_t n);
/// The smallest power of two that is at least n.
[[nodiscard]] std::int64_t next_pow2(std::int64_t n);
/// The smallest product of 2, 3, 5 and 7 that is at least n: what transforms quickly.
[[nodiscard]] std::int64_t next_fast_length(std::int64_t n);
/// Bins of the transform of n real numbers: ⌊n/2⌋ + 1; nothing where symbols leave it open.
[[nodiscard]] std::optional<Dim> rfft_bins(const Dim& n);

}  // namespace ricci

namespace ricci::op {

/// The discrete Fourier transform along an axis, of any length.
///   y[k] = s · Σ_n x[n] · e^(∓2πi·nk/N), + for the inverse
/// A NaN or an infinity spoils the transform it is in, and no other.
struct Fft {
  Axis axis = -1;
  bool inverse = false;
  FftNorm norm = FftNorm::Backward;

  static constexpr OpInfo info{
      .name = "fft",
      .operands = "x",
      .results = "out",
      .traits = Trait::Linear,
      .help = "the discrete Fourier transform along an axis",
      .formula = "out[…, k, …] = s · Σ_n x[…, n, …] · e^(∓2πi·nk/N), + for the inverse; s = 1 "
                 "(backward), 1 and 1/N inverse (forward), 1/√N (ortho); a real x holds N real and "
                 "N imaginary parts along the axis",
      .constraints = "c1 dtype: x is floating or complex\n"
                     "c2 shape: the axis of a real x has two blocks of one size"};
  static void fields(auto& self, auto&& f) {
    f("axis", self.axis, "axis that is transformed");
    f("inverse", self.inverse, "the sign of the exponent is +");
    f("norm", self.norm, "the factor of the sum");
  }
  bool operator==(const Fft&) const = default;
};

/// The transform of real numbers: the half of its bins that determines the rest.
///   y[k] = s · Σ_n x[n] · e^(-2πi·nk/N), 0 ≤ k ≤ ⌊N/2⌋
struct Rfft {
  std::optional<Dim> n = {};
  Axis axis = -1;
  FftNorm norm = FftNorm::Backward;

  static constexpr OpInfo info{
      .name = "rfft",
      .operands = "x",
      .results = "out",
      .traits = Trait::Linear,
      .help = "the Fourier transform of real numbers along an axis",
      .formula = "out[…, k, …] = s · Σ_{j<n} x[…, j, …] · e^(-2πi·jk/n), 0 ≤ k ≤ ⌊n/2⌋, in c64, or "
                 "c128 for f64; x is cut at n, or followed by zeros",
      .constraints = "c1 dtype: x is floating\n"
                     "c2 shape: n is at least 1\n"
                     "c3 needs_static_dim: the parity of n is known"};
  static void fields(auto& self, auto&& f) {
    f("n", self.n, "length that is transformed; absent: x's");
    f("axis", self.axis, "axis that is transformed");
    f("norm", self.norm, "the factor of the sum");
  }
  void normalize(std::span<const Type> operands);
  bool operator==(const Rfft&) const = default;
};

/// Real numbers from half of their bins: the inverse of rfft. The imaginary part of the first bin,
/// and of the last when n is even, is not read.
///   y[j] = s · Re Σ_k w_k · x[k] · e^(+2πi·jk/n), w = 1 for those bins and 2 for the others
struct Irfft {
  Dim n = 0;
  Axis axis = -1;
  FftNorm norm = FftNorm::Backward;

  static constexpr OpInfo info{
      .name = "irfft",
      .operands = "x",
      .results = "out",
      .traits = Trait::Linear,
      .help = "real numbers from half of the bins of their Fourier transform",
      .formula =
          "out[…, j, …] = s · Re Σ_k w_k · x[…, k, …] · e^(+2πi·jk/n); w_k = 1 for k = 0 and "
          "2k = n, else 2",
      .constraints = "c1 dtype: x is complex\n"
                     "c2 shape: n is at least 1\n"
                     "c3 shape: the axis has ⌊n/2⌋ + 1 bins\n"
                     "c4 needs_static_dim: the parity of n is known"};
  static void fields(auto& self, auto&& f) {
    f("n", self.n, "length of the result", Presence::Required);
    f("axis", self.axis, "axis that is transformed");
    f("norm", self.norm, "the factor of the sum");
  }
  bool operator==(const Irfft&) const = default;
};

/// Pieces of a signal that may overlap; what is left at its end is not in any.
///   out[…, f, i, …] = x[…, f·hop + i, …]
struct Frame {
  Dim frame_len = 0;
  std::int64_t hop = 1;
  Axis axis = -1;

  static constexpr OpInfo info{
      .name = "frame",
      .operands = "x",
      .results = "out",
      .traits = Trait::Linear | Trait::DataMovement,
      .help = "overlapping pieces of an axis",
      .formula = "out[…, f, i, …] = x[…, f·hop + i, …], f ≤ ⌊(x.dim(axis) - frame_len) / hop⌋",
      .constraints = "c1 attr: hop is at least 1, frame_len is not negative\n"
                     "c2 shape: a frame fits into the axis\n"
                     "c3 needs_static_dim: the number of frames is known"};
  static void fields(auto& self, auto&& f) {
    f("frame_len", self.frame_len, "elements of a frame", Presence::Required);
    f("hop", self.hop, "distance between the beginnings of frames", Presence::Required);
    f("axis", self.axis, "axis that is cut up");
  }
  bool operator==(const Frame&) const = default;
};

/// The transpose of frame: frames added where they lay.
///   out[…, t, …] = Σ x[…, f, i, …] over f·hop + i = t
struct OverlapAdd {
  std::int64_t hop = 1;
  Axis axis = -2;

  static constexpr OpInfo info{
      .name = "overlap_add",
      .operands = "x",
      .results = "out",
      .traits = Trait::Linear,
      .help = "frames added where they overlap",
      .formula = "out[…, t, …] = Σ x[…, f, i, …] over f·hop + i = t; (frames - 1)·hop + frame_len "
                 "elements",
      .constraints = "c1 attr: hop is at least 1\n"
                     "c2 shape: there are two axes, of frames and of their elements, with at least "
                     "one frame\n"
                     "c3 dtype: x can be added: it is not bool",
      .vjp = RuleSource::Written,
      .batch = RuleSource::Written};
  static void fields(auto& self, auto&& f) {
    f("hop", self.hop, "distance between the beginnings of frames", Presence::Required);
    f("axis", self.axis, "axis of frames, before that of their elements");
  }
  bool operator==(const OverlapAdd&) const = default;
};

/// The logarithm of the power in bands of a spectrum, as speech recognisers take it.
///   P_k = |x_k|², E_m = Σ_k filters[m, k]·P_k, L_m = log_base max(E_m, least),
///   y_m = (max(L_m, M - floor) + offset) / scale, M = max L
/// x has along its last axis: bins of power; or real and imaginary parts in two blocks, of bins or
/// of a whole transform; or complex numbers, as many.
struct LogMel {
  MelScope scope = MelScope::Frame;
  Real floor = 8;
  Real base = 10;
  Real least = 1e-10;
  Real offset = 4;
  Real scale = 4;

  static constexpr OpInfo info{
      .name = "log_mel",
      .operands = "spectrum, filters",
      .results = "out",
      .help = "the logarithm of the power in bands of a spectrum",
      .formula =
          "P_k = |spectrum_k|², E_m = Σ_k filters[m, k]·P_k, L_m = log_base max(E_m, least); "
          "out_m = (max(L_m, M - floor) + offset) / scale, M = max L over the scope",
      .constraints =
          "c1 dtype: spectrum is floating or complex, filters have its real dtype\n"
          "c2 shape: spectrum has an axis of bins, and one of frames if the scope is an utterance; "
          "filters are [mels, bins], at least one\n"
          "c3 shape: spectrum's last axis has filters' bins as power, in blocks or complex, or "
          "those of a transform of ⌊n/2⌋ + 1 bins\n"
          "c4 attr: base is above 1, least is positive, floor is not negative, scale is not 0",
      .vjp = RuleSource::Written};
  static void fields(auto& self, auto&& f) {
    f("scope", self.scope, "over what the maximum is taken");
    f("floor", self.floor, "how far below the maximum a logarithm may be");
    f("base", self.base, "of the logarithm");
    f("least", self.least, "the power that counts as none");
    f("offset", self.offset, "added to the logarithm");
    f("scale", self.scale, "what the sum is divided by", Presence::Defaulted, Range::Factor);
  }
  bool operator==(const LogMel&) const = default;
};

/// The gradients of log_mel. An entry at the floor moves with the maximum, of equal ones the first.
///   dL_m = dy_m/scale above the floor, and Σ dy/scale of those at it for the maximum;
///   dE_m = dL_m / (E_m·ln base) where E_m > least; dfilters[m, k] = Σ dE_m·P_k
///   dP_k = Σ_m dE_m·filters[m, k]; dre = 2·re·dP, dim = 2·im·dP; dP·x for complex x
struct LogMelBackward {
  MelScope scope = MelScope::Frame;
  Real floor = 8;
  Real base = 10;
  Real least = 1e-10;
  Real offset = 4;
  Real scale = 4;

  static constexpr OpInfo info{
      .name = "log_mel_backward",
      .operands = "spectrum, filters, dy",
      .results = "dspectrum, dfilters",
      .help = "derivative of log_mel",
      .formula = "dL_m = dy_m/scale above the floor, + Σ dy/scale at the floor for the first "
                 "maximum; dE_m = dL_m / (E_m·ln base) where E_m > least; dfilters[m, k] = "
                 "Σ dE_m·P_k; dP_k = Σ_m dE_m·filters[m, k]; dspectrum = 2·spectrum·dP, dP of "
                 "power, spectrum·dP of complex numbers",
      .constraints =
          "c1 dtype: spectrum is floating or complex, filters have its real dtype\n"
          "c2 shape: spectrum has an axis of bins, and one of frames if the scope is an utterance; "
          "filters are [mels, bins], at least one\n"
          "c3 shape: spectrum's last axis has filters' bins as power, in blocks or complex, or "
          "those of a transform of ⌊n/2⌋ + 1 bins\n"
          "c4 attr: base is above 1, least is positive, floor is not negative, scale is not 0\n"
          "c5 shape: dy has spectrum's leading axes and filters' mels\n"
          "c6 dtype: dy has the dtype of filters"};
  static void fields(auto& self, auto&& f) {
    f("scope", self.scope, "over what the maximum is taken");
    f("floor", self.floor, "how far below the maximum a logarithm may be");
    f("base", self.base, "of the logarithm");
    f("least", self.least, "the power that counts as none");
    f("offset", self.offset, "added to the logarithm");
    f("scale", self.scale, "what the sum is divided by", Presence::Defaulted, Range::Factor);
  }
  bool operator==(const LogMelBackward&) const = default;
};

}  // namespace ricci::op
