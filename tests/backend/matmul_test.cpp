#include "backend/cpu/structured/matmul.h"

#include <array>
#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/type/tensor.h"

#include "backend/cpu/kernels/vector_kernels.h"
#include "support/compare.h"
#include "support/pools.h"

namespace ricci::cpu::matmul_test {
namespace {

// How a test lays out an operand.
enum class Order { Rows, Columns, Gaps, Reversed, Interleaved };
constexpr Order AllOrders[] = {Order::Rows, Order::Columns, Order::Gaps, Order::Reversed};

struct Laid {
  MatmulLayout layout;
  std::int64_t first = 0;  // index of element [0, …]
  std::int64_t size = 0;   // elements of storage
};

// The same element of all matrices side by side.
Laid interleaved(const std::vector<std::int64_t>& batch, std::int64_t rows, std::int64_t columns) {
  Laid l;
  l.layout.batch.assign(batch.size(), 0);
  std::int64_t batches = 1;
  for (std::size_t i = batch.size(); i-- > 0;) {
    l.layout.batch[i] = batches;
    batches *= batch[i];
  }
  l.layout.row = columns * batches;
  l.layout.column = batches;
  l.size = rows * columns * batches;
  return l;
}

// `shared[i]`: the batch axis i repeats one matrix.
Laid lay_out(Order order, const std::vector<std::int64_t>& batch, std::int64_t rows,
             std::int64_t columns, const std::vector<bool>& shared = {}) {
  Laid l;
  std::int64_t matrix = rows * columns;
  switch (order) {
    case Order::Rows: l.layout.row = columns, l.layout.column = 1; break;
    case Order::Columns: l.layout.row = 1, l.layout.column = rows; break;
    case Order::Gaps:
      l.layout.row = 2 * columns + 3, l.layout.column = 2;
      matrix = rows * l.layout.row;
      break;
    case Order::Reversed:
      l.layout.row = -columns, l.layout.column = 1;
      l.first = rows > 0 ? (rows - 1) * columns : 0;
      break;
    case Order::Interleaved: return interleaved(batch, rows, columns);
  }
  l.layout.batch.assign(batch.size(), 0);
  l.size = matrix;
  for (std::size_t i = batch.size(); i-- > 0;) {
    if (i < shared.size() && shared[i]) continue;
    l.layout.batch[i] = l.size;
    l.size *= batch[i];
  }
  return l;
}

template <class T>
T number(std::mt19937& random) {
  const int n = static_cast<int>(random() % 201) - 100;
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    const int i = static_cast<int>(random() % 201) - 100;
    return T(static_cast<typename T::value_type>(n) / 64,
             static_cast<typename T::value_type>(i) / 64);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random());
  } else {
    return static_cast<T>(n / 64.0);
  }
}

template <class T>
auto wide(T x) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    return std::complex<double>(x);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<std::uint64_t>(x);
  } else {
    return static_cast<double>(x);
  }
}

double tolerance(DType dtype) {
  switch (dtype) {
    case DType::F16: return 1e-3;
    case DType::BF16: return 8e-3;
    case DType::F32:
    case DType::C64: return 2e-6;
    case DType::F64:
    case DType::C128: return 1e-14;
    default: return 0;
  }
}

struct Case {
  std::vector<std::int64_t> batch;
  std::int64_t m, n, k;
  Order a = Order::Rows, b = Order::Rows, c = Order::Rows;
  std::vector<bool> a_shared, b_shared;
  bool accumulate = false;
};

