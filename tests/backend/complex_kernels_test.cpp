// Complex numbers in loop kernels: the reference's bits on every target and in vectors of every
// width, infinities, NaNs and the signs of zeros included.
#include <array>
#include <complex>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/interp/interpreter.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/runtime/device.h"

#include "backend/all_widths.h"
#include "support/compare.h"

namespace ricci::testing::complex_kernels_test {
namespace {

using Complex = std::complex<double>;

void expect_bits_of_the_reference(const Graph& graph, const Feeds& feeds) {
  const std::vector<Tensor> expected = interpret(graph, feeds);
  for (const cpu::TargetInfo& target : targets_of_all_widths()) {
    const std::vector<Tensor> actual = run_kernels(graph, feeds, target);
    for (std::size_t r = 0; r < expected.size(); ++r) {
      EXPECT_TRUE(same(actual[r], expected[r]))
          << graph.name() << ", result " << r << ", " << target.name << " " << target.vector_bits;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

// Every pair of numbers whose parts are special or large, as two operands; then a few more, so that
// no vector divides their count.
std::array<Tensor, 2> special_pairs(DType dtype, double large) {
  constexpr double Inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const bool narrow = dtype == DType::C64;
  const double tiny = narrow ? 1e-42 : 1e-320;
  std::vector<Complex> numbers;
  const auto parts = {0.0, -0.0, 1.0, -1.1, 3.3, large, -tiny, Inf, -Inf, nan, -nan};
  for (const double re : parts) {
    for (const double im : parts) numbers.emplace_back(re, im);
  }
  std::vector<Complex> a;
  std::vector<Complex> b;
  for (const Complex x : numbers) {
    for (const Complex y : numbers) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  while (a.size() % 64 != 37) {
    a.emplace_back(0.5, 2);
    b.emplace_back(-3, 0.25);
  }
  const Type type{dtype, {static_cast<std::int64_t>(a.size())}};
  return {Tensor::from_numbers<Complex>(type, a), Tensor::from_numbers<Complex>(type, b)};
}

TEST(BackendComplexKernels, SpecialValuesAreThoseOfTheReference) {
  for (const DType dtype : {DType::C64, DType::C128}) {
    const auto [a, b] = special_pairs(dtype, dtype == DType::C64 ? 2e38 : 1e308);
    const DType other = dtype == DType::C64 ? DType::C128 : DType::C64;
    Graph g(fmt::format("special_{}", name(dtype)));
    const Value x = g.input("x", a.type());
    const Value y = g.input("y", b.type());
    const Value z = g.constant(Tensor::splat(a.type(), Complex(0.5, -0.0)));
    g.set_outputs({x * y, x + y, x - y, -x, conjugate(x), eq(x, y), ne(x, y), where(x, y, z),
                   where(eq(x, y), z, x), cast(x, {.to = other}), cast(x, {.to = DType::Bool}),
                   cast(x, {.to = DType::F32}), cast(x, {.to = DType::I32}),
                   cast(cast(x, {.to = DType::F16}), {.to = dtype}), x * z,
                   cast(eq(x, y), {.to = dtype})});
    expect_bits_of_the_reference(g, {{"x", a}, {"y", b}});
  }
}

void expect_close_to_the_reference(const Graph& graph, const Feeds& feeds, Tolerance tolerance) {
  const std::vector<Tensor> expected = interpret(graph, feeds);
  for (const cpu::TargetInfo& target : targets_of_all_widths()) {
    const std::vector<Tensor> actual = run_kernels(graph, feeds, target);
    for (std::size_t r = 0; r < expected.size(); ++r) {
      EXPECT_TRUE(close(actual[r], expected[r], tolerance))
          << graph.name() << ", result " << r << ", " << target.name << " " << target.vector_bits;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(BackendComplexKernels, QuotientsAndFunctionsAreThoseOfTheReference) {
  for (const DType dtype : {DType::C64, DType::C128}) {
    const Tolerance tolerance =
        dtype == DType::C64 ? Tolerance{3e-7, 1e-44} : Tolerance{2e-15, 1e-322};
    const auto [a, b] = special_pairs(dtype, dtype == DType::C64 ? 2e38 : 1e308);
    Graph g(fmt::format("functions_{}", name(dtype)));
    const Value x = g.input("x", a.type());
    const Value y = g.input("y", b.type());
    g.set_outputs({x / y, exp(x), log(x), sqrt(x)});
    expect_close_to_the_reference(g, {{"x", a}, {"y", b}}, tolerance);
    for (const double size : {1.0, 0.01, 30.0, 600.0}) {
      const Type type{dtype, {1003}};
      Graph h(fmt::format("random_{}_{}", name(dtype), size));
      const Value u = h.input("u", type);
      const Value v = h.input("v", type);
      h.set_outputs({u / v, sqrt(u), log(u), reduce(u, {.op = ReduceKind::Mean, .axes = {0}})});
      const Feeds feeds{{"u", random_tensor(1, type, -size, size)},
                        {"v", random_tensor(2, type, -size, size)}};
      // Parts may be the difference of two that are nearly equal.
      const double digits = dtype == DType::C64 ? 1e-6 : 1e-14;
      expect_close_to_the_reference(h, feeds, {digits, digits});
    }
  }
}

constexpr std::array Formulas = {
    UnaryKind::Sin,   UnaryKind::Cos,     UnaryKind::Tan,   UnaryKind::Sinh,
    UnaryKind::Cosh,  UnaryKind::Tanh,    UnaryKind::Asin,  UnaryKind::Acos,
    UnaryKind::Atan,  UnaryKind::Asinh,   UnaryKind::Acosh, UnaryKind::Atanh,
    UnaryKind::Expm1, UnaryKind::Log1p,   UnaryKind::Exp2,  UnaryKind::Log2,
    UnaryKind::Rsqrt, UnaryKind::Sigmoid, UnaryKind::Abs,   UnaryKind::Reciprocal};

// Each target with its shortest vectors, of one number, and long ones.
void expect_formulas_close(const Graph& graph, const Feeds& feeds, Tolerance tolerance) {
  const std::vector<Tensor> expected = interpret(graph, feeds);
  for (const cpu::TargetInfo& target : targets_of_all_widths()) {
    if (target.vector_bits != 64 && target.vector_bits != 256) continue;
    const std::vector<Tensor> actual = run_kernels(graph, feeds, target);
    for (std::size_t r = 0; r < expected.size(); ++r) {
      EXPECT_TRUE(close(actual[r], expected[r], tolerance))
          << graph.name() << ", result " << r << ", " << target.name << " " << target.vector_bits;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

// At infinities, NaNs and zeros of either sign, and where squares would overflow.
TEST(BackendComplexKernels, FormulasHaveTheLimitsOfTheReference) {
  for (const DType dtype : {DType::C64, DType::C128}) {
    const Tensor all = special_pairs(dtype, dtype == DType::C64 ? 2e38 : 1e200)[0];
    Graph g(fmt::format("limits_{}", name(dtype)));
    const Value x = g.input("x", all.type());
    std::vector<Value> out;
    for (const UnaryKind kind : Formulas) out.push_back(activation(kind, x));
    g.set_outputs(out);
    const double digits = dtype == DType::C64 ? 1e-6 : 1e-14;
    expect_formulas_close(g, {{"x", all}}, {digits, digits});
  }
}

// Sizes from where a function is its first term to where it is its limit.
TEST(BackendComplexKernels, FormulasAreThoseOfTheReference) {
  for (const DType dtype : {DType::C64, DType::C128}) {
    const double digits = dtype == DType::C64 ? 2e-6 : 1e-13;
    const auto check = [&](const std::vector<double>& sizes, double absolute) {
      std::vector<Complex> numbers;
      for (const double size : sizes) {
        const Tensor drawn = random_tensor(5, {DType::C128, {67}}, -size, size);
        for (const Complex z : drawn.numbers<Complex>()) numbers.push_back(z);
      }
      const Type type{dtype, {static_cast<std::int64_t>(numbers.size())}};
      Graph g(fmt::format("formulas_{}_{}", name(dtype), sizes[0]));
      const Value z = g.input("z", type);
      std::vector<Value> outputs{square(z), imag(z), is_nan(z)};
      for (const UnaryKind kind : Formulas) outputs.push_back(activation(kind, z));
      g.set_outputs(outputs);
      expect_formulas_close(g, {{"z", Tensor::from_numbers<Complex>(type, numbers)}},
                            {digits, absolute});
    };
    check({1e-6}, digits * 1e-6);
    check({0.1, 1.0, 4.0, 60.0, 500.0}, digits);
  }
}

TEST(BackendComplexKernels, PowersAreThoseOfTheReference) {
  for (const DType dtype : {DType::C64, DType::C128}) {
    const double digits = dtype == DType::C64 ? 2e-5 : 1e-12;
    const Type type{dtype, {131}};
    Graph g(fmt::format("powers_{}", name(dtype)));
    const Value a = g.input("a", type);
    const Value b = g.input("b", type);
    g.set_outputs({pow(a, b)});
    expect_formulas_close(
        g, {{"a", random_tensor(1, type, -3, 3)}, {"b", random_tensor(2, type, -2, 2)}},
        {digits, digits});
  }
}

// On the axes, with zeros of both signs, which are sides of branch cuts, and at infinity on the
// real one.
TEST(BackendComplexKernels, FormulasTakeTheSidesOfBranchCuts) {
  constexpr double Inf = std::numeric_limits<double>::infinity();
  std::vector<Complex> numbers;
  for (const double x : {0.0, 0.5, 1.0, 2.0, 40.0, 800.0}) {
    for (const double zero : {0.0, -0.0}) {
      for (const double sign : {1.0, -1.0}) {
        numbers.emplace_back(sign * x, zero);
        if (x < 100) numbers.emplace_back(zero, sign * x);
      }
    }
  }
  const std::vector<Complex> far{{Inf, 0.0}, {-Inf, 0.0}, {Inf, -0.0}, {-Inf, -0.0}};
  for (const DType dtype : {DType::C64, DType::C128}) {
    const auto check = [&](const std::vector<Complex>& at, std::span<const UnaryKind> kinds) {
      const Type type{dtype, {static_cast<std::int64_t>(at.size())}};
      Graph g(fmt::format("cuts_{}", name(dtype)));
      const Value z = g.input("z", type);
      std::vector<Value> outputs;
      for (const UnaryKind kind : kinds) outputs.push_back(activation(kind, z));
      g.set_outputs(outputs);
      const double digits = dtype == DType::C64 ? 1e-6 : 1e-14;
      expect_formulas_close(g, {{"z", Tensor::from_numbers<Complex>(type, at)}}, {digits, digits});
    };
    check(numbers, Formulas);
    constexpr std::array Limits = {UnaryKind::Sinh, UnaryKind::Cosh,  UnaryKind::Tanh,
                                   UnaryKind::Exp2, UnaryKind::Expm1, UnaryKind::Sigmoid};
    check(far, Limits);
  }
}

TEST(BackendComplexKernels, PowersOfZeroAndByZero) {
  for (const DType dtype : {DType::C64, DType::C128}) {
    const Type type{dtype, {4}};
    Graph g("powers");
    const Value a = g.input("a", type);
    const Value b = g.input("b", type);
    g.set_outputs({pow(a, b)});
    const Feeds feeds{
        {"a", Tensor::from_numbers<Complex>(type, std::vector<Complex>{0, 0, {2, 1}, {-4, 0}})},
        {"b", Tensor::from_numbers<Complex>(type, std::vector<Complex>{0, {2, 1}, 0, 0.5})}};
    expect_close_to_the_reference(g, feeds, {1e-6, 1e-6});
    const auto out = interpret(g, feeds)[0].numbers<Complex>();
    EXPECT_EQ(out[0], Complex(1));
    EXPECT_EQ(out[1], Complex(0));
    EXPECT_EQ(out[2], Complex(1));
    EXPECT_NEAR(std::abs(out[3] - Complex(0, 2)), 0, 1e-6);
  }
}

// Whole parts, so that sums are exact in any order; no more than a few large factors.
Tensor whole_numbers(const Type& type) {
  std::vector<Complex> numbers;
  for (std::int64_t i = 0; i < *type.numel(); ++i) {
    numbers.emplace_back(static_cast<double>(i % 7) - 3, static_cast<double>(i % 5) - 2);
  }
  return Tensor::from_numbers<Complex>(type, numbers);
}

// 1, i, -1 and -i.
Tensor units(const Type& type) {
  std::vector<Complex> numbers;
  for (std::int64_t i = 0; i < *type.numel(); ++i) {
    constexpr std::array<Complex, 4> Units = {Complex(1, 0), {0, 1}, {-1, 0}, {0, -1}};
    numbers.push_back(Units[static_cast<std::size_t>(i * i / 3 % 4)]);
  }
  return Tensor::from_numbers<Complex>(type, numbers);
}

TEST(BackendComplexKernels, ReducesRowsColumnsAndWholeArrays) {
  for (const DType dtype : {DType::C64, DType::C128}) {
    for (const StaticDims& dims : {StaticDims{13, 37}, {5, 64}, {700, 129}, {3, 1}}) {
      Graph g(fmt::format("reduced_{}_{}", name(dtype), dims[0]));
      const Type type{dtype, Dims(dims.begin(), dims.end())};
      const Value x = g.input("x", type);
      const Value u = g.input("u", type);
      const auto product = [&](Axes axes) {
        // Adding zero makes -0 to 0: the order of factors decides on the sign.
        const Value p = reduce(u, {.op = ReduceKind::Prod, .axes = std::move(axes)});
        return p + g.constant(Tensor::splat({dtype, {}}, Complex(0, 0)));
      };
      g.set_outputs({sum(x * conjugate(u), {1}), sum(x * u, {0}), sum(x), product({1}),
                     product({0}), x - sum(x, {1}, true)});
      expect_bits_of_the_reference(g, {{"x", whole_numbers(type)}, {"u", units(type)}});
    }
  }
}

TEST(BackendComplexKernels, GoOnBehindAProduct) {
  for (const DType dtype : {DType::C64, DType::C128}) {
    Graph g("dense");
    const Value x = g.input("x", {dtype, {70, 33}});
    const Value w = g.input("w", {dtype, {33, 50}});
    const Value b = g.input("b", {dtype, {50}});
    g.set_outputs({conjugate(matmul(x, w) + b) * b});
    const Program program = make_program(g, {.target = &cpu::target()});
    ASSERT_EQ(program.steps.size(), 1U) << to_string(program);
    const Feeds feeds = {{"x", random_tensor(1, x.type())},
                         {"w", random_tensor(2, w.type())},
                         {"b", random_tensor(3, b.type())}};
    EXPECT_TRUE(close(compile(g).run(feeds)[0], interpret(g, feeds)[0],
                      dtype == DType::C64 ? Tolerance{1e-5, 1e-5} : Tolerance{1e-13, 1e-13}));
  }
}

TEST(BackendComplexKernels, ReducesNothingToTheIdentity) {
  for (const DType dtype : {DType::C64, DType::C128}) {
    Graph g("nothing");
    const Value x = g.input("x", {dtype, {3, 0}});
    g.set_outputs({sum(x, {1}), reduce(x, {.op = ReduceKind::Prod, .axes = {1}})});
    expect_bits_of_the_reference(g, {{"x", Tensor::zeros(x.type())}});
  }
}

}  // namespace
}  // namespace ricci::testing::complex_kernels_test
