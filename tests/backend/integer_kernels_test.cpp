// Products of codes on every instruction set this machine has: the same integers, the largest ones
// too.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/quant/format.h"

#include "backend/cpu/kernels/cpu_features.h"
#include "backend/cpu/kernels/vector_kernels.h"

namespace ricci::cpu::integer_kernels_test {
namespace {

struct Table {
  std::string name;
  const IntegerKernels* integers;
  const Int8Dots* dots;
};

std::vector<Table> tables() {
  std::vector<Table> out = {{"base", &vector_base::kernels.integers, nullptr}};
#if defined(__x86_64__)
  const auto add = [&](const char* name, const VectorKernels& k, const char* vnni) {
    out.push_back({name, &k.integers, &k.packed.int8_dots});
    if (!cpu_has(vnni)) return;
    out.push_back({std::string(name) + " " + vnni, &k.integers_vnni, &k.packed.int8_dots_vnni});
  };
  if (cpu_has("avx2") && cpu_has("fma")) add("avx2", vector_avx2::kernels, "avxvnni");
  if (cpu_has("avx512bw") && cpu_has("avx512vl") && cpu_has("avx512dq")) {
    add("avx512", vector_avx512::kernels, "avx512vnni");
  }
#endif
  return out;
}

enum class Codes : std::uint8_t { Mixed, Largest, Smallest };

struct Matrices {
  std::int64_t rows, depth, columns, stride;
  std::vector<std::uint8_t> x;
  std::vector<std::int8_t> w;
  std::vector<std::int32_t> expected;

