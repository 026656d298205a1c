// Calls that people write: all of them compile, and errors point at them.
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/support/error.h"

namespace ricci {
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
}  // namespace ricci
