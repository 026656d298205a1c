// The kernels under products, pooling and small floats, in every table there is for this machine.
#include "backend/cpu/kernels/vector_kernels.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/type/tensor.h"

#include "support/compare.h"

namespace ricci::cpu::vector_kernels_test {
namespace {

TEST(BackendVectorKernels, ProductsAreRightInEveryTable) {
  for (const VectorKernels* kernels : {&vector_base::kernels, &vector_kernels()}) {
    for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
             {1, 1, 1}, {6, 16, 8}, {7, 17, 300}, {70, 130, 65}, {13, 64, 5}}) {
      const auto ramp = [](std::int64_t count, int step) {
        std::vector<float> x(static_cast<std::size_t>(count));
        for (std::size_t i = 0; i < x.size(); ++i) {
          x[i] = static_cast<float>(static_cast<int>(i) * step % 7 - 3);
        }
        return x;
      };
      const std::vector<float> a = ramp(m * k, 3);
      const std::vector<float> b = ramp(k * n, 5);
      for (const bool transposed : {false, true}) {
        std::vector<float> c(static_cast<std::size_t>(m * n), 1.0F);
        kernels->f32.packed({.m = m,
                             .n = n,
                             .k = k,
                             .a = a.data(),
                             .a_row = transposed ? 1 : k,
                             .a_column = transposed ? m : 1,
                             .b = b.data(),
                             .b_row = transposed ? 1 : n,
                             .b_column = transposed ? k : 1,
                             .c = c.data(),
                             .c_row = n,
                             .accumulate = true});
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < n; ++j) {
            float sum = 1;  // whole numbers: exact in any order
            for (std::int64_t x = 0; x < k; ++x) {
              sum += a[static_cast<std::size_t>(transposed ? x * m + i : i * k + x)] *
                     b[static_cast<std::size_t>(transposed ? j * k + x : x * n + j)];
            }
            ASSERT_EQ(c[static_cast<std::size_t>(i * n + j)], sum) << kernels->name << i << j;
          }
        }
      }
    }
  }
}

TEST(BackendVectorKernels, MatricesAreTurnedInEveryTable) {
  for (const VectorKernels* kernels : {&vector_base::kernels, &vector_kernels()}) {
    for (const auto& [rows, columns, width] : std::vector<std::array<std::int64_t, 3>>{
             {1, 1, 1}, {16, 16, 16}, {33, 50, 48}, {64, 17, 64}, {5, 40, 5}}) {
      const std::int64_t from_row = columns + 3;
      const std::int64_t to_row = width + 1;
      std::vector<float> from(static_cast<std::size_t>(rows * from_row));
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i + 1);
      std::vector<float> to(static_cast<std::size_t>(columns * to_row), -1.0F);
      kernels->f32.panels.turn(from.data(), from_row, rows, columns, to.data(), to_row, width);
      for (std::int64_t k = 0; k < columns; ++k) {
        for (std::int64_t j = 0; j < to_row; ++j) {
          const float expected = j >= width  ? -1.0F  // not touched
                                 : j >= rows ? 0.0F
                                             : from[static_cast<std::size_t>(j * from_row + k)];
          ASSERT_EQ(to[static_cast<std::size_t>(k * to_row + j)], expected)
              << kernels->name << " " << k << " " << j;
        }
      }
    }
  }
}

TEST(BackendVectorKernels, PairsArePooledInEveryTable) {
  constexpr std::size_t Count = 37;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::array<float, 7> values = {0.0F, -0.0F, 1.0F, nan, -2.0F, 1.0F, 3.0F};
  std::vector<float> upper(2 * Count);
  std::vector<float> lower(2 * Count);
  std::vector<float> dy(Count);
  for (std::size_t i = 0; i < 2 * Count; ++i) {
    upper[i] = values[i * i % 7];
    lower[i] = values[(3 * i + 1) % 7];
    dy[i / 2] = static_cast<float>(i + 1);
  }
  for (const VectorKernels* kernels : {&vector_base::kernels, &vector_kernels()}) {
    std::vector<float> y(Count);
    std::vector<float> du(2 * Count);
    std::vector<float> dl(2 * Count);
    kernels->max_of_pairs(upper.data(), lower.data(), Count, y.data());
    kernels->max_of_pairs_backward(upper.data(), lower.data(), dy.data(), Count, du.data(),
                                   dl.data());
    for (std::size_t i = 0; i < Count; ++i) {
      const std::array<float, 4> x = {upper[2 * i], upper[2 * i + 1], lower[2 * i],
                                      lower[2 * i + 1]};
      const std::array<float, 4> d = {du[2 * i], du[2 * i + 1], dl[2 * i], dl[2 * i + 1]};
      float best = x[0];
      std::size_t first = 0;
      for (std::size_t k = 1; k < 4; ++k) {
        if (x[k] > x[first] || (std::isnan(x[k]) && !std::isnan(x[first]))) first = k;
        if (!(best > x[k] || std::isnan(best))) best = x[k];
      }
      EXPECT_EQ(std::bit_cast<std::uint32_t>(y[i]), std::bit_cast<std::uint32_t>(best)) << i;
      for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(d[k], k == first ? dy[i] : 0.0F) << i;
    }
  }
}

TEST(BackendVectorKernels, HalvesConvertBothWaysInEveryTable) {
  std::vector<const VectorKernels*> tables = {&vector_base::kernels, &vector_kernels()};
  for (const VectorKernels* k : tables) {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const auto half = static_cast<std::uint16_t>(bits);
      Float16 f16;
      BFloat16 bf16;
      f16.bits = bf16.bits = half;
      float x = 0;
      std::uint16_t back = 0;
      k->widen_f16(&half, &x, 1);
      if (const auto d = static_cast<double>(f16); d == d) {
        ASSERT_EQ(static_cast<double>(x), d);
        k->narrow_f16(&x, &back, 1);
        ASSERT_EQ(back, half);
        for (const float y : {x * 1.0003F, x * 1.00048828125F, x * 0.9997F, x + 1e-8F}) {
          k->narrow_f16(&y, &back, 1);
          ASSERT_EQ(back, Float16(static_cast<double>(y)).bits) << k->name << ' ' << y;
        }
      } else {
        ASSERT_NE(x, x);
      }
      k->widen_bf16(&half, &x, 1);
      if (const auto d = static_cast<double>(bf16); d == d) {
        ASSERT_EQ(static_cast<double>(x), d);
        for (const float y : {x, x * 1.0003F, x * 1.001953125F, x * 1.00390625F}) {
          k->narrow_bf16(&y, &back, 1);
          ASSERT_EQ(back, BFloat16(static_cast<double>(y)).bits) << k->name << ' ' << y;
        }
      } else {
        ASSERT_NE(x, x);
      }
    }
  }
}

}  // namespace
}  // namespace ricci::cpu::vector_kernels_test
