// A scene of Gaussian splats for tests: random, reproducible, before the camera.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "ricci/build/gaussian_splat.h"
#include "ricci/interp/interpreter.h"

#include "support/compare.h"

namespace ricci::testing {

inline const std::array<std::string, 7> SplatNames = {
    "positions", "scales", "rotations", "opacities", "colors", "sh_coeffs", "meta"};

struct SplatScene {
  DType dtype = DType::F64;
  std::int64_t count = 3;
  std::int64_t coefficients = 4;
  GaussianSplatCamera camera = {.position = {0.4, 0.3, -4},
                                .target = {0.1, -0.05, 0.02},
                                .up = {0.05, 1, 0.1},
                                .field_of_view = 45,
                                .background = {0.2, 0.3, 0.4}};
  double smallest = -2.2;  // logarithm of scales
  double largest = -0.9;

  [[nodiscard]] std::array<Type, 7> types() const {
    const auto flat = [&](std::int64_t n) { return Type{dtype, {n}}; };
    return {flat(3 * count),
            flat(3 * count),
            flat(4 * count),
            flat(count),
            flat(3 * count),
            flat(3 * count * coefficients),
            flat(camera.lens ? SplatLensMetaLength : SplatMetaLength)};
  }
  [[nodiscard]] Feeds feeds(std::uint64_t seed = 1) const {
    const std::array<Type, 7> t = types();
    Feeds out;
    const auto put = [&](std::size_t k, double low, double high) {
      out.emplace(SplatNames[k], random_tensor(seed + k, t[k], low, high));
    };
    put(0, -0.9, 0.9);
    put(1, smallest, largest);
    put(2, -1, 1);
    put(3, 0.2, 0.95);
    put(4, 0.1, 0.9);
    put(5, -0.4, 0.4);
    out.emplace(SplatNames[6],
                Tensor::from_numbers<double>(t[6], gaussian_splat_meta_numbers(camera)));
    return out;
  }
  [[nodiscard]] GaussianSplatInputs inputs(Graph& g) const {
    const std::array<Type, 7> t = types();
    std::array<Value, 7> v;
    for (std::size_t k = 0; k < v.size(); ++k) v[k] = g.input(SplatNames[k], t[k]);
    return {v[0], v[1], v[2], v[3], v[4], v[5], v[6]};
  }
};

}  // namespace ricci::testing
