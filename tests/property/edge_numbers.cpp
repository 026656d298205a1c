#include "property/edge_numbers.h"

#include <array>
#include <complex>
#include <limits>

#include "support/compare.h"

namespace ricci::testing {

double edge_number(Rng& rng) {
  using Limits = std::numeric_limits<double>;
  static constexpr std::array Numbers = {0.0,
                                         -0.0,
                                         1.0,
                                         -1.0,
                                         0.5,
                                         -0.5,
                                         1.5,
                                         2.5,
                                         -3.0,
                                         Limits::infinity(),
                                         127.0,
                                         -129.0,
                                         255.5,
                                         -255.5,
                                         256.0,
                                         32767.5,
                                         -32769.0,
                                         65504.0,
                                         65519.9,
                                         -Limits::infinity(),
                                         65520.,
                                         2147483647.0,
                                         -2147483649.0,
                                         4294967296.0,
                                         9.223372036854776e18,
                                         -9.3e18,
                                         1e38,
                                         -3.5e38,
                                         1e-7,
                                         -6e-8,
                                         5.9e-8,
                                         1e-38,
                                         -1e-40,
                                         1.2e-45,
                                         1e-310,
                                         -5e-324,
                                         1e300,
                                         Limits::quiet_NaN(),
                                         3e-8,
                                         1e-20,
                                         -1e20,
                                         1e154,
                                         1e-160,
                                         16777217.0};
  return Numbers[rng.below(Numbers.size())];
}

std::int64_t edge_integer(Rng& rng, DType dtype) {
  const std::int64_t bits = 8 * size_of(dtype);
  const bool is_unsigned = dtype == DType::U8 || dtype == DType::U32;
  const std::int64_t most = is_unsigned  ? (std::int64_t{1} << bits) - 1
                            : bits == 64 ? std::numeric_limits<std::int64_t>::max()
                                         : (std::int64_t{1} << (bits - 1)) - 1;
  const std::int64_t least = is_unsigned ? 0 : -most - 1;
  const std::array<std::int64_t, 9> numbers = {least, least + 1, most, most - 1,    0,
                                               1,     2,         -1,   most / 2 + 1};
  return numbers[rng.below(numbers.size())];
}

Tensor edge_tensor(Rng& rng, const Type& type) {
  if (rng.chance(5) && is_int(type.dtype))
    return Tensor::splat(type, edge_integer(rng, type.dtype));
  if (rng.chance(5) && is_float(type.dtype)) return Tensor::splat(type, edge_number(rng));
  const std::size_t edges = rng.chance(60) ? 0 : rng.chance(50) ? 8 : 60;  // percent
  const Tensor plain = random_tensor(rng.next(), type, -3, 3);
  if (edges == 0 || type.dtype == DType::Bool) return plain;
  if (is_int(type.dtype)) {
    std::vector<std::int64_t> all = plain.numbers<std::int64_t>();
    for (std::int64_t& n : all) {
      if (rng.chance(edges)) n = edge_integer(rng, type.dtype);
    }
    return Tensor::from_numbers<std::int64_t>(type, all);
  }
  std::vector<std::complex<double>> all = plain.numbers<std::complex<double>>();
  for (std::complex<double>& n : all) {
    if (rng.chance(edges)) n = {edge_number(rng), n.imag()};
  }
  return Tensor::from_numbers<std::complex<double>>(type, all);
}

}  // namespace ricci::testing
