// Calls that people write: all of them compile, and errors point at them.
#include <array>
#include <cmath>
#include <complex>
#include <functional>
#include <span>
#include <sstream>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/support/error.h"

namespace ricci::calls_test {
namespace {

using Numbers = std::vector<double>;

Array square_of(const Array& x) noexcept { return x * x; }
struct WithoutThrows {
  Array operator()(const Array& x) const noexcept { return sum(x * x); }
};
struct OfLvalues {
  Array operator()(const Array& x) const& { return sum(x * x); }
};
struct OfLvaluesWithoutThrows {
  Array operator()(const Array& x) const& noexcept { return sum(x * x); }
};

TEST(ArrayCalls, FunctionsMayBeNoexceptAndQualified) {
  // A number becomes the Array that the function asks for, so its signature is known.
  EXPECT_EQ(grad(WithoutThrows())(3.0).item(), 6);
  EXPECT_EQ(grad(OfLvalues())(3.0).item(), 6);
  EXPECT_EQ(grad(OfLvaluesWithoutThrows())(3.0).item(), 6);
  EXPECT_EQ(jit([](const Array& x) noexcept { return x + 1.0; })(3.0).item(), 4);
  EXPECT_EQ(jit(square_of)(3.0).item(), 9);
  EXPECT_EQ(grad(square_of)(3.0).item(), 6);
}

TEST(ArrayCalls, FunctionsByNameAreFunctions) {
  const Array x = array({1.0, 2.0});
  EXPECT_EQ(jvp(square_of, x, x).second.to_vector(), (Numbers{2, 8}));
  EXPECT_EQ(vjp(square_of, x).map(x).to_vector(), (Numbers{2, 8}));
  EXPECT_EQ(linearize(square_of, x).map(x).to_vector(), (Numbers{2, 8}));
}

TEST(ArrayCalls, NumbersArePointsAndDirections) {
  const auto cube = [](const Array& x) { return sum(x * x * x); };
  EXPECT_EQ(hvp(cube)(2.0, 1.0).item(), 12);
  EXPECT_EQ(jvp(cube, 2.0, 1.0).second.item(), 12);
  EXPECT_EQ(jvp(cube, array(2.0), 1.0).second.item(), 12);
  EXPECT_EQ(jvp([](const auto& x) { return x * x; }, 3.0, 2.0).second.item(), 12);
  const auto product = [](const Array& a, const Array& b) { return a * b; };
  EXPECT_EQ(jvp(product, std::tuple{2.0, 3.0}, std::tuple{1.0, array(1.0)}).second.item(), 5);
  EXPECT_EQ(hvp([](const Array& x, double p) { return sum(pow(x, p)); })(array({1.0, 2.0}),
                                                                         array({1.0, 1.0}), 3.0)
                .to_vector(),
            (Numbers{6, 12}));
}

TEST(ArrayCalls, ConditionsMixWithNumbers) {
  const Array x = array({1, 0});
  EXPECT_EQ((true && x).to_vector(), (Numbers{1, 0}));
  EXPECT_EQ((1 || x).to_vector(), (Numbers{1, 1}));
  EXPECT_EQ((x && 0).to_vector(), (Numbers{0, 0}));
  EXPECT_EQ((0.0 || x).to_vector(), (Numbers{1, 0}));
}

TEST(ArrayCalls, BranchesMayGiveNumbers) {
  const Array x = array(5.0, {.dtype = DType::F64});
  EXPECT_EQ(cond(x > 0.0, [] { return 1.0; }, [&] { return x; }).dtype(), DType::F64);
  EXPECT_EQ(cond(x > 9.0, [] { return 1.0; }, [&] { return x; }).item(), 5);
  EXPECT_EQ(cond(x > 0.0, [&] { return x; }, [] { return 1.0; }).item(), 5);
  EXPECT_EQ(cond(true, [] { return 1; }, [] { return 2; }).item(), 1);
  EXPECT_EQ(switch_(2, [] { return 1.0; }, [&] { return x; }, [] { return 7; }).item(), 7);
}

TEST(ArrayCalls, SizesAreNumbers) {
  const Array x = reshape(arange(6, {.dtype = DType::F64}), {2, 3});
  EXPECT_EQ((sum(x, 1) / x.dim(1)).to_vector(), (Numbers{1, 4}));
  EXPECT_EQ((x.dim(0) * arange(2)).to_vector(), (Numbers{0, 2}));
  // Of sizes with names too: one program for all of them, and its gradient.
  const auto mean_square =
      jit([](const Array& v) { return sum(v * v) / v.dim(0); }, {.symbolic = {{0, {"n"}}}});
  const auto slope = jit(
      [](const Array& v) { return grad([](const Array& w) { return sum(w * w) / w.dim(0); })(v); },
      {.symbolic = {{0, {"n"}}}});
  for (std::int64_t n = 1; n < 5; ++n) {
    const Array v = arange(n, {.dtype = DType::F32}) + 1.0;
    EXPECT_FLOAT_EQ(static_cast<float>(mean_square(v).item()),
                    static_cast<float>(mean(v * v).item()));
    EXPECT_TRUE(allclose(slope(v), 2.0 * v / n)) << n;
  }
  EXPECT_EQ(mean_square.compiled(), 1U);
}

TEST(ArrayCalls, WhatIsMadeOfNumbersIsANumber) {
  const Array x = array({1.0, 2.0, 3.0}, {.dtype = DType::F64});
  const Array some = x > 1.5;
  const Array factor = where(some, 0.1, 2);
  EXPECT_EQ(factor.dtype(), DType::F32);
  EXPECT_EQ((x * factor).to_vector(), (Numbers{2, 2 * 0.1, 3 * 0.1}));  // of 0.1, not of 0.1F
  EXPECT_EQ((log(Array(2.0)) * x)[0].item(), std::log(2.0));
  EXPECT_EQ((x + (factor * 3.0 - 1.0)).to_vector()[0], 6);
  EXPECT_EQ((factor + cast(x, DType::BF16)).dtype(), DType::BF16);
  (void)factor.tensor();  // looked at, it is what it was
  EXPECT_EQ((x * factor).to_vector(), (Numbers{2, 2 * 0.1, 3 * 0.1}));
  const auto f = [&](const Array& v) { return sum(v * where(v > 1.5, 0.1, 2.0)); };
  EXPECT_EQ(jit(grad(f))(x).to_vector(), (Numbers{2, 0.1, 0.1}));
  // Arrays stay what they are, and integers are no floats.
  EXPECT_THROW((void)(x * zeros({})), UserError);
  EXPECT_THROW((void)(x * array(1.0)), UserError);
  EXPECT_THROW((void)(x * where(some, 1.0, ones({3}))), UserError);
  EXPECT_THROW((void)(arange(3) * factor), UserError);
}

TEST(ArrayCalls, MethodsKeepAxes) {
  const Array x = reshape(arange(6, {.dtype = DType::F32}), {2, 3});
  EXPECT_EQ((x - x.mean(1, true)).to_vector(), (Numbers{-1, 0, 1, -1, 0, 1}));
  EXPECT_EQ(x.sum(0, true).shape(), (Dims{1, 3}));
  EXPECT_EQ(x.max(-1, true).to_vector(), (Numbers{2, 5}));
  EXPECT_EQ(x.min(1, false).shape(), (Dims{2}));
}

TEST(ArrayCalls, RowsAreGoneThrough) {
  const Array x = reshape(arange(6), {3, 2});
  Numbers sums;
  for (const Array row : x) sums.push_back(sum(row).item());  // NOLINT: rows are made as they come
  EXPECT_EQ(sums, (Numbers{1, 5, 9}));
  const std::vector<Array> rows(x.begin(), x.end());
  EXPECT_EQ(rows[2].to_vector(), (Numbers{4, 5}));
  for (const Array row : zeros({0, 2})) FAIL() << row;
  EXPECT_THROW((void)array(1.0).end(), UserError);
}

TEST(ArrayCalls, ComplexNumbersOfCppAreNumbers) {
  using namespace std::complex_literals;
  const Array x = array({1.0, 2.0});
  EXPECT_EQ((1i * x).dtype(), DType::C64);
  EXPECT_EQ(imag(x + 2.0i).to_vector(), (Numbers{2, 2}));
  EXPECT_EQ((std::complex<float>(0, 1) * x).dtype(), DType::C64);
  EXPECT_EQ(imag(array({{1i, 2.0}, {3, 4i}})).to_vector(), (Numbers{1, 0, 0, 4}));
}

TEST(ArrayCalls, ElementsComeFromWhateverHoldsThem) {
  float raw[] = {1, 2, 3};
  const std::array<std::int32_t, 2> fixed = {4, 5};
  EXPECT_EQ(array(raw).to_vector(), (Numbers{1, 2, 3}));
  EXPECT_EQ(array(fixed).dtype(), DType::I32);
  EXPECT_EQ(array(std::span<float>(raw)).to_vector(), (Numbers{1, 2, 3}));
  EXPECT_EQ(array(std::span<const float>(raw), {3, 1}).shape(), (Dims{3, 1}));
  EXPECT_EQ(array({1.0, 2.0, 3.0}).dtype(), DType::F32);  // a list, not a C array
  EXPECT_THROW((void)zeros({2, -1}), UserError);
}

TEST(ArrayCalls, TypesPrint) {
  std::ostringstream out;
  const Array x = ones({2, 3});
  out << x.dtype() << ' ' << x.shape() << ' ' << x.dim(1) << ' ' << x.type();
  EXPECT_EQ(out.str(), "f32 [2, 3] 3 f32[2, 3]");
  EXPECT_EQ(formatted("{} {} {}", x.dtype(), x.shape(), x.dim(0)), "f32 [2, 3] 2");
}

TEST(ArrayCalls, MessagesNameNumbersAndLetters) {
  const auto said = [](const auto& f) {
    try {
      (void)f();
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  const Array i = array({1, 2, 3});
  EXPECT_NE(said([&] { return i * 0.5; }).find("'mul' of i32[3] and the number 0.5\n"),
            std::string::npos);
  EXPECT_NE(said([&] {
              return einsum("ij,jk->ik", ones({2, 3}), ones({2, 4}));
            }).find("'j' is 3 in operand 0, f32[2, 3], and 2 in operand 1, f32[2, 4]"),
            std::string::npos);
}

TEST(ArrayCalls, TreesAreReducedAndRaveled) {
  struct Params {
    Array w;
    std::vector<Array> b;
  };
  const Params p{array({{1.0, 2.0}, {3.0, 4.0}}), {array({5.0}), array(6.0)}};
  const auto more = [](const Array& a, const Array& x) { return a + sum(x); };
  EXPECT_EQ(tree_reduce(more, p, 0.0).item(), 21);
  const auto [flat, unravel] = ravel_tree(p);
  EXPECT_EQ(flat.to_vector(), (Numbers{1, 2, 3, 4, 5, 6}));
  const Params twice = unravel(flat * 2.0);
  EXPECT_EQ(twice.w.to_vector(), (Numbers{2, 4, 6, 8}));
  EXPECT_EQ(twice.b[1].item(), 12);
  EXPECT_THROW((void)unravel(ones({5})), UserError);
  EXPECT_EQ(sum(zeros_like(p).w + ones_like(p).w).item(), 4);
  // A Newton step on all params at once.
  const auto loss = [&](const Array& v) {
    const Params q = unravel(v);
    return sum(square(q.w - 1.0)) + sum(square(q.b[0])) + square(q.b[1] - 2.0);
  };
  const Array step = solve(hessian(loss)(flat), grad(loss)(flat));
  EXPECT_TRUE(allclose(flat - step, array({1.0, 1.0, 1.0, 1.0, 0.0, 2.0}), 0, 1e-5));
}

TEST(ArrayTraces, ATypeStandsForAnArray) {
  const Graph g =
      trace([](const Array& x, const Array& y) { return matmul(x, y); }, f32({2, 3}), f32({3, 4}));
  EXPECT_EQ(g.type(g.outputs()[0]), f32({2, 4}));
  const Graph mixed =
      trace([](const auto& x, const Array& y) { return x + y; }, f64({2}), ones({2}, {DType::F64}));
  EXPECT_EQ(mixed.type(mixed.outputs()[0]), f64({2}));
  const Graph sizes = trace([](const Array& x) { return sum(x * 2.0, 0); }, f32({Dim("n"), 3}));
  EXPECT_EQ(sizes.type(sizes.outputs()[0]), f32({3}));
}

TEST(ArrayTraces, TheTraceOfAMatrixIsANumber) {
  Array matrix = array({{1.0, 2.0}, {3.0, 4.0}});
  EXPECT_EQ(trace(matrix).item(), 5);
  EXPECT_EQ(trace(std::as_const(matrix)).item(), 5);
  EXPECT_EQ(trace(matrix + 1.0).item(), 7);
}

std::string message_of_call(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(ArrayCalls, ErrorsPointAtTheCall) {
  const Array x = array({1.0, 2.0});
  const auto same = [](const Array& a) { return a; };
  const auto looks = [](const Array& a) { return a * a.item(); };
  const std::vector<std::function<void()>> calls = {
      [&] { (void)vjp(same, x).map(ones({3})); }, [&] { (void)linearize(same, x).map(ones({3})); },
      [&] { (void)cond(x[0] > 0.0, [&] { return x; }, [&] { return cast(x, DType::F64); }); },
      [&] { (void)trace(looks, array({1.0})); },
      [&] { (void)lift([](Value a) { return a; }, Array()); }};
  for (const auto& call : calls) {
    const std::string text = message_of_call(call);
    EXPECT_NE(text.find("calls_test.cpp"), std::string::npos) << text;
    EXPECT_EQ(text.find("include/ricci"), std::string::npos) << text;
  }
}

TEST(ArrayIndexing, AnIndexMayBeKept) {
  const Array x = array({10.0, 20.0, 30.0});
  const Index last = array({2, 1});  // of an array that nobody else holds
  EXPECT_EQ(x[last].to_vector(), (Numbers{30, 20}));
  EXPECT_EQ(x.at(last).set(0.0).to_vector(), (Numbers{10, 0, 0}));
}

TEST(ArrayValues, TemporariesAreGivenAway) {
  const Array& kept = (array({1.0, 2.0}) + 1.0).eval();  // would dangle if it were a reference
  EXPECT_EQ(kept.to_vector(), (Numbers{2, 3}));
  struct Two {
    Array a, b;
  };
  const auto f = [](const Two& t) { return sum(t.a * t.b); };
  const Array& block = hessian(f)(Two{array({1.0}), array({2.0})})("a", "b");
  EXPECT_EQ(block.item(), 1);
}

TEST(ArrayQuotients, OfIntegersAreAskedFor) {
  const Array a = array({7, -7, 7, -7});
  const Array b = array({2, 2, -2, -2});
  for (const auto& f :
       {std::function([&] { (void)(a / b); }), std::function([&] { (void)(a / 2); }),
        std::function([&] { (void)(Array(7) / 2); }), std::function([&] { (void)divide(a, b); })}) {
    const std::string text = message_of_call(f);
    EXPECT_NE(text.find("floor_divide"), std::string::npos) << text;
    EXPECT_NE(text.find("trunc_divide"), std::string::npos) << text;
    EXPECT_NE(text.find("cast"), std::string::npos) << text;
  }
  EXPECT_EQ(floor_divide(a, b).to_vector(), (Numbers{3, -4, -4, 3}));
  EXPECT_EQ(trunc_divide(a, b).to_vector(), (Numbers{3, -3, -3, 3}));
  EXPECT_EQ(trunc_divide(array({-7.5, 7.5}), 2.0).to_vector(), (Numbers{-3, 3}));
  EXPECT_EQ((cast(a, DType::F32) / b[0].item()).to_vector(), (Numbers{3.5, -3.5, 3.5, -3.5}));
  EXPECT_EQ((array({1.0, 3.0}) / 2).to_vector(), (Numbers{0.5, 1.5}));
}

TEST(ArrayQuotients, RemaindersHaveTheSignOfTheDivisor) {
  const Array a = array({7, -7, 7, -7});
  const Array b = array({2, 2, -2, -2});
  EXPECT_EQ((a % b).to_vector(), (Numbers{1, 1, -1, -1}));
  EXPECT_EQ((a % 2).to_vector(), (Numbers{1, 1, 1, 1}));
  EXPECT_EQ(fmod(a, b).to_vector(), (Numbers{1, -1, 1, -1}));
  EXPECT_EQ(rem(a, b).to_vector(), (Numbers{1, -1, 1, -1}));
  EXPECT_EQ((array({-7.5, 7.5}) % 2.0).to_vector(), (Numbers{0.5, 1.5}));
}

}  // namespace
}  // namespace ricci::calls_test
