// Batches of small matrices, which the CPU factorises one to a lane: factors multiply to what was
// factorised, whatever stands in the other lanes, on any number of threads.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/linalg.h"
#include "ricci/runtime/compiled_graph.h"

#include "backend/agreement.h"
#include "backend/cpu/kernels/cpu_features.h"
#include "backend/cpu/kernels/vector_kernels.h"
#include "support/compare.h"
#include "support/every_device.h"

namespace ricci::testing::small_matrices_test {
namespace {

constexpr std::int64_t Batch = 21;  // a few groups, the last one not full

double largest(const Tensor& t) {
  double out = 0;
  for (const double x : t.numbers<double>()) {
    if (!(std::abs(x) <= out)) out = std::abs(x);  // a NaN too
  }
  return out;
}
Value as_row(Value d) {
  Dims dims = d.dims();
  dims.insert(dims.end() - 1, Dim(1));
  return reshape_to(d, std::move(dims));
}
Value excess(Value q) {
  const Value gram = matmul(transpose_last(q), q);
  return gram - matrix_power(gram, 0);
}

class BackendSmallMatrices : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_device("cpu")) GTEST_SKIP() << "there is no CPU back end";
  }
  // On one thread, and the same bits on more.
  static std::vector<Tensor> run(const Graph& g, const Feeds& feeds) {
    const std::vector<Tensor> one = compile(g, Device::cpu(1)).run(feeds);
    for (const int threads : {2, 3}) {
      const std::vector<Tensor> more = compile(g, Device::cpu(threads)).run(feeds);
      for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(more[i].identical(one[i]));
    }
    return one;
  }
};

TEST_F(BackendSmallMatrices, FactorsOfEverySize) {
  for (const DType dtype : {DType::F32, DType::F64, DType::BF16}) {
    for (std::int64_t rows = 1; rows <= 9; ++rows) {
      for (const std::int64_t columns : {rows, std::int64_t{3}, std::int64_t{8}}) {
        SCOPED_TRACE(fmt::format("{} [{}, {}]", name(dtype), rows, columns));
        const Type type{dtype, {Batch, rows, columns}};
        Graph g;
        const Value a = g.input("a", type);
        const auto [q, r] = qr(a);
        const LuFactors f = lu_factors(a);
        Dims dims = f.permutation.dims();
        dims.emplace_back(1);
        const Value order = broadcast_to(reshape_to(f.permutation, std::move(dims)), a.dims());
        g.set_outputs({matmul(q, r) - a, excess(q),
                       matmul(f.l, f.u) - take_along_axis(a, order, {.axis = 1})});
        const double unit = dtype == DType::F64 ? 1e-14 : dtype == DType::F32 ? 1e-6 : 2e-2;
        for (const Tensor& rest : run(g, {{"a", random_tensor(3, type, -1, 1)}})) {
          EXPECT_LE(largest(rest), unit * 16);
        }
      }
    }
  }
}

TEST_F(BackendSmallMatrices, SquareFactorsOfEverySize) {
  for (const DType dtype : {DType::F32, DType::F64}) {
    for (std::int64_t n = 1; n <= 9; ++n) {
      SCOPED_TRACE(fmt::format("{} {}", name(dtype), n));
      const Type type{dtype, {Batch, n, n}};
      Graph g;
      const Value a = g.input("a", type);
      const Value s = (a + transpose_last(a)) * 0.5;
      const Value positive = matmul(a, transpose_last(a)) + matrix_power(a, 0);
      const Value l = cholesky(positive);
      const auto [w, v] = eigh(a);
      const Value b = narrow(a, {.axis = 2, .start = 0, .len = (n + 1) / 2});
      const Value x = batched_dense_solve(positive, b);
      g.set_outputs({matmul(l, transpose_last(l)) - positive, matmul(s, v) - v * as_row(w),
                     excess(v), w - eigvalsh(a), matmul(positive, x) - b});
      for (const Tensor& rest : run(g, {{"a", random_tensor(4, type, -1, 1)}})) {
        EXPECT_LE(largest(rest), (dtype == DType::F64 ? 1e-14 : 3e-6) * 16);
      }
    }
  }
}

