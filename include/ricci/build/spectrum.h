// What is built on Fourier transforms: several axes, real and imaginary parts, spectra over time,
// power, convolution. Each is a few ops of the list, so all of it is differentiated and compiled.
//
//   Value y = fftn(z, {0, 1});
//   Value s = stft(x, {.frame_len = 400, .hop = 160, .window = window, .centre = true});
//   Value p = psd(rfft(x), 512, {.one_sided = true, .sample_rate = 16000});
#pragma once

#include <optional>
#include <source_location>
#include <utility>
#include <vector>

#include "ricci/build/build.h"

namespace ricci {

/// The inverse transform; with `Forward`, the default, of y = fft(x) it gives x back.
struct IfftOptions {
  Axis axis = -1;
  FftNorm norm = FftNorm::Forward;
};
Value ifft(Value x, IfftOptions options = {},
           std::source_location loc = std::source_location::current());
/// One transform after the other along every listed axis; none is the identity. Real blocks have
/// one axis.
Value fftn(Value x, Axes axes, bool inverse = false, FftNorm norm = FftNorm::Backward,
           std::source_location loc = std::source_location::current());
Value ifftn(Value x, Axes axes, FftNorm norm = FftNorm::Forward,
            std::source_location loc = std::source_location::current());

/// The second half of every listed axis before its first, so that frequency 0 is in the middle; and
/// back. No axes means all of them.
Value fftshift(Value x, Axes axes = {}, std::source_location loc = std::source_location::current());
Value ifftshift(Value x, Axes axes = {},
                std::source_location loc = std::source_location::current());

using RealAndImaginary = std::pair<Value, Value>;
/// The parts of a spectrum, complex or in two blocks along the last axis.
RealAndImaginary split_spectrum(Value spectrum,
                                std::source_location loc = std::source_location::current());
/// re + i·im, as c64, or c128 for f64.
Value join_spectrum(Value re, Value im, std::source_location loc = std::source_location::current());

/// The frequency of every bin in cycles a sample, times `sample_rate`: k/n, and (k - n)/n from the
/// middle on; for rfft only the bins it has.
[[nodiscard]] std::vector<double> fftfreq(std::int64_t n, double sample_rate = 1);
[[nodiscard]] std::vector<double> rfftfreq(std::int64_t n, double sample_rate = 1);
Value fftfreq(Graph& graph, std::int64_t n, DType dtype, double sample_rate = 1,
              std::source_location loc = std::source_location::current());
Value rfftfreq(Graph& graph, std::int64_t n, DType dtype, double sample_rate = 1,
               std::source_location loc = std::source_location::current());

/// Windows that repeat after n samples, as transforms want them: a cosine sum.
enum class Window : std::uint8_t { Rectangular, Hann, Hamming, Blackman };
[[nodiscard]] std::vector<double> window_of(Window window, std::int64_t n);
Value window_of(Graph& graph, Window window, std::int64_t n, DType dtype,
                std::source_location loc = std::source_location::current());

struct PsdOptions {
  /// Bins whose mirror image was left out count twice.
  bool one_sided = false;
  /// Σ w² of the window the signal was multiplied by; absent: n, that of none.
  std::optional<double> window_power = {};
  double sample_rate = 1;
};
/// |bin|² / (window power · sample rate), of the transform of n numbers along the last axis.
Value psd(Value spectrum, std::int64_t n, PsdOptions options = {},
          std::source_location loc = std::source_location::current());

enum class EdgePadding : std::uint8_t { Zero, Reflect };
struct StftOptions {
  std::int64_t frame_len = 0;
  std::int64_t hop = 1;
  Value window = {};  ///< [frame_len]; none: 1
  /// Half a frame is put before and behind the signal, so that frame f is around sample f·hop.
  bool centre = false;
  EdgePadding padding = EdgePadding::Reflect;
  FftNorm norm = FftNorm::Backward;
};
/// Transforms of the frames of the last axis: [.., samples] to [.., frames, ⌊frame_len/2⌋ + 1]. One
/// view of overlapping frames, one product with the window, one transform.
Value stft(Value x, const StftOptions& options,
           std::source_location loc = std::source_location::current());
/// Its inverse: frames times the window, added where they overlap, divided by Σ window² (left as
/// they are where that is 0). [.., frames, bins] to the samples stft's frames cover, without the
/// padding of `centre`.
Value istft(Value spectrum, const StftOptions& options,
            std::source_location loc = std::source_location::current());

/// The convolution of the last axes, la + lb - 1 long, through transforms of n_fft numbers or more
/// (0: a length that transforms quickly). The norm changes rounding alone.
Value fft_conv1d(Value a, Value b, std::int64_t n_fft = 0, FftNorm norm = FftNorm::Backward,
                 std::source_location loc = std::source_location::current());

}  // namespace ricci
