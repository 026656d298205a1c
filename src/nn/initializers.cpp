#include "ricci/nn/initializers.h"

#include <cmath>

#include <fmt/format.h>

#include "ricci/array/math.h"
#include "ricci/array/ops.h"
#include "ricci/array/shape.h"
#include "ricci/support/error.h"

#include "support/float_environment.h"

namespace ricci::nn {
namespace {

// The variance is `of` divided by a count.
Array uniform_within(const Key& key, const Dims& shape, double of, double fan) {
  const DefaultFloatEnvironment floats;
  const double bound = std::sqrt(3 * (of / fan));
  return uniform(key, shape, -bound, bound);
}

Array normal_of(const Key& key, const Dims& shape, double of, double fan) {
  const DefaultFloatEnvironment floats;
  return ricci::normal(key, shape, 0, std::sqrt(of / fan));
}

double mean_fan(const Dims& shape) {
  const Fans fans = fans_of(shape);
  return (static_cast<double>(fans.in) + static_cast<double>(fans.out)) / 2;
}

double fan_in(const Dims& shape) { return static_cast<double>(fans_of(shape).in); }

}  // namespace

void seed(std::uint64_t seed) { manual_seed(seed); }

Fans fans_of(const Dims& shape) {
  if (shape.size() < 2) {
    throw UserError(ErrorCode::Shape, fmt::format("a weight of rank {} has no fans", shape.size()),
                    "initialisers are for matrices [in, out] and weights [out, in, window…]");
  }
  if (shape.size() == 2) return {shape[0].value(), shape[1].value()};
  std::int64_t window = 1;
  for (std::size_t a = 2; a < shape.size(); ++a) window *= shape[a].value();
  return {shape[1].value() * window, shape[0].value() * window};
}

Array glorot_uniform(const Key& key, const Dims& shape) {
  return uniform_within(key, shape, 1, mean_fan(shape));
}
Array glorot_normal(const Key& key, const Dims& shape) {
  return normal_of(key, shape, 1, mean_fan(shape));
}
Array he_uniform(const Key& key, const Dims& shape) {
  return uniform_within(key, shape, 2, fan_in(shape));
}
Array he_normal(const Key& key, const Dims& shape) {
  return normal_of(key, shape, 2, fan_in(shape));
}
Array lecun_normal(const Key& key, const Dims& shape) {
  return normal_of(key, shape, 1, fan_in(shape));
}

Array orthogonal(const Key& key, const Dims& shape) {
  (void)fans_of(shape);
  const std::int64_t rows = shape[0].value();
  std::int64_t columns = 1;
  for (std::size_t a = 1; a < shape.size(); ++a) columns *= shape[a].value();
  // The triangular factor has a diagonal that is not negative, so q is spread evenly.
  const bool wide = columns > rows;
  const Array drawn = ricci::normal(key, wide ? Dims{columns, rows} : Dims{rows, columns});
  const Array q = qr(drawn)[0];
  return reshape(wide ? transpose(q) : q, shape);
}

Initializer truncated_normal(double deviation) {
  return [deviation](const Key& key, const Dims& shape) {
    return ricci::truncated_normal(key, shape) * deviation;
  };
}
Initializer normal(double deviation) {
  return [deviation](const Key& key, const Dims& shape) {
    return ricci::normal(key, shape, 0, deviation);
  };
}

}  // namespace ricci::nn
