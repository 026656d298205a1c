#include "backend/cpu/structured/fourier.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/pools.h"
#include "support/unit_root.h"

namespace ricci::cpu::fourier_test {
namespace {

using Of = loop::FourierTransform::Of;
using Complex = std::complex<double>;
using Wide = long double;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class T>
struct Aligned {
  explicit Aligned(std::int64_t elements)
      : data(static_cast<T*>(::operator new(at(elements + 16) * sizeof(T), std::align_val_t(64)))) {
  }
  ~Aligned() { ::operator delete(data, std::align_val_t(64)); }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  T* data;
};

// One transform with its operand and result, as arrays of reals.
template <class T>
struct Sample {
  loop::FourierTransform role;
  std::vector<T> in;
  std::vector<T> out;

  [[nodiscard]] std::int64_t lines() const { return role.batch * role.inner; }
  [[nodiscard]] std::int64_t operand_reals() const {
    if (role.of == Of::RealToHalf) return role.length;
    return role.of == Of::HalfToReal ? 2 * role.bins() : 2 * role.length;
  }
  [[nodiscard]] std::int64_t result_reals() const {
    if (role.of == Of::HalfToReal) return role.length;
    return role.of == Of::RealToHalf ? 2 * role.bins() : 2 * role.length;
  }

  explicit Sample(const loop::FourierTransform& r, unsigned seed = 1) : role(r) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    in.resize(at(lines() * operand_reals()));
    for (T& v : in) v = static_cast<T>(normal(random));
  }

  // With every pool; all give the same bits.
  void run(const FourierKernels<T>& kernels = fourier_kernels<T>()) {
    const FourierPlan<T> plan(role, kernels);
    const Aligned<T> scratch(plan.scratch_elements());
    for (ThreadPool& pool : testing::pools()) {
      std::vector<T> now(at(lines() * result_reals()), std::numeric_limits<T>::quiet_NaN());
      plan.run(pool, in.data(), now.data(), scratch.data);
      if (!out.empty()) {
        EXPECT_EQ(std::memcmp(out.data(), now.data(), now.size() * sizeof(T)), 0);
      }
      out = std::move(now);
    }
  }

  // Number j of line [outer, inner], of an array that has pairs, blocks or reals.
  [[nodiscard]] Complex number(const std::vector<T>& x, bool pairs, std::int64_t reals,
                               std::int64_t o, std::int64_t i, std::int64_t j) const {
    const std::int64_t base = o * reals * role.inner;
    const auto real = [&](std::int64_t k) { return static_cast<double>(x[at(base + k)]); };
    if (pairs) return {real((j * role.inner + i) * 2), real((j * role.inner + i) * 2 + 1)};
    const Complex re = real(j * role.inner + i);
    if (role.of != Of::Blocks) return re;
    return {re.real(), real((role.length + j) * role.inner + i)};
  }

