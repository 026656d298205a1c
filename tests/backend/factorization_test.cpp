// Factorisations by every device, at sizes where LAPACK takes its blocked ways: factors multiply to
// what was factorised, are orthonormal and ordered, whatever their last digits are.
#include <algorithm>
#include <complex>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/linalg.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/transform/grad.h"

#include "support/compare.h"
#include "support/every_device.h"

namespace ricci::testing::factorization_test {
namespace {

Value conjugate_transposed(Value a) {
  const Value t = transpose_last(a);
  return is_complex(a.dtype()) ? conjugate(t) : t;
}
Value as_row(Value d) {
  Dims dims = d.dims();
  dims.insert(dims.end() - 1, Dim(1));
  return reshape_to(d, std::move(dims));
}
// Qᴴ Q, which is to be the identity: less it.
Value excess(Value q) {
  const Value gram = matmul(conjugate_transposed(q), q);
  return gram - matrix_power(gram, 0);
}

double largest(const Tensor& t) {
  double out = 0;
  for (const std::complex<double> z : t.numbers<std::complex<double>>()) {
    if (!(std::abs(z) <= out)) out = std::abs(z);  // a NaN too
  }
  return out;
}

struct Shape {
  std::int64_t rows;
  std::int64_t columns;
};

class BackendFactorizations : public OnEveryDevice {
 protected:
  // Rests of a factorisation of random matrices [2, rows, columns] of every field: all small.
  void expect_small(std::initializer_list<Shape> shapes,
                    const std::function<std::vector<Value>(Value)>& rests) {
    for (const DType dtype : {DType::F32, DType::F64, DType::C64, DType::C128}) {
      for (const Shape& s : shapes) {
        if (is_slow() && s.rows * s.columns > 600) continue;
        SCOPED_TRACE(fmt::format("{} [{}, {}]", name(dtype), s.rows, s.columns));
        const Type type{dtype, {2, s.rows, s.columns}};
        Graph g;
        g.set_outputs(rests(g.input("a", type)));
        const Tensor a = random_tensor(5, type, -1, 1);
        const bool wide = dtype == DType::F64 || dtype == DType::C128;
        const double size = static_cast<double>(s.rows + s.columns);
        for (const Tensor& rest : compile(g, device()).run({{"a", a}})) {
          EXPECT_LE(largest(rest), (wide ? 1e-14 : 5e-6) * size);
        }
      }
    }
  }