template <class T>
void check(const Case& t) {
  SCOPED_TRACE(::testing::Message()
               << name(dtype_of<T>) << " m " << t.m << " n " << t.n << " k " << t.k << " orders "
               << int(t.a) << int(t.b) << int(t.c) << " accumulate " << t.accumulate);
  const Laid la = lay_out(t.a, t.batch, t.m, t.k, t.a_shared);
  const Laid lb = lay_out(t.b, t.batch, t.k, t.n, t.b_shared);
  const Laid lc = lay_out(t.c, t.batch, t.m, t.n);
  std::mt19937 random(7);
  std::vector<T> a(static_cast<std::size_t>(la.size)), b(static_cast<std::size_t>(lb.size));
  std::vector<T> c(static_cast<std::size_t>(lc.size));
  for (auto* v : {&a, &b, &c}) {
    for (T& x : *v) x = number<T>(random);
  }
  const MatmulPlan plan({.dtype = dtype_of<T>,
                         .batch = t.batch,
                         .m = t.m,
                         .n = t.n,
                         .k = t.k,
                         .a = la.layout,
                         .b = lb.layout,
                         .c = lc.layout,
                         .accumulate = t.accumulate});
  std::vector<T> first;
  for (ThreadPool& pool : testing::pools()) {
    std::vector<T> out = c;
    std::vector<std::max_align_t> scratch(
        static_cast<std::size_t>(plan.scratch_bytes()) / sizeof(std::max_align_t) + 8);
    plan.run(pool, a.data() + la.first, b.data() + lb.first, out.data() + lc.first, scratch.data());
    if (first.empty()) first = out;
    ASSERT_TRUE(testing::same_bits(first, out)) << pool.threads() << " threads";
  }
  // Elements between c's are not touched: change c where it should be, then compare everything.
  std::vector<T> expected = c;
  std::int64_t batches = 1;
  for (const std::int64_t s : t.batch) batches *= s;
  for (std::int64_t beta = 0; beta < batches; ++beta) {
    std::int64_t at[3] = {la.first, lb.first, lc.first};
    std::int64_t rest = beta;
    for (std::size_t i = t.batch.size(); i-- > 0;) {
      at[0] += rest % t.batch[i] * la.layout.batch[i];
      at[1] += rest % t.batch[i] * lb.layout.batch[i];
      at[2] += rest % t.batch[i] * lc.layout.batch[i];
      rest /= t.batch[i];
    }
    for (std::int64_t i = 0; i < t.m; ++i) {
      for (std::int64_t j = 0; j < t.n; ++j) {
        const auto to = static_cast<std::size_t>(at[2] + i * lc.layout.row + j * lc.layout.column);
        decltype(wide(T{})) sum{};
        double size = t.accumulate ? 2 : 0;
        if (t.accumulate) sum = wide(c[to]);
        for (std::int64_t k = 0; k < t.k; ++k) {
          const auto x =
              wide(a[static_cast<std::size_t>(at[0] + i * la.layout.row + k * la.layout.column)]);
          const auto y =
              wide(b[static_cast<std::size_t>(at[1] + k * lb.layout.row + j * lb.layout.column)]);
          sum += x * y;
          if constexpr (!std::is_integral_v<T>) size += std::abs(x * y);
        }
        if constexpr (std::is_integral_v<T>) {
          ASSERT_EQ(first[to], static_cast<T>(sum)) << i << ' ' << j;
        } else {
          ASSERT_LE(std::abs(wide(first[to]) - sum), tolerance(dtype_of<T>) * size)
              << i << ' ' << j;
        }
        expected[to] = first[to];
      }
    }
  }
  EXPECT_TRUE(testing::same_bits(first, expected));
}

template <class T>
class BackendMatmul : public ::testing::Test {};
using Elements = ::testing::Types<float, double, Float16, BFloat16, std::complex<float>,
                                  std::complex<double>, std::int64_t, std::int32_t, std::int16_t,
                                  std::int8_t, std::uint8_t, std::uint32_t>;
TYPED_TEST_SUITE(BackendMatmul, Elements);

TYPED_TEST(BackendMatmul, EverySizeAndOrder) {
  const std::int64_t sizes[][3] = {{1, 1, 1},   {3, 5, 7},    {16, 16, 16}, {33, 17, 40},
                                   {1, 70, 50}, {4, 70, 9},   {70, 1, 50},  {70, 3, 33},
                                   {40, 50, 1}, {70, 130, 37}};
  for (const auto& s : sizes) {
    for (const Order a : AllOrders) {
      for (const Order b : AllOrders) {
        for (const Order c : AllOrders) {
          check<TypeParam>({.m = s[0],
                            .n = s[1],
                            .k = s[2],
                            .a = a,
                            .b = b,
                            .c = c,
                            .accumulate = (s[0] + static_cast<int>(a)) % 2 == 0});
        }
      }
    }
  }
}

