#include "support/compare.h"

#include <bit>
#include <cmath>
#include <complex>
#include <iomanip>

namespace ricci::testing {
namespace {

bool near(double a, double e, Tolerance t) {
  if (std::isnan(e) || std::isnan(a)) return std::isnan(e) && std::isnan(a);
  if (std::isinf(e) || std::isinf(a)) return a == e;
  return std::fabs(a - e) <= t.absolute + t.relative * std::fabs(e);
}

bool same_bits(double a, double e) {
  if (std::isnan(e) || std::isnan(a)) return std::isnan(e) && std::isnan(a);
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(e);
}
bool same_bits(std::complex<double> a, std::complex<double> e) {
  return same_bits(a.real(), e.real()) && same_bits(a.imag(), e.imag());
}
bool same_bits(std::int64_t a, std::int64_t e) { return a == e; }

// Compares element by element as N, in which every element is held exactly.
template <class N, class Equal>
::testing::AssertionResult compare(const Tensor& actual, const Tensor& expected, Equal equal) {
  if (actual.type() != expected.type()) {
    return ::testing::AssertionFailure()
           << actual.type().to_string() << " is not " << expected.type().to_string();
  }
  const auto a = actual.numbers<N>();
  const auto e = expected.numbers<N>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!equal(a[i], e[i])) {
      return ::testing::AssertionFailure()
             << std::setprecision(17) << "element " << i << " is " << a[i] << ", expected " << e[i]
             << "\n  actual   " << actual.to_string() << "\n  expected " << expected.to_string();
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace

Tolerance tolerance(DType dtype) {
  switch (dtype) {
    case DType::F64: return {1e-12, 1e-13};
    case DType::F32: return {4e-6, 1e-6};
    case DType::F16: return {4e-3, 1e-3};
    case DType::BF16: return {3e-2, 8e-3};
    case DType::C64: return {4e-6, 1e-6};
    case DType::C128: return {1e-12, 1e-13};
    case DType::I64:
    case DType::I32:
    case DType::I16:
    case DType::I8:
    case DType::U8:
    case DType::U32:
    case DType::Bool: break;
  }
  return {0, 0};
}

::testing::AssertionResult close(const Tensor& actual, const Tensor& expected, Tolerance t) {
  using Complex = std::complex<double>;
  return compare<Complex>(actual, expected, [t](Complex a, Complex e) {
    return near(a.real(), e.real(), t) && near(a.imag(), e.imag(), t);
  });
}

::testing::AssertionResult same(const Tensor& actual, const Tensor& expected) {
  const auto equal = [](auto a, auto e) { return same_bits(a, e); };
  if (is_differentiable(expected.dtype())) {
    return compare<std::complex<double>>(actual, expected, equal);
  }
  return compare<std::int64_t>(actual, expected, equal);
}

std::vector<double> random_numbers(std::uint64_t seed, std::size_t count, double low, double high) {
  std::vector<double> out;
  std::uint64_t state = seed * 0x9E3779B97F4A7C15ULL + 0x1234567;
  for (std::size_t i = 0; i < count; ++i) {
    state += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    z ^= z >> 31;
    out.push_back(low + (high - low) * (static_cast<double>(z >> 11) * 0x1p-53));
  }
  return out;
}

Tensor random_tensor(std::uint64_t seed, const Type& type, double low, double high) {
  const auto count = static_cast<std::size_t>(type.numel().value());
  if (is_complex(type.dtype)) {
    const auto parts = random_numbers(seed, 2 * count, low, high);
    std::vector<std::complex<double>> numbers;
    for (std::size_t i = 0; i < count; ++i) numbers.emplace_back(parts[2 * i], parts[2 * i + 1]);
    return Tensor::from_numbers<std::complex<double>>(type, numbers);
  }
  std::vector<double> numbers = random_numbers(seed, count, low, high);
  if (type.dtype == DType::Bool) {
    for (double& v : numbers) v = v > (low + high) / 2 ? 1 : 0;
  } else if (!is_float(type.dtype)) {
    const bool is_unsigned = type.dtype == DType::U8 || type.dtype == DType::U32;
    for (double& v : numbers) v = std::floor(is_unsigned ? std::fabs(v) : v);
  }
  return Tensor::from_numbers<double>(type, numbers);
}

}  // namespace ricci::testing
