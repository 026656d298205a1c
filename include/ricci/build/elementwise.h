// Further builders of element-wise functions.
#pragma once

#include "ricci/build/build.h"

namespace ricci {

/// stop_gradient: the identity, through which no derivative passes.
inline Value detach(Value x, std::source_location loc = std::source_location::current()) {
  return stop_gradient(x, {}, loc);
}

/// x kept within [low, high]; a NaN stays. At a bound the gradient is shared with it, as max's is.
Value clamp(Value x, Value low, Value high,
            std::source_location loc = std::source_location::current());
Value clamp(Value x, double low, double high,
            std::source_location loc = std::source_location::current());

/// x above 0, alpha·(e^x - 1) below.
Value elu(Value x, double alpha, std::source_location loc = std::source_location::current());
/// x above 0, alpha·(e^(x/alpha) - 1) below: smooth for every alpha.
Value celu(Value x, double alpha = 1, std::source_location loc = std::source_location::current());

/// The real part of a complex value; a real one itself. Its other part is imag(z).
Value real(Value z, std::source_location loc = std::source_location::current());
/// The angle of a complex value in (-π, π]; abs(z) is its length.
Value angle(Value z, std::source_location loc = std::source_location::current());
/// The complex value of this length and angle: r·(cos θ + i·sin θ).
Value polar(Value r, Value theta, std::source_location loc = std::source_location::current());

/// re² + im² of a complex value, as a real one.
Value complex_norm_sq(Value z, std::source_location loc = std::source_location::current());

}  // namespace ricci