TYPED_TEST(BackendMatmul, EmptyAxes) {
  check<TypeParam>({.m = 0, .n = 3, .k = 4});
  check<TypeParam>({.m = 3, .n = 0, .k = 4});
  check<TypeParam>({.batch = {0}, .m = 3, .n = 2, .k = 4});
  for (const Order c : AllOrders) {
    check<TypeParam>({.batch = {2}, .m = 3, .n = 5, .k = 0, .c = c});
    check<TypeParam>({.m = 3, .n = 5, .k = 0, .c = c, .accumulate = true});
  }
}

TYPED_TEST(BackendMatmul, BatchesBroadcast) {
  for (const std::int64_t m : {2, 40}) {
    for (const Order a : {Order::Rows, Order::Columns}) {
      check<TypeParam>({.batch = {3, 2}, .m = m, .n = 7, .k = 36, .a = a});
      check<TypeParam>(
          {.batch = {3, 2}, .m = m, .n = 7, .k = 36, .a = a, .b_shared = {true, true}});
      check<TypeParam>(
          {.batch = {3, 2}, .m = m, .n = 37, .k = 6, .a = a, .b_shared = {false, true}});
      check<TypeParam>({.batch = {3, 2},
                        .m = m,
                        .n = 7,
                        .k = 6,
                        .b = a,
                        .a_shared = {true, false},
                        .b_shared = {false, true}});
      check<TypeParam>(
          {.batch = {1, 5}, .m = m, .n = 40, .k = 6, .b = a, .a_shared = {true, true}});
    }
  }
}

