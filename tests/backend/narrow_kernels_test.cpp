// Products of 16-bit floats on every instruction set this machine has. Numbers are small whole
// ones, so that sums are exact in any order.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/type/tensor.h"

#include "backend/cpu/kernels/cpu_features.h"
#include "backend/cpu/kernels/vector_kernels.h"

namespace ricci::cpu::narrow_kernels_test {
namespace {

struct Table {
  std::string name;
  const NarrowKernels* narrow;
  const PanelKernels<float>* panels;
  bool bf16;
};

std::vector<Table> tables() {
  std::vector<Table> out;
  const auto add = [&](const VectorKernels& k, bool pairs) {
    const std::string name = k.name;
    out.push_back({name + " f16", &k.f16, &k.f32.panels, false});
    out.push_back({name + " bf16", &k.bf16, &k.f32.panels, true});
    if (pairs) out.push_back({name + " pairs", &k.bf16_pairs, &k.f32.panels, true});
  };
  add(vector_base::kernels, false);
#if defined(__x86_64__)
  if (cpu_has("avx2") && cpu_has("fma")) add(vector_avx2::kernels, false);
  if (cpu_has("avx512bw") && cpu_has("avx512vl") && cpu_has("avx512dq")) {
    add(vector_avx512::kernels, cpu_has("avx512bf16"));
  }
#endif
  return out;
}

std::uint16_t narrowed(int x, bool bf16) { return bf16 ? BFloat16(x).bits : Float16(x).bits; }
int a_number(std::int64_t i, std::int64_t k) { return static_cast<int>((3 * i + 5 * k) % 7) - 3; }
int b_number(std::int64_t k, std::int64_t j) { return static_cast<int>((2 * k + 3 * j) % 9) - 4; }

struct Sizes {
  std::int64_t m, n, k;
};
constexpr Sizes All[] = {{1, 1, 1},    {3, 70, 9},   {4, 64, 33},
                         {7, 130, 66}, {13, 65, 37}, {20, 200, 401}};

// [rows, columns], row by row or column by column.
template <class F>
std::vector<std::uint16_t> matrix(std::int64_t rows, std::int64_t columns, bool turned, bool bf16,
                                  const F& number) {
  std::vector<std::uint16_t> out(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::int64_t at = turned ? j * rows + i : i * columns + j;
      out[static_cast<std::size_t>(at)] = narrowed(number(i, j), bf16);
    }
  }
  return out;
}

void expect_product(const Sizes& s, const std::vector<float>& c, float before) {
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      float sum = before;
      for (std::int64_t k = 0; k < s.k; ++k) {
        sum += static_cast<float>(a_number(i, k) * b_number(k, j));
      }
      ASSERT_EQ(c[static_cast<std::size_t>(i * s.n + j)], sum) << i << ' ' << j;
    }
  }
}

TEST(BackendNarrowKernels, PanelsOfEveryOrder) {
  for (const Table& t : tables()) {
    for (const Sizes& s : All) {
      for (const bool a_turned : {false, true}) {
        for (const bool b_turned : {false, true}) {
          SCOPED_TRACE(t.name + " m " + std::to_string(s.m) + (a_turned ? " turned" : "") +
                       (b_turned ? " with turned" : ""));
          const auto a = matrix(s.m, s.k, a_turned, t.bf16, a_number);
          const auto b = matrix(s.k, s.n, b_turned, t.bf16, b_number);
          const PanelKernels<float>& p = *t.panels;
          const std::int64_t strips = (s.m + p.rows - 1) / p.rows;
          const std::int64_t columns = (s.n + p.columns - 1) / p.columns * p.columns;
          std::vector<float> rows(static_cast<std::size_t>(strips * p.strip_elements + p.slack));
          std::vector<float> panel(static_cast<std::size_t>(columns * p.depth));
          std::vector<float> c(static_cast<std::size_t>(s.m * s.n), 2.0F);
          const std::int64_t most = p.depth * t.narrow->together;
          for (std::int64_t k = 0; k < s.k; k += most) {
            const std::int64_t depth = std::min(most, s.k - k);
            t.narrow->pack_rows(a.data() + (a_turned ? k * s.m : k), a_turned ? 1 : s.k,
                                a_turned ? s.m : 1, s.m, depth, rows.data());
            t.narrow->pack_columns(b.data() + (b_turned ? k : k * s.n), b_turned ? 1 : s.n,
                                   b_turned ? s.k : 1, s.n, depth, panel.data());
            t.narrow->multiply({.m = s.m,
                                .n = s.n,
                                .depth = (depth + t.narrow->together - 1) / t.narrow->together,
                                .a = rows.data(),
                                .a_as_rows = !a_turned,
                                .b = panel.data(),
                                .c = c.data(),
                                .c_row = s.n,
                                .accumulate = true});
          }
          expect_product(s, c, 2.0F);
        }
      }
    }
  }
}

TEST(BackendNarrowKernels, FewRowsReadTheMatrixAsItLies) {
  for (const Table& t : tables()) {
    for (const Sizes& s : All) {
      SCOPED_TRACE(t.name + " m " + std::to_string(s.m));
      std::vector<float> a;
      for (std::int64_t i = 0; i < s.m; ++i) {
        for (std::int64_t k = 0; k < s.k; ++k) a.push_back(static_cast<float>(a_number(i, k)));
      }
      for (const bool turned : {false, true}) {
        if (turned && s.m > 4) continue;
        const auto b = matrix(s.k, s.n, turned, t.bf16, b_number);
        std::vector<float> c(static_cast<std::size_t>(s.m * s.n), 2.0F);
        (turned ? t.narrow->dots : t.narrow->rows)({.m = s.m,
                                                    .n = s.n,
                                                    .k = s.k,
                                                    .a = a.data(),
                                                    .a_row = s.k,
                                                    .a_column = 1,
                                                    .b = b.data(),
                                                    .b_row = turned ? 1 : s.n,
                                                    .b_column = turned ? s.k : 1,
                                                    .c = c.data(),
                                                    .c_row = s.n,
                                                    .accumulate = true});
        expect_product(s, c, 2.0F);
      }
    }
  }
}

}  // namespace
}  // namespace ricci::cpu::narrow_kernels_test
