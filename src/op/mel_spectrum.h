// How log_mel reads its spectrum.
#pragma once

#include <optional>

#include "ricci/type/type.h"

namespace ricci {

struct MelSpectrum {
  enum class Form { Power, Blocks, Complex };
  Form form = Form::Power;
  Dim imaginary = 0;  ///< where the imaginary parts begin, in blocks
};

/// A spectrum of type `spectrum` as `bins` bins; nothing when it does not have so many.
[[nodiscard]] std::optional<MelSpectrum> mel_spectrum(const Type& spectrum, const Dim& bins);

}  // namespace ricci
