// Factorisations with square orthonormal factors: what they multiply to, and their gradients.
#include <gtest/gtest.h>

#include "ricci/build/linalg.h"
#include "ricci/build/reduce.h"
#include "ricci/interp/interpreter.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/transform/check.h"

#include "support/compare.h"

namespace ricci::testing::full_factors_test {
namespace {

constexpr Tolerance Close{.relative = 1e-12, .absolute = 1e-12};

Value adjoint_of(Value a) {
  return is_complex(a.dtype()) ? conjugate(transpose_last(a)) : transpose_last(a);
}

Tensor identity(const Type& type) {
  Tensor out = Tensor::zeros(type);
  auto numbers = out.numbers<std::complex<double>>();
  const auto n = static_cast<std::size_t>(type.dims.back().value());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i % (n * n) / n == i % n) numbers[i] = 1;
  }
  return Tensor::from_numbers<std::complex<double>>(type, numbers);
}

// [.., K] as the diagonal of [.., M, N].
Tensor on_diagonal(const Tensor& s, const Type& type) {
  auto numbers = Tensor::zeros(type).numbers<std::complex<double>>();
  const auto n = static_cast<std::size_t>(type.dims.back().value());
  const auto m = static_cast<std::size_t>(type.dims[type.rank() - 2].value());
  const auto values = s.numbers<double>();
  const std::size_t k = std::min(m, n);
  for (std::size_t i = 0; i < values.size(); ++i) {
    numbers[i / k * m * n + i % k * n + i % k] = values[i];
  }
  return Tensor::from_numbers<std::complex<double>>(type, numbers);
}

TEST(FullFactors, QrHasASquareOrthonormalFactor) {
  for (const DType dtype : {DType::F64, DType::C128}) {
    for (const Dims& dims : {Dims{5, 2}, Dims{4, 4}, Dims{2, 5}, Dims{3, 4, 1}, Dims{2, 3, 4}}) {
      Graph g("qr");
      const Value a = g.input("a", {dtype, dims});
      const auto [q, r] = qr_full(a);
      g.set_outputs({matmul(q, r), matmul(adjoint_of(q), q), r});
      const Tensor value = random_tensor(3, a.type(), -1, 1);
      for (const auto& out : {interpret(g, {{"a", value}}), compile(g).run({{"a", value}})}) {
        EXPECT_EQ(q.dims().back(), dims[dims.size() - 2]);
        EXPECT_TRUE(close(out[0], value, Close));
        EXPECT_TRUE(close(out[1], identity(out[1].type()), Close));
        const auto numbers = out[2].numbers<std::complex<double>>();
        const auto n = static_cast<std::size_t>(dims.back().value());
        const auto m = static_cast<std::size_t>(dims[dims.size() - 2].value());
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          if (i / n % m <= i % n) continue;
          EXPECT_LT(std::abs(numbers[i]), 1e-14) << i;
        }
      }
    }
  }
}

// A matrix whose columns are unit vectors themselves.
TEST(FullFactors, UnitVectorsAreCompletedToo) {
  Graph g("qr");
  const Value a = g.input("a", f64({4, 2}));
  const auto [q, r] = qr_full(a);
  g.set_outputs({matmul(q, r), matmul(transpose_last(q), q)});
  const std::vector<double> units = {1, 0, 0, 1, 0, 0, 0, 0};
  const Tensor value = Tensor::from_numbers<double>(a.type(), units);
  for (const auto& out : {interpret(g, {{"a", value}}), compile(g).run({{"a", value}})}) {
    EXPECT_TRUE(close(out[0], value, Close));
    EXPECT_TRUE(close(out[1], identity(out[1].type()), Close));
  }
}

TEST(FullFactors, SvdHasAllSingularVectors) {
  for (const DType dtype : {DType::F64, DType::C128}) {
    for (const Dims& dims : {Dims{5, 2}, Dims{3, 3}, Dims{2, 5}, Dims{2, 4, 3}, Dims{3, 1, 4}}) {
      Graph g("svd");
      const Value a = g.input("a", {dtype, dims});
      const auto [u, s, vh] = svd_full(a);
      g.set_outputs({s, matmul(adjoint_of(u), u), matmul(vh, adjoint_of(vh)),
                     matmul(matmul(adjoint_of(u), a), adjoint_of(vh))});
      const Feeds feeds = {{"a", random_tensor(4, a.type(), -1, 1)}};
      for (const auto& out : {interpret(g, feeds), compile(g).run(feeds)}) {
        EXPECT_EQ(u.dims().back(), dims[dims.size() - 2]);
        EXPECT_EQ(vh.dims().back(), dims.back());
        EXPECT_TRUE(close(out[1], identity(out[1].type()), Close));
        EXPECT_TRUE(close(out[2], identity(out[2].type()), Close));
        EXPECT_TRUE(close(out[3], on_diagonal(out[0], a.type()), Close));
      }
    }
  }
}

// Gradients of every factor, against differences.
TEST(FullFactors, GradientsAgreeWithDifferences) {
  for (const Dims& dims : {Dims{4, 2}, Dims{2, 4}}) {
    Graph g("factors");
    const Value a = g.input("a", f64(dims));
    const auto [q, r] = qr_full(a);
    const auto [u, s, vh] = svd_full(a);
    const auto weighted = [&](Value x, std::uint64_t seed) {
      return sum(x * g.constant(random_tensor(seed, x.type(), -1, 1)));
    };
    g.set_outputs(
        {weighted(q, 1) + weighted(r, 2) + weighted(u, 3) + weighted(s, 4) + weighted(vh, 5)});
    const DerivativeReport report =
        check_derivatives(g, {"a"}, {{"a", random_tensor(9, a.type(), -1, 1)}});
    EXPECT_TRUE(report.ok()) << report.to_string();
  }
}

// Also where a's columns are unit vectors themselves, as in every diagonal matrix.
TEST(FullFactors, GradientsOfUnitVectorsAgreeWithDifferences) {
  const std::vector<std::vector<double>> units = {
      {1, 0, 0, 2, 0, 0, 0, 0}, {0, 1, 0, 0, 3, 0, 0, 0}, {2, 0, 0, 0, 0, 0, 0, 1}};
  for (const std::vector<double>& numbers : units) {
    Graph g("units");
    const Value a = g.input("a", f64({4, 2}));
    const auto [q, r] = qr_full(a);
    const auto [u, s, vh] = svd_full(a);
    // The square factors by what they span, whose sign and turn do not count.
    const auto weighted = [&](Value x, std::uint64_t seed) {
      return sum(x * g.constant(random_tensor(seed, x.type(), -1, 1)));
    };
    const Value rest = narrow(u, {.axis = 1, .start = 2, .len = 2});
    g.set_outputs({weighted(q, 1) + weighted(r, 2) + weighted(s, 3) +
                   weighted(matmul(rest, transpose_last(rest)), 4)});
    const DerivativeReport report =
        check_derivatives(g, {"a"}, {{"a", Tensor::from_numbers<double>(a.type(), numbers)}});
    EXPECT_TRUE(report.ok()) << report.to_string();
  }
}

TEST(FullFactors, UnknownSizesAreRefused) {
  Graph g("qr");
  EXPECT_THROW((void)qr_full(g.input("a", f64({"m", 2}))), UserError);
  EXPECT_THROW((void)qr_full(g.input("b", f64({2}))), UserError);
}

}  // namespace
}  // namespace ricci::testing::full_factors_test