// Batches that no number of lanes divides, matrices that fill a vector and that do not.
TYPED_TEST(BackendMatmul, ManyTinyMatrices) {
  const std::int64_t sizes[][3] = {{1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {3, 1, 3}, {1, 3, 3},
                                   {4, 4, 4}, {2, 5, 8}, {5, 4, 7}, {7, 7, 3}, {8, 8, 8}};
  const std::vector<std::int64_t> batches[] = {{37}, {3, 5}, {4}};
  for (const auto& s : sizes) {
    for (const Order order : {Order::Rows, Order::Columns, Order::Gaps, Order::Reversed}) {
      for (const auto& batch : batches) {
        const bool accumulate = (s[1] + static_cast<int>(order)) % 2 == 0;
        check<TypeParam>(
            {batch, s[0], s[1], s[2], order, Order::Rows, Order::Rows, {}, {}, accumulate});
        check<TypeParam>({batch, s[0], s[1], s[2], Order::Rows, order, Order::Rows});
        check<TypeParam>({batch, s[0], s[1], s[2], order, Order::Columns, order});
      }
    }
    const bool accumulate = s[0] % 2 == 0;
    constexpr Order Side = Order::Interleaved;
    check<TypeParam>({{37}, s[0], s[1], s[2], Side, Side, Side, {}, {}, accumulate});
    check<TypeParam>({{3, 5}, s[0], s[1], s[2], Side, Order::Rows, Order::Columns});
    check<TypeParam>(
        {.batch = {3, 19}, .m = s[0], .n = s[1], .k = s[2], .a_shared = {true, false}});
    check<TypeParam>(
        {.batch = {3, 19}, .m = s[0], .n = s[1], .k = s[2], .b_shared = {false, true}});
  }
}

TEST(BackendMatmulTiles, ManyTinyMatricesAreCutAndStayRight) {
  check<float>({.batch = {3, 20000}, .m = 3, .n = 3, .k = 3});
  check<double>({.batch = {20001}, .m = 2, .n = 3, .k = 4, .a = Order::Columns});
  check<std::complex<float>>({.batch = {9000}, .m = 3, .n = 3, .k = 3});
}

// Few rows meet a matrix that no cache holds: tiles are parts of the depth, or many columns.
template <class T>
void check_far(std::int64_t n, std::int64_t k) {
  for (const std::int64_t m : {1, 4, 7, 12}) {
    check<T>({.m = m, .n = n, .k = k, .accumulate = m == 4});
    check<T>({.m = m, .n = n, .k = k, .a = Order::Columns, .c = Order::Columns});
  }
  check<T>({.m = 1, .n = n, .k = k, .b = Order::Columns});
  check<T>({.m = n, .n = 1, .k = k});
}

TEST(BackendMatmulTiles, FewRowsAndAFarMatrix) {
  check_far<float>(1100, 1003);
  check_far<float>(20001, 61);
  check_far<double>(700, 801);
  check_far<BFloat16>(2049, 1029);
  check_far<Float16>(2049, 1029);
  check_far<std::complex<float>>(700, 801);
  check<float>({.batch = {2}, .m = 3, .n = 1030, .k = 1100});
  check<BFloat16>({.batch = {9}, .m = 2, .n = 1030, .k = 2100, .a_shared = {true}});
}

// Gram matrices: small results of a long depth, many of them.
TEST(BackendMatmulTiles, FewRowsAndColumnsOfALongDepth) {
  for (const auto& [m, n] : {std::pair{1, 1}, {3, 3}, {3, 1}, {4, 17}, {2, 64}, {4, 65}}) {
    for (const Order order : {Order::Rows, Order::Columns}) {
      check<float>({.batch = {9}, .m = m, .n = n, .k = 70, .a = order});
      check<double>({.batch = {9}, .m = m, .n = n, .k = 70, .a = order, .accumulate = true});
      check<BFloat16>({.batch = {9}, .m = m, .n = n, .k = 71, .a = order});
      check<std::complex<float>>({.batch = {9}, .m = m, .n = n, .k = 70, .a = order});
    }
  }
}

// A bias or an activation may run in tiles, which then are whole rows.
TEST(BackendMatmulTiles, PartsOfTheDepthGiveWholeRows) {
  constexpr std::int64_t Size = 1100;
  const MatmulPlan plan({.m = 2,
                         .n = Size,
                         .k = Size,
                         .a = {{}, Size, 1},
                         .b = {{}, Size, 1},
                         .c = {{}, Size, 1},
                         .whole_rows = true});
  EXPECT_FALSE(plan.reads_a_in_tiles());
  EXPECT_GT(plan.pack_tiles(), 1);
  for (std::int64_t t = 0; t < plan.tiles(); ++t) {
    EXPECT_EQ(plan.tile(t).column0, 0);
    EXPECT_EQ(plan.tile(t).column1, Size);
  }
}

// Axes that follow each other in all operands are one.
TEST(BackendMatmulTiles, AdjoiningBatchAxesAreJoined) {
  for (const Order order : {Order::Rows, Order::Interleaved}) {
    check<float>({.batch = {2, 3, 4}, .m = 40, .n = 33, .k = 35, .a = order, .b = order});
    check<BFloat16>({.batch = {2, 3, 4}, .m = 40, .n = 33, .k = 35, .a = order, .b = order});
    check<float>({.batch = {2, 3, 4},
                  .m = 40,
                  .n = 33,
                  .k = 35,
                  .a = order,
                  .b_shared = {false, true, true}});
  }
}

// What machines with other vectors run.
template <class T>
void check_tiny_kernel(const ProductKernels<T>& kernels, std::int64_t m, std::int64_t n,
                       std::int64_t k) {
  constexpr std::int64_t Count = 21;
  std::mt19937 random(5);
  std::vector<T> a(static_cast<std::size_t>(Count * m * k));
  std::vector<T> b(static_cast<std::size_t>(Count * k * n));
  std::vector<T> c(static_cast<std::size_t>(Count * m * n));
  for (T& x : a) x = number<T>(random);
  for (T& x : b) x = number<T>(random);
  kernels.tiny({.count = Count,
                .m = m,
                .n = n,
                .k = k,
                .a = {a.data(), m * k, k, 1},
                .b = {b.data(), k * n, n, 1},
                .c = {c.data(), m * n, n, 1}});
  for (std::int64_t i = 0; i < Count * m * n; ++i) {
    double sum = 0;
    for (std::int64_t d = 0; d < k; ++d) {
      sum += wide(a[static_cast<std::size_t>(i / n * k + d)]) *
             wide(b[static_cast<std::size_t>((i / (m * n) * k + d) * n + i % n)]);
    }
    ASSERT_NEAR(c[static_cast<std::size_t>(i)], sum, 1e-5) << m << ' ' << n << ' ' << k << ' ' << i;
  }
}

TEST(BackendMatmulTiles, TinyKernelsOfEveryInstructionSet) {
  std::vector<const VectorKernels*> tables{&vector_base::kernels};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) {
    tables.push_back(&vector_avx2::kernels);
  }
#endif
  for (const VectorKernels* table : tables) {
    SCOPED_TRACE(table->name);
    for (std::int64_t m = 1; m <= 8; ++m) {
      for (std::int64_t n = 1; n <= 8; ++n) {
        for (const std::int64_t k : {1, 2, 3, 5, 8}) {
          check_tiny_kernel(table->f32, m, n, k);
          check_tiny_kernel(table->f64, m, n, k);
        }
      }
    }
  }
}