  Matrices(std::int64_t m, std::int64_t k, std::int64_t n, Codes codes)
      : rows(m), depth(k), columns(n), stride((k + 3) / 4 * 4) {
    x.assign(static_cast<std::size_t>(m * stride), 0);
    w.resize(static_cast<std::size_t>(k * n));
    expected.assign(static_cast<std::size_t>(m * n), 0);
    for (std::int64_t r = 0; r < m; ++r) {
      for (std::int64_t i = 0; i < k; ++i) {
        x[static_cast<std::size_t>(r * stride + i)] =
            static_cast<std::uint8_t>(codes == Codes::Mixed ? (r * 91 + i * 37 + 5) % 256 : 255);
      }
    }
    for (std::size_t i = 0; i < w.size(); ++i) {
      const int mixed = static_cast<int>(i * 53 % 256) - 128;
      w[i] = static_cast<std::int8_t>(codes == Codes::Mixed     ? mixed
                                      : codes == Codes::Largest ? 127
                                                                : -128);
    }
    for (std::int64_t r = 0; r < m; ++r) {
      for (std::int64_t i = 0; i < k; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          expected[static_cast<std::size_t>(r * n + j)] +=
              x[static_cast<std::size_t>(r * stride + i)] * w[static_cast<std::size_t>(i * n + j)];
        }
      }
    }
  }
};

void expect_packed_product(const IntegerKernels& k, const Matrices& m) {
  constexpr std::int64_t Width = IntegerKernels::Columns;
  const std::int64_t strips = (m.columns + Width - 1) / Width;
  std::vector<std::int8_t> packed(static_cast<std::size_t>(strips * Width * m.stride));
  std::vector<std::int32_t> sums(static_cast<std::size_t>(strips * Width));
  k.pack(m.w.data(), m.columns, 1, m.columns, m.depth, packed.data(), sums.data());
  for (std::int64_t j = 0; j < m.columns; ++j) {
    std::int32_t sum = 0;
    for (std::int64_t i = 0; i < m.depth; ++i)
      sum += m.w[static_cast<std::size_t>(i * m.columns + j)];
    ASSERT_EQ(sums[static_cast<std::size_t>(j)], sum);
  }
  std::vector<std::int32_t> c(static_cast<std::size_t>(m.rows * Width));
  for (std::int64_t s = 0; s < strips; ++s) {
    k.multiply(m.x.data(), m.stride, packed.data() + s * Width * m.stride, m.rows, m.depth,
               c.data());
    for (std::int64_t r = 0; r < m.rows; ++r) {
      for (std::int64_t j = s * Width; j < std::min(m.columns, (s + 1) * Width); ++j) {
        ASSERT_EQ(c[static_cast<std::size_t>(r * Width + j - s * Width)],
                  m.expected[static_cast<std::size_t>(r * m.columns + j)]);
      }
    }
  }
}

void expect_sweep(const IntegerKernels& k, const Matrices& m) {
  std::vector<std::int32_t> c(m.expected.size(), 7);
  k.sweep({.rows = m.rows,
           .depth = m.depth,
           .columns = m.columns,
           .x = m.x.data(),
           .x_row = m.stride,
           .w = m.w.data(),
           .w_row = m.columns,
           .c = c.data(),
           .c_row = m.columns});
  for (std::size_t i = 0; i < c.size(); ++i) ASSERT_EQ(c[i], m.expected[i] + 7);
}

TEST(BackendIntegerKernels, EveryInstructionSetHasTheSameIntegers) {
  for (const std::int64_t depth : {1, 4, 30, 131}) {
    for (const std::int64_t columns : {1, 31, 64, 161}) {
      for (const std::int64_t rows : {1, 2, 5, 9}) {
        for (const Codes codes : {Codes::Mixed, Codes::Largest, Codes::Smallest}) {
          const Matrices m(rows, depth, columns, codes);
          for (const Table& t : tables()) {
            SCOPED_TRACE(t.name);
            expect_packed_product(*t.integers, m);
            expect_sweep(*t.integers, m);
          }
        }
      }
    }
  }
}

// What every sum becomes, one number at a time.
std::uint8_t code_of(double sum, double factor, const CodeScale& scale) {
  const double code = std::nearbyint(sum * factor) + scale.zero;
  return static_cast<std::uint8_t>(
      static_cast<std::int32_t>(std::min(std::max(code, scale.low), scale.high)));
}

TEST(BackendIntegerKernels, CodesAreReadAndGivenTheSame) {
  for (const std::int64_t count : {0, 1, 7, 64, 65, 200}) {
    const auto n = static_cast<std::size_t>(count);
    std::vector<std::uint8_t> from(n);
    std::vector<std::int32_t> sums(n);
    std::vector<double> starts(n), zeros(n), factors(n);
    for (std::size_t i = 0; i < n; ++i) {
      from[i] = static_cast<std::uint8_t>(i * 89 + 3);
      sums[i] = i % 5 == 0 ? 2147483647 : i % 5 == 1 ? -2147483647 : static_cast<int>(i) * 37 - 990;
      starts[i] = i % 7 == 0 ? 3e10 : static_cast<double>(i) - 40;
      zeros[i] = static_cast<double>(i % 3) - 1;
      // Ties, numbers far outside of all codes, and what no multiple of has.
      factors[i] = i % 4 == 0 ? 0.5 : i % 4 == 1 ? 1e30 : i % 4 == 2 ? -0.25 : 0.0313;
    }
    const SummedRow row{count, sums.data(), starts.data(), zeros.data(), 1234};
    const CodeScale scale{factors.data(), -3, -100, 120};
    for (const Table& t : tables()) {
      SCOPED_TRACE(t.name);
      std::vector<std::uint8_t> to(n + 1, 9);
      std::int64_t total = 0;
      for (const std::uint8_t x : from) total += x ^ 0x80;
      EXPECT_EQ(t.integers->read(from.data(), 0x80, count, to.data()), total);
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(to[i], from[i] ^ 0x80);
      EXPECT_EQ(to[n], 9);
      t.integers->give_codes(row, scale, to.data());
      std::vector<std::int32_t> wrapped(n + 1, 9);
      t.integers->give_sums(row, wrapped.data());
      for (std::size_t i = 0; i < n; ++i) {
        const double sum = starts[i] + sums[i] - zeros[i] * row.x_sum;
        ASSERT_EQ(to[i], code_of(sum, factors[i], scale)) << i;
        ASSERT_EQ(wrapped[i], static_cast<std::int32_t>(static_cast<std::int64_t>(sum))) << i;
      }
      EXPECT_EQ(to[n], 9);
      EXPECT_EQ(wrapped[n], 9);
    }
  }
}

// Rows in 8 bits with blocks of weights, against the decoded weight.
TEST(BackendIntegerKernels, BlocksTimesRowsInEightBits) {
  using quant::Format;
  constexpr std::int64_t Length = 512;
  std::vector<float> numbers;
  std::vector<std::int8_t> codes;
  for (std::int64_t i = 0; i < Length; ++i) {
    numbers.push_back(static_cast<float>(std::sin(0.37 * static_cast<double>(i)) * 3));
    codes.push_back(static_cast<std::int8_t>(i % 3 == 0 ? 127 : i * 29 % 255 - 127));
  }
  std::vector<float> scales;
  std::vector<float> sums_of_32;
  std::vector<float> sums_of_16;
  for (std::int64_t b = 0; b < Length / 16; ++b) {
    if (b % 2 == 0) scales.push_back(0.01F * static_cast<float>(b + 1));
    int sum = 0;
    for (std::int64_t i = 16 * b; i < 16 * (b + 1); ++i) sum += codes[static_cast<std::size_t>(i)];
    sums_of_16.push_back(scales.back() * static_cast<float>(sum));
    if (b % 2 == 0) sums_of_32.push_back(0);
    sums_of_32.back() += sums_of_16.back();
  }
  const Int8Row row{codes.data(), scales.data(), sums_of_32.data(), sums_of_16.data()};
  for (const Format format : {Format::Q4_0, Format::Q8_0, Format::Q4K, Format::Q5K, Format::Q6K}) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(quant::packed_bytes(format, Length)));
    quant::encode(format, numbers, bytes);
    std::vector<float> w(Length);
    quant::decode(format, bytes, w);
    double expected = 0;
    double size = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double term = double{w[i]} * double{scales[i / 32]} * codes[i];
      expected += term;
      size += std::abs(term);
    }
    for (const Table& t : tables()) {
      if (t.dots == nullptr) continue;
      const Int8Dots::Dot dot = format == Format::Q4_0   ? t.dots->q4_0
                                : format == Format::Q8_0 ? t.dots->q8_0
                                : format == Format::Q4K  ? t.dots->q4_k
                                : format == Format::Q5K  ? t.dots->q5_k
                                                         : t.dots->q6_k;
      const std::int64_t count = Length / quant::info(format).block_length;
      EXPECT_NEAR(dot(reinterpret_cast<const std::uint8_t*>(bytes.data()), count, row), expected,
                  1e-6 * size)
          << t.name << " " << quant::name(format);
    }
  }
}

}  // namespace
}  // namespace ricci::cpu::integer_kernels_test