// Values that repeat, cluster or differ by hundreds of orders of magnitude.
// Sums begin with zero: -1 · 0 alone is 0, however many matrices there are.
TEST_F(BackendSmallMatrices, ProductsThatAreZeroHaveOneSign) {
  for (const std::int64_t count : {1, 3, 8, 33}) {
    for (const std::int64_t depth : {1, 2, 3}) {
      Graph g;
      const Value a = g.input("a", f32({count, 2, depth}));
      const Value b = g.input("b", f32({count, depth, 2}));
      g.set_outputs({matmul(a, b)});
      const Feeds feeds = {{"a", Tensor::splat(a.type(), -1)}, {"b", Tensor::zeros(b.type())}};
      for (const double x : run(g, feeds)[0].numbers<double>()) {
        EXPECT_FALSE(std::signbit(x)) << count << " of depth " << depth;
      }
    }
  }
}

// A column may be so small that its squares are nothing, beside one that is not.
TEST_F(BackendSmallMatrices, SmallColumnsHaveDirections) {
  const Type type = f64({Batch, 2, 2});
  std::vector<double> numbers;
  for (std::int64_t b = 0; b < Batch; ++b) {
    const double small = std::pow(10.0, -15.0 * static_cast<double>(b));
    numbers.insert(numbers.end(), {small, 0, small, 1});
  }
  Graph g;
  const auto [q, r] = qr(g.input("a", type));
  g.set_outputs({q, r});
  const std::vector<Tensor> out = run(g, {{"a", Tensor::from_numbers<double>(type, numbers)}});
  const std::vector<double> qs = out[0].numbers<double>();
  const std::vector<double> rs = out[1].numbers<double>();
  for (std::size_t b = 0; b < static_cast<std::size_t>(Batch); ++b) {
    SCOPED_TRACE(b);
    for (const std::size_t i : {0, 2}) EXPECT_NEAR(qs[4 * b + i], std::sqrt(0.5), 1e-14);
    const double norm = std::sqrt(2.0) * numbers[4 * b];
    EXPECT_NEAR(rs[4 * b], norm, 1e-14 * norm);
    EXPECT_NEAR(rs[4 * b + 1], std::sqrt(0.5), 1e-14);
  }
}

TEST_F(BackendSmallMatrices, DegenerateAndExtremeMatrices) {
  for (const std::int64_t n : {2, 3, 5, 8}) {
    const Type type = f64({Batch, n, n});
    std::vector<double> numbers = random_tensor(9, type, -1, 1).numbers<double>();
    const auto matrix = [&](std::int64_t b, const auto& element) {
      for (std::int64_t i = 0; i < n * n; ++i) {
        double& x = numbers[static_cast<std::size_t>(b * n * n + i)];
        x = element(std::max(i / n, i % n), std::min(i / n, i % n), x);
      }
    };
    matrix(0, [](auto, auto, double) { return 0.0; });
    matrix(1, [](auto i, auto j, double) { return i == j ? 1.0 : 0.0; });
    matrix(2, [](auto, auto, double) { return 1.0; });
    matrix(3, [](auto, auto, double x) { return x * 1e290; });
    matrix(4, [](auto, auto, double x) { return x * 1e-290; });
    matrix(5, [](auto i, auto j, double x) { return (i == j ? 1 : 0) + 1e-9 * x; });
    matrix(6, [](auto i, auto j, double) { return i == j ? std::pow(10.0, -5 * i) : 0.0; });
    matrix(7, [](auto i, auto j, double x) { return x * std::pow(10.0, -4 * (i + j)); });
    for (std::int64_t b = 8; b < Batch; ++b) matrix(b, [](auto, auto, double x) { return x; });
    Graph g;
    const Value a = g.input("a", type);
    const auto [w, v] = eigh(a);
    const auto [q, r] = qr(a);
    const Value s = (a + transpose_last(a)) * 0.5;
    g.set_outputs({w, excess(v), excess(q), matmul(s, v) - v * as_row(w), matmul(q, r) - a});
    const std::vector<Tensor> out = run(g, {{"a", Tensor::from_numbers<double>(type, numbers)}});
    EXPECT_LE(largest(out[1]), 1e-13);
    EXPECT_LE(largest(out[2]), 1e-13);
    const std::vector<double> values = out[0].numbers<double>();
    for (std::int64_t b = 0; b < Batch; ++b) {
      SCOPED_TRACE(fmt::format("{} {}", n, b));
      const auto first = static_cast<std::size_t>(b * n * n);
      const auto last = first + static_cast<std::size_t>(n * n);
      double size = 0;
      for (std::size_t i = first; i < last; ++i) size = std::max(size, std::abs(numbers[i]));
      for (const std::size_t k : {3, 4}) {
        const std::vector<double> rest = out[k].numbers<double>();
        for (std::size_t i = first; i < last; ++i) EXPECT_LE(std::abs(rest[i]), 1e-14 * 8 * size);
      }
      const auto begin = values.begin() + b * n;
      EXPECT_TRUE(std::is_sorted(begin, begin + n));
    }
  }
}