TEST(BackendMatmulTiles, LargerShapesAreCutAndStayRight) {
  for (const Order a : {Order::Rows, Order::Columns}) {
    for (const Order b : {Order::Rows, Order::Columns}) {
      check<float>({.m = 150, .n = 90, .k = 70, .a = a, .b = b});
      check<float>({.m = 2, .n = 1000, .k = 300, .a = a, .b = b});
      check<float>({.m = 1000, .n = 3, .k = 300, .a = a, .b = b});
      check<float>({.m = 20, .n = 500, .k = 128, .a = a, .b = b, .c = Order::Columns});
      check<double>({.m = 150, .n = 90, .k = 301, .a = a, .b = b});
      check<BFloat16>({.m = 150, .n = 90, .k = 70, .a = a, .b = b});
      check<std::complex<float>>({.m = 150, .n = 60, .k = 70, .a = a, .b = b});
    }
  }
}

// Few rows and a transposed matrix: these rows are turned, not the matrix.
TEST(BackendMatmulTiles, FewRowsMeetATransposedMatrix) {
  for (const std::int64_t m : {5, 8, 31, 33, 64}) {
    for (const Order a : {Order::Rows, Order::Gaps, Order::Reversed}) {
      check<float>({.m = m, .n = 131, .k = 563, .a = a, .b = Order::Columns});
      check<double>({.batch = {3}, .m = m, .n = 140, .k = 133, .a = a, .b = Order::Columns});
      check<float>({.batch = {3},
                    .m = m,
                    .n = 140,
                    .k = 133,
                    .a = a,
                    .b = Order::Columns,
                    .c = Order::Gaps,
                    .a_shared = {true}});
    }
    check<std::int64_t>({.m = m, .n = 300, .k = 131, .b = Order::Columns});
    check<float>({.m = m, .n = 300, .k = 131, .b = Order::Columns, .accumulate = true});
  }
}

// Several tiles down and across, and more than one block of the depth, at sizes no strip divides.
TEST(BackendMatmulTiles, ManyTilesAndBlocksOfTheDepthStayRight) {
  for (const Order a : {Order::Rows, Order::Columns}) {
    for (const Order b : {Order::Rows, Order::Columns}) {
      for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
               {20, 2000, 300}, {130, 200, 601}, {64, 257, 513}, {3, 4000, 300}, {301, 67, 259}}) {
        const MatmulPlan plan(
            {.m = m, .n = n, .k = k, .a = {{}, k, 1}, .b = {{}, n, 1}, .c = {{}, n, 1}});
        EXPECT_GT(plan.tiles(), 1) << m << " " << n << " " << k;
        check<float>({.m = m, .n = n, .k = k, .a = a, .b = b});
      }
      check<double>({.m = 130, .n = 200, .k = 301, .a = a, .b = b});
      check<BFloat16>({.m = 70, .n = 150, .k = 300, .a = a, .b = b});
      check<std::complex<float>>({.m = 70, .n = 150, .k = 300, .a = a, .b = b});
      check<std::int32_t>({.m = 70, .n = 150, .k = 300, .a = a, .b = b});
    }
  }
}

// One column, or one row, in each of many batches that share the other factor is one product.
TEST(BackendMatmulTiles, BatchesOfVectorsBecomeOneMatrix) {
  const MatmulPlan columns({.batch = {32},
                            .m = 40,
                            .n = 1,
                            .k = 50,
                            .a = {{0}, 1, 40},
                            .b = {{50}, 1, 0},
                            .c = {{40}, 1, 1}});
  EXPECT_EQ(columns.batches(), 1);
  const MatmulPlan rows({.batch = {32},
                         .m = 1,
                         .n = 40,
                         .k = 50,
                         .a = {{50}, 0, 1},
                         .b = {{0}, 40, 1},
                         .c = {{40}, 40, 1}});
  EXPECT_EQ(rows.batches(), 1);
  EXPECT_EQ(rows.rows(), 32);
}

