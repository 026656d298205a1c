// Transforms and densities with what they take by position, and of spectra in two arrays.
#pragma once

#include "ricci/build/spectrum.h"

namespace ricci {

Value fft_norm(Value x, bool inverse, FftNorm norm,
               std::source_location loc = std::source_location::current());
Value fft_axis(Value x, Axis axis, bool inverse = false, FftNorm norm = FftNorm::Backward,
               std::source_location loc = std::source_location::current());

/// Zeros behind the last axis, up to a power of two.
Value pad_last_axis_to_pow2(Value x, std::source_location loc = std::source_location::current());

/// All N bins of N real numbers along the last axis; any number of axes before it are a batch.
RealAndImaginary fft_real(Value x, FftNorm norm = FftNorm::Backward,
                          std::source_location loc = std::source_location::current());
RealAndImaginary fft_batch_real(Value x, FftNorm norm = FftNorm::Backward,
                                std::source_location loc = std::source_location::current());

/// irfft of bins that are given as two arrays.
Value irfft(Value re, Value im, Dim n, FftNorm norm = FftNorm::Backward,
            std::source_location loc = std::source_location::current());
/// The real part of the inverse transform of all bins.
Value ifft_spectrum(Value re, Value im, FftNorm norm = FftNorm::Backward,
                    std::source_location loc = std::source_location::current());

Value psd(Value re, Value im, std::int64_t n, PsdOptions options = {},
          std::source_location loc = std::source_location::current());
/// psd of rfft(x).
Value psd_real(Value x, PsdOptions options = {},
               std::source_location loc = std::source_location::current());

}  // namespace ricci