// What a matrix gives does not depend on those beside it, and one without a factor is alone in
// that.
TEST_F(BackendSmallMatrices, LanesDoNotLookAtEachOther) {
  const std::int64_t n = 4;
  const Type type = f32({Batch, n, n});
  const std::vector<double> numbers = random_tensor(2, type, -1, 1).numbers<double>();
  Graph g;
  const Value a = g.input("a", type);
  const auto [q, r] = qr(a);
  const auto [w, v] = eigh(a);
  const Value positive = matmul(a, transpose_last(a)) + matrix_power(a, 0);
  const LuFactors f = lu_factors(a);
  g.set_outputs({q, r, w, v, f.l, f.u, cholesky(positive), cholesky(a)});
  const std::vector<Tensor> whole = run(g, {{"a", Tensor::from_numbers<double>(type, numbers)}});
  std::vector<double> spoilt = numbers;
  for (const std::size_t b : {0, 5, 20}) {
    spoilt[b * n * n + 3] =
        b == 5 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  }
  const std::vector<Tensor> some = run(g, {{"a", Tensor::from_numbers<double>(type, spoilt)}});
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const std::vector<double> x = whole[i].numbers<double>();
    const std::vector<double> y = some[i].numbers<double>();
    const std::size_t each = x.size() / Batch;
    for (std::size_t k = 0; k < x.size(); ++k) {
      const std::size_t b = k / each;
      if (b != 0 && b != 5 && b != 20) {
        EXPECT_TRUE(x[k] == y[k] || (std::isnan(x[k]) && std::isnan(y[k]))) << i << ' ' << k;
      } else if (i < 4) {
        EXPECT_TRUE(std::isnan(y[k])) << i << ' ' << k;
      }
    }
  }
}

TEST_F(BackendSmallMatrices, ASingularSystemIsNamed) {
  Graph g;
  const Value a = g.input("a", f64({Batch, 3, 3}));
  const Value b = g.input("b", f64({Batch, 3, 2}));
  g.set_outputs({batched_dense_solve(a, b)});
  std::vector<double> numbers(Batch * 9, 0.0);
  for (std::size_t i = 0; i < Batch * 9; i += 9) numbers[i] = numbers[i + 4] = numbers[i + 8] = 1;
  numbers[13 * 9 + 8] = 0;
  const CompiledGraph compiled = compile(g, Device::cpu(2));
  try {
    (void)compiled.run({{"a", Tensor::from_numbers<double>(f64({Batch, 3, 3}), numbers)},
                        {"b", random_tensor(1, f64({Batch, 3, 2}), -1, 1)}});
    FAIL() << "it is singular";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::SingularMatrix);
    EXPECT_NE(std::string(e.what()).find("matrix 13 of"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("row 2"), std::string::npos) << e.what();
  }
}