  [[nodiscard]] std::vector<Complex> operand(std::int64_t o, std::int64_t i) const {
    const std::int64_t n = role.length;
    const bool pairs = role.of == Of::Complex || role.of == Of::HalfToReal;
    std::vector<Complex> x(at(n));
    for (std::int64_t j = 0; j < n; ++j) {
      const bool mirrored = role.of == Of::HalfToReal && 2 * j > n;
      x[at(j)] = number(in, pairs, operand_reals(), o, i, mirrored ? n - j : j);
      if (mirrored) x[at(j)] = std::conj(x[at(j)]);
      if (role.of == Of::HalfToReal && (j == 0 || 2 * j == n)) x[at(j)] = x[at(j)].real();
    }
    return x;
  }
  [[nodiscard]] Complex result(std::int64_t o, std::int64_t i, std::int64_t k) const {
    const bool pairs = role.of == Of::Complex || role.of == Of::RealToHalf;
    return number(out, pairs, result_reals(), o, i, k);
  }
};

// Σ_j x[j] · e^(∓2πi·jk/n), in more digits than a double has.
Complex bin_of(const std::vector<Complex>& x, const std::vector<Complex>& roots, std::int64_t k) {
  Wide re = 0;
  Wide im = 0;
  std::int64_t turn = 0;
  const auto n = static_cast<std::int64_t>(x.size());
  for (const Complex& v : x) {
    const Complex w = roots[at(turn)];
    re += static_cast<Wide>(v.real()) * w.real() - static_cast<Wide>(v.imag()) * w.imag();
    im += static_cast<Wide>(v.real()) * w.imag() + static_cast<Wide>(v.imag()) * w.real();
    turn = (turn + k) % n;
  }
  return {static_cast<double>(re), static_cast<double>(im)};
}

// The error of some bins of a line, relative to their size; of all where there are few.
template <class T>
double error_of(const Sample<T>& r, std::int64_t o, std::int64_t i) {
  const std::int64_t n = r.role.length;
  const bool inverse = r.role.inverse || r.role.of == Of::HalfToReal;
  std::vector<Complex> roots;
  for (std::int64_t k = 0; k < n; ++k) roots.push_back(unit_root(inverse ? k : -k, n));
  const std::vector<Complex> x = r.operand(o, i);
  const std::int64_t bins = r.role.of == Of::RealToHalf ? r.role.bins() : n;
  const std::int64_t some = n > 50000 ? 5 : 48;
  double difference = 0;
  double size = 0;
  for (std::int64_t b = 0; b < std::min(bins, some); ++b) {
    const std::int64_t k = bins <= some ? b : std::min(bins - 1, b * (bins / some) + b % 3);
    Complex expected = bin_of(x, roots, k) * r.role.scale.value;
    if (r.role.of == Of::HalfToReal) expected = expected.real();
    difference += std::norm(r.result(o, i, k) - expected);
    size += std::norm(expected);
  }
  return std::sqrt(difference / size);
}

template <class T>
void expect_accurate(const loop::FourierTransform& role,
                     const FourierKernels<T>& kernels = fourier_kernels<T>()) {
  SCOPED_TRACE(fmt::format("{} of {} bytes", loop::to_string(role), sizeof(T)));
  Sample<T> r(role);
  r.run(kernels);
  const double steps = std::max(1.0, std::log2(static_cast<double>(role.length)));
  const double bound = sizeof(T) == 8 ? 1e-15 * steps : 6e-8 * (1 + steps);
  EXPECT_LE(error_of(r, 0, 0), bound);
  EXPECT_LE(error_of(r, role.batch - 1, role.inner - 1), bound);
}

constexpr Of Kinds[] = {Of::Complex, Of::Blocks, Of::RealToHalf, Of::HalfToReal};

void expect_accurate_in_all_forms(std::int64_t n, std::int64_t batch, std::int64_t inner) {
  for (const Of of : Kinds) {
    const bool inverse = of == Of::HalfToReal || (of != Of::RealToHalf && n % 3 == 0);
    const loop::FourierTransform role{of, batch, n, inner, inverse, 0.75};
    expect_accurate<float>(role);
    expect_accurate<double>(role);
  }
}

TEST(BackendFourier, EveryShortLength) {
  for (std::int64_t n = 1; n <= 130; ++n) expect_accurate_in_all_forms(n, n % 7 + 1, 1);
}

TEST(BackendFourier, LinesBesideEachOther) {
  for (const std::int64_t n : {1, 2, 3, 5, 8, 16, 30, 64, 100, 101, 256, 360, 1000}) {
    expect_accurate_in_all_forms(n, 37, 1);  // more than two vectors' worth
    expect_accurate_in_all_forms(n, 2, 5);
    expect_accurate_in_all_forms(n, 1, 33);
  }
}

TEST(BackendFourier, LongLengths) {
  for (const std::int64_t n : {256, 512, 625, 1024, 2048, 2187, 3000, 4096, 10000, 65536, 100000}) {
    expect_accurate_in_all_forms(n, 1, 1);
  }
  expect_accurate_in_all_forms(2048, 9, 1);
  expect_accurate_in_all_forms(8192, 1, 3);  // too many rows for a block
}

TEST(BackendFourier, PrimesAndTheirProducts) {
  for (const std::int64_t n : {149, 211, 257, 509, 997, 2003, 10007, 101 * 103, 2 * 1009}) {
    expect_accurate_in_all_forms(n, 2, 1);
  }
  expect_accurate_in_all_forms(211, 1, 20);
  expect_accurate_in_all_forms(2003, 1, 2);
  expect_accurate<double>({Of::Complex, 1, 100003, 1, false, 1.0});
}

// The instruction sets that this machine has not chosen.
TEST(BackendFourier, NarrowerVectors) {
  std::vector<const VectorKernels*> tables = {&vector_base::kernels};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) {
    tables.push_back(&vector_avx2::kernels);
  }
#endif
  for (const VectorKernels* table : tables) {
    for (const Of of : Kinds) {
      for (const std::int64_t n : {1, 7, 16, 33, 60, 64, 97, 103, 256, 400, 1025, 4096}) {
        const loop::FourierTransform lines{of, 11, n, 1, of == Of::HalfToReal, 1.0};
        expect_accurate(lines, table->fourier_f32);
        expect_accurate(lines, table->fourier_f64);
        const loop::FourierTransform columns{of, 2, n, 9, of == Of::HalfToReal, 1.0};
        expect_accurate(columns, table->fourier_f32);
        expect_accurate(columns, table->fourier_f64);
      }
    }
  }
}

