// From Taylor coefficients to derivatives and back. Where factorials are too much for a dtype the
// curve is passed through faster: with s = σ·t, coefficient k is d_k·σ^k/k!, which stays near d_k
// for σ near the n-th root of n!.
#pragma once

#include <cmath>

#include "ricci/build/build.h"

namespace ricci {

class CurveSpeed {
 public:
  /// For derivatives up to `order` in values of `dtype`. A power of 2; 1 unless more is needed.
  CurveSpeed(std::size_t order, DType dtype) {
    const auto n = static_cast<double>(order);
    const double bits = std::lgamma(n + 1) / std::log(2.0);  // of n!
    if (bits > room(dtype)) speed_ = std::exp2(std::round(bits / n));
  }
  [[nodiscard]] double value() const noexcept { return speed_; }

  [[nodiscard]] Value derivative(Value coefficient, std::size_t k) const {
    return factor(k) == 1 ? coefficient : coefficient * factor(k);
  }
  [[nodiscard]] Value coefficient(Value derivative, std::size_t k) const {
    return factor(k) == 1 ? derivative : derivative / factor(k);
  }

 private:
  // Half the exponents of a dtype: products of two coefficients are in range as well.
  static double room(DType dtype) {
    switch (dtype) {
      case DType::F16: return 8;
      case DType::BF16:
      case DType::F32:
      case DType::C64: return 64;
      default: return 512;
    }
  }
  // k!/σ^k
  [[nodiscard]] double factor(std::size_t k) const {
    double out = 1;
    for (std::size_t i = 1; i <= k; ++i) out *= static_cast<double>(i) / speed_;
    return out;
  }

  double speed_ = 1;
};

}  // namespace ricci