TEST(BackendMatmulTiles, CoverEveryElementOnce) {
  for (const bool whole_rows : {false, true}) {
    for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
             {512, 300, 200}, {3, 4000, 500}, {4000, 3, 500}, {20, 2000, 300}, {5, 5, 5}}) {
      const MatmulPlan plan({.batch = {3},
                             .m = m,
                             .n = n,
                             .k = k,
                             .a = {{m * k}, k, 1},
                             .b = {{k * n}, n, 1},
                             .c = {{m * n}, n, 1},
                             .whole_rows = whole_rows});
      std::vector<int> seen(static_cast<std::size_t>(3 * m * n));
      for (std::int64_t i = 0; i < plan.tiles(); ++i) {
        const MatmulTile t = plan.tile(i);
        if (whole_rows) {
          EXPECT_EQ(t.column1 - t.column0, n);
        }
        for (std::int64_t b = t.batch0; b < t.batch1; ++b) {
          for (std::int64_t r = t.row0; r < t.row1; ++r) {
            for (std::int64_t c = t.column0; c < t.column1; ++c) {
              ++seen[static_cast<std::size_t>((b * m + r) * n + c)];
            }
          }
        }
      }
      for (const int s : seen) ASSERT_EQ(s, 1);
    }
  }
}

// Sums that are not rounded yet: those of f16 in f32, those of i8 in u32.
TEST(BackendMatmulTiles, WideResultsAreTheSums) {
  const auto check_wide = []<class T, class R>(std::int64_t m, std::int64_t n, std::int64_t k) {
    SCOPED_TRACE(::testing::Message() << name(dtype_of<T>) << ' ' << m << ' ' << n << ' ' << k);
    std::mt19937 random(3);
    std::vector<T> a(static_cast<std::size_t>(m * k));
    std::vector<T> b(static_cast<std::size_t>(k * n));
    for (T& x : a) x = number<T>(random);
    for (T& x : b) x = number<T>(random);
    const MatmulPlan plan({.dtype = dtype_of<T>,
                           .m = m,
                           .n = n,
                           .k = k,
                           .a = {{}, k, 1},
                           .b = {{}, n, 1},
                           .c = {{}, n, 1},
                           .wide_c = true});
    std::vector<R> c(static_cast<std::size_t>(m * n), R(77));
    std::vector<std::max_align_t> scratch(
        static_cast<std::size_t>(plan.scratch_bytes()) / sizeof(std::max_align_t) + 8);
    ThreadPool pool(1);
    plan.run(pool, a.data(), b.data(), c.data(), scratch.data());
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        R sum{};  // exact: multiples of 2^-12 below 2^12, or wrapped
        for (std::int64_t l = 0; l < k; ++l) {
          sum += static_cast<R>(wide(a[static_cast<std::size_t>(i * k + l)])) *
                 static_cast<R>(wide(b[static_cast<std::size_t>(l * n + j)]));
        }
        ASSERT_EQ(c[static_cast<std::size_t>(i * n + j)], sum) << i << ' ' << j;
      }
    }
  };
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
           {3, 5, 7}, {2, 3, 0}, {3, 70, 40}, {9, 70, 40}, {40, 70, 50}, {40, 3, 50}}) {
    check_wide.operator()<Float16, float>(m, n, k);
    check_wide.operator()<BFloat16, float>(m, n, k);
    check_wide.operator()<float, float>(m, n, k);
    check_wide.operator()<std::int8_t, std::uint32_t>(m, n, k);
  }
}

TEST(BackendMatmulTiles, BatchesOfOneMatrixBecomeRows) {
  const MatmulPlan plan({.batch = {4, 8},
                         .m = 16,
                         .n = 64,
                         .k = 64,
                         .a = {{8 * 16 * 64, 16 * 64}, 64, 1},
                         .b = {{0, 0}, 64, 1},
                         .c = {{8 * 16 * 64, 16 * 64}, 64, 1}});
  EXPECT_EQ(plan.batches(), 1);
  EXPECT_EQ(plan.rows(), 4 * 8 * 16);
}

}  // namespace
}  // namespace ricci::cpu::matmul_test
