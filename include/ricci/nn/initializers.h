// Where weights start: initialisers under the names of their papers' authors.
//
//   nn::Linear hidden{784, 256, {.init = nn::he_normal}};
//   Array w = nn::glorot_uniform(Key(1), {784, 256});
//
// Layers draw their keys from the default generator, in the order they are made, so that
// `nn::seed(42)` before `Net{}` makes the same net every time.
#pragma once

#include <cstdint>
#include <functional>

#include "ricci/array/array.h"
#include "ricci/array/random.h"

namespace ricci::nn {

/// Starts the generator anew that layers draw from: `manual_seed`.
void seed(std::uint64_t seed);

/// How many numbers an output is made of, and how many outputs a number is used for.
struct Fans {
  std::int64_t in = 0;
  std::int64_t out = 0;
};
/// Of a matrix [in, out], and of a convolution's weight [out, in, window…].
[[nodiscard]] Fans fans_of(const Dims& shape);

using Initializer = std::function<Array(const Key&, const Dims&)>;

/// Uniform in ±√(6/(in + out)), and normal with variance 2/(in + out) (Glorot and Bengio, 2010).
[[nodiscard]] Array glorot_uniform(const Key& key, const Dims& shape);
[[nodiscard]] Array glorot_normal(const Key& key, const Dims& shape);
/// Uniform in ±√(6/in), and normal with variance 2/in, for what ReLU follows (He et al., 2015).
[[nodiscard]] Array he_uniform(const Key& key, const Dims& shape);
[[nodiscard]] Array he_normal(const Key& key, const Dims& shape);
/// Normal with variance 1/in (LeCun et al., 1998). Layers start here unless told otherwise.
[[nodiscard]] Array lecun_normal(const Key& key, const Dims& shape);
/// Rows or columns, whichever are fewer, at right angles and of length 1 (Saxe et al., 2014); axes
/// behind the first count as one.
[[nodiscard]] Array orthogonal(const Key& key, const Dims& shape);
/// Normal, drawn again beyond two deviations: an initialiser for one deviation.
[[nodiscard]] Initializer truncated_normal(double deviation);
[[nodiscard]] Initializer normal(double deviation);

}  // namespace ricci::nn