// Small ones by substitution here, larger ones by the library: both ends of what is small.
TEST_F(BackendSmallMatrices, TrianglesOfAnySizeAreSolved) {
  for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::C64, DType::C128}) {
    for (const auto& [n, columns] : {std::pair{1, 1}, std::pair{4, 16}, std::pair{7, 3},
                                     std::pair{20, 20}, std::pair{21, 19}, std::pair{70, 1}}) {
      for (const bool lower : {false, true}) {
        for (const bool transposed : {false, true}) {
          SCOPED_TRACE(
              fmt::format("{} {} by {} {} {}", name(dtype), n, columns, lower, transposed));
          Graph g("solve");
          const Value a = g.input("a", {dtype, {5, n, n}});
          const Value b = g.input("b", {dtype, {5, n, columns}});
          // Diagonally dominant, so that rounding is not multiplied.
          const Value sum = a * (0.25 / n) + matrix_power(a, 0);
          g.set_outputs({triangular_solve(sum, b, {.lower = lower, .transpose = transposed}),
                         triangular_solve(sum, b, {.lower = lower, .unit = true})});
          expect_agreement_everywhere(
              g, {{"a", random_tensor(1, a.type())}, {"b", random_tensor(2, b.type())}});
        }
      }
    }
  }
}

// What machines with other vectors run.
TEST(BackendSmallMatrixKernels, EveryInstructionSet) {
  std::vector<const cpu::VectorKernels*> tables{&cpu::vector_base::kernels};
#if defined(__x86_64__)
  if (cpu::cpu_has("avx2") && cpu::cpu_has("fma")) tables.push_back(&cpu::vector_avx2::kernels);
#endif
  for (const cpu::VectorKernels* table : tables) {
    const cpu::SmallMatrixKernels& k = table->small_matrices;
    for (std::int64_t n = 1; n <= cpu::SmallMatrixKernels::Most; ++n) {
      SCOPED_TRACE(fmt::format("{} {}", table->name, n));
      const auto size = static_cast<std::size_t>(n * n);
      const auto lanes = static_cast<std::size_t>(k.lanes);
      std::vector<double> a = random_tensor(6, f64({k.lanes, n, n}), -1, 1).numbers<double>();
      for (std::size_t i = 0; i < a.size(); ++i) {  // symmetric and positive
        const std::size_t row = i % size / static_cast<std::size_t>(n);
        const std::size_t column = i % static_cast<std::size_t>(n);
        const std::size_t other = i - i % size + column * static_cast<std::size_t>(n) + row;
        a[i] = row == column ? 10 : a[std::min(i, other)];
      }
      const auto in_lanes = [&] {
        std::vector<double> x(a.size());
        k.to_lanes(a.data(), n * n, n * n, k.lanes, x.data());
        return x;
      };
      std::vector<double> l = in_lanes(), e = in_lanes(), f = in_lanes(), h = in_lanes();
      std::vector<double> q(a.size()), r(a.size()), w(a.size()), v(a.size()), pivots(a.size());
      std::vector<double> x = in_lanes();
      k.cholesky(l.data(), n);
      k.qr(e.data(), n, n, q.data(), r.data());
      k.eliminate(f.data(), n, n, pivots.data());
      k.substitute(f.data(), pivots.data(), n, x.data(), n);
      k.eigh(h.data(), n, w.data(), v.data());
      const std::vector<double> expected = in_lanes();
      const auto sides = static_cast<std::size_t>(n);
      for (std::size_t at = 0; at < a.size(); ++at) {
        const std::size_t lane = at % lanes;
        const std::size_t i = at / lanes / sides;
        const std::size_t j = at / lanes % sides;
        const auto of = [&](const std::vector<double>& m, std::size_t y, std::size_t z) {
          return m[(y * sides + z) * lanes + lane];
        };
        double by_l = 0, by_q = 0, by_v = 0;
        for (std::size_t d = 0; d < sides; ++d) {
          by_l += of(l, i, d) * of(l, j, d);
          by_q += of(q, i, d) * of(r, d, j);
          by_v += of(v, d, i) * w[d * lanes + lane] * of(v, d, j);
        }
        EXPECT_NEAR(by_l, expected[at], 1e-13);
        EXPECT_NEAR(by_q, expected[at], 1e-13);
        EXPECT_NEAR(by_v, expected[at], 1e-13);
        EXPECT_NEAR(x[at], i == j ? 1 : 0, 1e-13);
      }
    }
  }
}

}  // namespace
}  // namespace ricci::testing::small_matrices_test