// Lines that are transformed a few at a time: every number of them, whole groups and rests.
TEST(BackendFourier, ShortLinesOfEveryCount) {
  std::vector<const VectorKernels*> tables = {&vector_kernels()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) {
    tables.push_back(&vector_avx2::kernels);
  }
#endif
  for (const VectorKernels* table : tables) {
    for (const Of of : {Of::Complex, Of::RealToHalf, Of::HalfToReal}) {
      for (const std::int64_t n : {8, 16, 32, 64, 96, 128, 144, 256, 272, 400, 416, 512, 1024}) {
        for (const std::int64_t lines : {1, 2, 3, 4, 5, 7, 8, 13}) {
          const bool inverse = of == Of::HalfToReal || lines % 2 == 0;
          const loop::FourierTransform role{of, lines, n, 1, inverse && of != Of::RealToHalf, 0.3};
          expect_accurate(role, table->fourier_f32);
          expect_accurate(role, table->fourier_f64);
        }
      }
    }
  }
}

// More than two passes through memory.
TEST(BackendFourier, AMillion) {
  expect_accurate<float>({Of::Complex, 1, 1 << 21, 1, false, 1.0});
  expect_accurate<double>({Of::RealToHalf, 1, 1 << 22, 1, false, 1.0});
  expect_accurate<double>({Of::Complex, 1, 1594323, 1, true, 1.0});  // 3^13
}

// A NaN spoils its own line; vectors hold several.
TEST(BackendFourier, ANaNStaysInItsLine) {
  for (const Of of : Kinds) {
    for (const std::int64_t n : {6, 48, 211, 512}) {
      for (const bool lines : {true, false}) {
        const loop::FourierTransform role{of, lines ? 21 : 1, n, lines ? 1 : 21, false, 1.0};
        Sample<float> r(role);
        const std::int64_t spoilt =
            lines ? 3 * r.operand_reals() : 3 * (of == Of::Complex || of == Of::HalfToReal ? 2 : 1);
        r.in[at(spoilt)] = std::numeric_limits<float>::quiet_NaN();
        r.run();
        const std::int64_t bins = of == Of::RealToHalf ? role.bins() : n;
        for (std::int64_t line = 0; line < 21; ++line) {
          for (std::int64_t k = 0; k < bins; ++k) {
            const Complex z = r.result(lines ? line : 0, lines ? 0 : line, k);
            EXPECT_EQ(std::isnan(z.real()) || std::isnan(z.imag()), line == 3)
                << loop::to_string(role) << " line " << line << " bin " << k;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ricci::cpu::fourier_test
