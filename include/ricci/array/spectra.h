// Fourier transforms as NumPy has them, and filters along an axis.
//
//   Array y = fft(x);                      // complex, of real numbers too
//   Array z = irfft(rfft(x) * filter);
//   Array w = fft(x, {.n = 16, .axis = 0});
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <source_location>

#include "ricci/array/math.h"
#include "ricci/op/spectrum.h"

namespace ricci {

struct FftOptions {
  /// How many numbers are transformed: x is cut there, or followed by zeros; of irfft, how many it
  /// gives. Absent: as many as there are; of irfft, twice the bins less one.
  std::optional<std::int64_t> n = {};
  std::int64_t axis = -1;
  /// As it is, the inverse has 1/N, as in NumPy.
  FftNorm norm = FftNorm::Forward;
};
[[nodiscard]] Array fft(const Array& x, const FftOptions& options = {},
                        Here where = Here::current());
[[nodiscard]] Array ifft(const Array& x, const FftOptions& options = {},
                         Here where = Here::current());
/// The first half of the bins, which is all there is to know of real numbers.
[[nodiscard]] Array rfft(const Array& x, const FftOptions& options = {},
                         Here where = Here::current());
[[nodiscard]] Array irfft(const Array& x, const FftOptions& options = {},
                          Here where = Here::current());
// fft(x, 16), fft(x, 16, 0)
#define RICCI_FFT(name)                                                                 \
  template <std::integral T>                                                            \
  [[nodiscard]] Array name(const Array& x, T n, std::int64_t axis = -1,                 \
                           Here where = Here::current()) {                              \
    return name(x, FftOptions{.n = static_cast<std::int64_t>(n), .axis = axis}, where); \
  }
RICCI_FFT(fft)
RICCI_FFT(ifft)
RICCI_FFT(rfft)
RICCI_FFT(irfft)
#undef RICCI_FFT

/// Over the last two axes, or those given; fftn: over all.
[[nodiscard]] Array fft2(const Array& x, const Axes& axes = {-2, -1}, Here where = Here::current());
[[nodiscard]] Array ifft2(const Array& x, const Axes& axes = {-2, -1},
                          Here where = Here::current());
[[nodiscard]] Array fftn(const Array& x, const Axes& axes = {}, Here where = Here::current());
[[nodiscard]] Array ifftn(const Array& x, const Axes& axes = {}, Here where = Here::current());
/// Half of the bins of the last of the axes.
[[nodiscard]] Array rfft2(const Array& x, const Axes& axes = {-2, -1},
                          Here where = Here::current());
/// `n` is the size of the last of the axes; absent: twice the bins less one.
[[nodiscard]] Array irfft2(const Array& x, std::optional<std::int64_t> n = {},
                           const Axes& axes = {-2, -1}, Here where = Here::current());
/// The bin of frequency 0 in the middle, and back; over some axes, or all.
[[nodiscard]] Array fftshift(const Array& x, const AxisList& axes = {},
                             Here where = Here::current());
[[nodiscard]] Array ifftshift(const Array& x, const AxisList& axes = {},
                              Here where = Here::current());
/// The frequencies of the bins of n numbers that are `spacing` apart.
[[nodiscard]] Array fftfreq(std::int64_t n, double spacing = 1, Here where = Here::current());
[[nodiscard]] Array rfftfreq(std::int64_t n, double spacing = 1, Here where = Here::current());
/// The argument of complex numbers, in radians.
[[nodiscard]] Array angle(const Array& x, Here where = Here::current());

/// Which places of a filter are kept: all, as many as the longer has, those without an edge.
enum class ConvolveMode : std::uint8_t { Full, Same, Valid };
/// Σ_k a[i - k]·b[k] of vectors; correlate: Σ_k a[i + k]·conj(b[k]).
[[nodiscard]] Array convolve(const Array& a, const Array& b, ConvolveMode mode = ConvolveMode::Full,
                             Here where = Here::current());
[[nodiscard]] Array correlate(const Array& a, const Array& b,
                              ConvolveMode mode = ConvolveMode::Valid,
                              Here where = Here::current());
/// Windows of n numbers.
[[nodiscard]] Array hanning(std::int64_t n, Here where = Here::current());
[[nodiscard]] Array hamming(std::int64_t n, Here where = Here::current());
[[nodiscard]] Array blackman(std::int64_t n, Here where = Here::current());

}  // namespace ricci
