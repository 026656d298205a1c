// Fourier transforms.
#pragma once

#include "workloads/workload.h"

namespace ricci::bench {

/// The transform of 2^16 complex numbers.
[[nodiscard]] Workload fft_65536(Scale scale);
/// Of 10^5, which is no power of two.
[[nodiscard]] Workload fft_100000(Scale scale);
/// Of an image, 512 by 512, along both axes.
[[nodiscard]] Workload fft_512x512(Scale scale);
/// Spectra over time of 8 signals of 10 seconds at 16 kHz: frames of 512, a Hann window, every 128.
[[nodiscard]] Workload stft_8x160000(Scale scale);

}  // namespace ricci::bench