 private:
  // The reference's kernels are.
  [[nodiscard]] bool is_slow() const { return GetParam() != "cpu"; }
};

TEST_P(BackendFactorizations, OrthonormalTimesTriangular) {
  expect_small({{1, 1}, {7, 3}, {3, 7}, {20, 20}, {70, 70}, {150, 90}, {67, 130}}, [](Value a) {
    const auto [q, r] = qr(a);
    return std::vector{matmul(q, r) - a, excess(q)};
  });
}

TEST_P(BackendFactorizations, LowerTimesUpper) {
  expect_small({{1, 1}, {7, 3}, {3, 7}, {20, 20}, {70, 70}, {150, 90}, {67, 130}}, [](Value a) {
    const LuFactors f = lu_factors(a);
    Dims dims = f.permutation.dims();
    dims.emplace_back(1);
    const Value rows = broadcast_to(reshape_to(f.permutation, std::move(dims)), a.dims());
    return std::vector{matmul(f.l, f.u) - take_along_axis(a, rows, {.axis = 1})};
  });
}

TEST_P(BackendFactorizations, LowerTimesItsAdjoint) {
  expect_small({{1, 1}, {5, 5}, {20, 20}, {70, 70}, {150, 150}}, [](Value a) {
    const Value n = scalar_like(a, static_cast<double>(a.dims().back().value()));
    const Value positive = matmul(a, conjugate_transposed(a)) / n + matrix_power(a, 0);
    const Value l = cholesky(positive);
    return std::vector{matmul(l, conjugate_transposed(l)) - positive};
  });
}

TEST_P(BackendFactorizations, EigenvectorsAndValues) {
  expect_small({{1, 1}, {5, 5}, {20, 20}, {70, 70}, {150, 150}, {200, 200}}, [](Value a) {
    const auto [w, v] = eigh(a);
    const Value h = (a + conjugate_transposed(a)) * 0.5;
    return std::vector{matmul(h, v) - v * as_row(cast_to(w, a.dtype())), excess(v),
                       w - eigvalsh(a)};
  });
}

TEST_P(BackendFactorizations, SingularVectorsAndValues) {
  expect_small({{1, 1}, {7, 3}, {3, 7}, {20, 20}, {70, 70}, {150, 90}, {67, 130}}, [](Value a) {
    const auto [u, s, vh] = svd(a);
    return std::vector{matmul(u * as_row(cast_to(s, a.dtype())), vh) - a, excess(u),
                       excess(conjugate_transposed(vh)), s - svdvals(a)};
  });
}

TEST_P(BackendFactorizations, ExponentialsOfOppositesCancel) {
  expect_small({{1, 1}, {5, 5}, {20, 20}, {70, 70}, {100, 100}}, [](Value a) {
    const Value n = scalar_like(a, static_cast<double>(a.dims().back().value()));
    const Value x = a / sqrt(n);
    const Value cancelled = matmul(matrix_exp(x), matrix_exp(-x));
    return std::vector{(cancelled - matrix_power(a, 0)) * 0.05};
  });
}

// A rank that is not full, repeated values, zeros: still factors.
TEST_P(BackendFactorizations, DegenerateMatricesHaveFactors) {
  const std::int64_t n = 9;
  Graph g;
  const Value a = g.input("a", f64({3, n, n}));
  const auto [q, r] = qr(a);
  const auto [w, v] = eigh(a);
  const auto [u, s, vh] = svd(a);
  g.set_outputs({matmul(q, r) - a, excess(q), excess(v), excess(u),
                 excess(conjugate_transposed(vh)), matmul(u * as_row(s), vh) - a,
                 matmul(a, v) - v * as_row(w)});
  std::vector<double> numbers(static_cast<std::size_t>(3 * n * n), 0.0);
  for (std::int64_t i = 0; i < n * n; ++i) {
    if (i / n == i % n) numbers[static_cast<std::size_t>(i)] = 2;  // repeated values
    numbers[static_cast<std::size_t>(n * n + i)] = 1;              // rank 1; then zeros
  }
  const Tensor fed = Tensor::from_numbers<double>(f64({3, n, n}), numbers);
  for (const Tensor& rest : compile(g, device()).run({{"a", fed}})) {
    EXPECT_LE(largest(rest), 1e-13);
  }
}

// A matrix that is not finite spoils its own results and no other's.
TEST_P(BackendFactorizations, NotFiniteMatricesSpoilTheirOwnResultsOnly) {
  for (const std::int64_t n : {3, 80}) {
    if (n > 3 && GetParam() != "cpu") continue;
    Graph g;
    const Value a = g.input("a", f32({2, n, n}));
    const auto [q, r] = qr(a);
    const auto [w, v] = eigh(a);
    const auto [u, s, vh] = svd(a);
    g.set_outputs({q, r, w, v, u, s, vh, lu(a)[0], cholesky(a), matrix_exp(a)});
    std::vector<double> numbers(static_cast<std::size_t>(2 * n * n), 0.0);
    for (std::int64_t i = 0; i < n; ++i) numbers[static_cast<std::size_t>(i * n + i)] = 1;
    numbers[static_cast<std::size_t>(n * n + 1)] = std::numeric_limits<double>::infinity();
    const Tensor fed = Tensor::from_numbers<double>(f32({2, n, n}), numbers);
    for (const Tensor& out : compile(g, device()).run({{"a", fed}})) {
      const std::vector<double> found = out.numbers<double>();
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(std::isnan(found[i]), i >= found.size() / 2);
      }
    }
  }
}

RICCI_ON_EVERY_DEVICE(BackendFactorizations);

// Large symmetric matrices are merged of small ones: where values repeat, cluster or fall into
// blocks, most of a merge is dropped. The same bits on any number of threads.
TEST(BackendLargeEigenproblems, RepeatedClusteredAndSeparateValues) {
  if (!has_device("cpu")) GTEST_SKIP() << "there is no CPU back end";
  constexpr std::int64_t N = 201;
  for (const DType dtype : {DType::F32, DType::F64}) {
    const Type type{dtype, {N, N}};
    const std::vector<double> noise = random_tensor(3, f64({N * N}), -1, 1).numbers<double>();
    const auto matrix = [&](const auto& element) {
      std::vector<double> out(N * N);
      for (std::int64_t i = 0; i < N; ++i) {
        for (std::int64_t j = 0; j < N; ++j) {
          out[static_cast<std::size_t>(i * N + j)] = element(std::max(i, j), std::min(i, j));
        }
      }
      return Tensor::from_numbers<double>(type, out);
    };
    const auto at = [&](std::int64_t i, std::int64_t j) {
      return noise[static_cast<std::size_t>(i * N + j)];
    };
    const std::vector<std::pair<const char*, Tensor>> all = {
        {"random", matrix(at)},
        {"identity", matrix([](auto i, auto j) { return i == j ? 1.0 : 0.0; })},
        {"ones", matrix([](auto, auto) { return 1.0; })},
        {"zero", matrix([](auto, auto) { return 0.0; })},
        {"few values",
         matrix([](auto i, auto j) { return i == j ? static_cast<double>(1 + i % 3) : 1e-3; })},
        {"cluster", matrix([&](auto i, auto j) { return (i == j ? 1 : 0) + 1e-6 * at(i, j); })},
        {"blocks", matrix([&](auto i, auto j) { return i / 40 == j / 40 ? at(i, j) : 0.0; })},
        {"chain", matrix([](auto i, auto j) { return i == j       ? 2.0
                                                     : i == j + 1 ? -1.0
                                                                  : 0.0; })},
        {"tiny", matrix([&](auto i, auto j) { return 1e-30 * at(i, j); })},
        {"large", matrix([&](auto i, auto j) { return 1e15 * at(i, j); })},
    };
    Graph g;
    const Value a = g.input("a", type);
    const auto [w, v] = eigh(a);
    g.set_outputs({w, v, matmul(a, v) - v * as_row(w), excess(v)});
    for (const auto& [what, tensor] : all) {
      SCOPED_TRACE(fmt::format("{} {}", name(dtype), what));
      const std::vector<Tensor> one = compile(g, Device::cpu(1)).run({{"a", tensor}});
      const double tolerance = (dtype == DType::F64 ? 1e-14 : 5e-6) * 2 * N;
      EXPECT_LE(largest(one[2]), tolerance * std::max(largest(one[0]), largest(tensor)));
      EXPECT_LE(largest(one[3]), tolerance);
      const std::vector<double> values = one[0].numbers<double>();
      EXPECT_TRUE(std::ranges::is_sorted(values));
      for (const int threads : {2, 3}) {
        const std::vector<Tensor> more = compile(g, Device::cpu(threads)).run({{"a", tensor}});
        EXPECT_TRUE(more[0].identical(one[0]) && more[1].identical(one[1])) << threads;
      }
    }
  }
}

// Large matrices are made bidiagonal, and their vectors turned back by all threads: square ones,
// higher and wider ones; with a rank that is not full, repeated values, and nothing but zeros.
TEST(BackendLargeSingularValues, AnyRankAndShapeOnAnyThreads) {
  if (!has_device("cpu")) GTEST_SKIP() << "there is no CPU back end";
  for (const auto& [rows, columns] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {130, 130}, {97, 180}, {180, 97}, {70, 211}, {211, 70}}) {
    for (const DType dtype : {DType::F32, DType::F64}) {
      SCOPED_TRACE(fmt::format("{} {} by {}", name(dtype), rows, columns));
      const std::int64_t count = rows * columns;
      const std::vector<double> noise = random_tensor(3, f64({count}), -1, 1).numbers<double>();
      std::vector<double> numbers(static_cast<std::size_t>(4 * count), 0.0);  // the last: zeros
      for (std::int64_t i = 0; i < count; ++i) {
        const auto at = [&](std::int64_t which) -> double& {
          return numbers[static_cast<std::size_t>(which * count + i)];
        };
        const auto row = static_cast<std::size_t>(i / columns);
        const auto column = static_cast<std::size_t>(i % columns);
        at(0) = noise[static_cast<std::size_t>(i)];
        at(1) = noise[row] * noise[500 + column];
        at(2) = row == column ? 2 : 0;
      }
      const Type type{dtype, {4, rows, columns}};
      Graph g;
      const Value a = g.input("a", type);
      const auto [u, s, vh] = svd(a);
      g.set_outputs(
          {u, s, vh, matmul(u * as_row(s), vh) - a, excess(u), excess(conjugate_transposed(vh))});
      const Feeds feeds = {{"a", Tensor::from_numbers<double>(type, numbers)}};
      const std::vector<Tensor> one = compile(g, Device::cpu(1)).run(feeds);
      const double tolerance = dtype == DType::F64 ? 2e-12 : 2e-4;
      for (const std::size_t rest : {3, 4, 5}) EXPECT_LE(largest(one[rest]), tolerance) << rest;
      for (const int threads : {2, 3}) {
        const std::vector<Tensor> more = compile(g, Device::cpu(threads)).run(feeds);
        for (const std::size_t r : {0, 1, 2}) EXPECT_TRUE(more[r].identical(one[r])) << threads;
      }
    }
  }
}

}  // namespace
}  // namespace ricci::testing::factorization_test
