// Taylor mode: series against closed forms, what it does to names, zeros and loops, and how graphs
// grow with the order. [nth-order-general]
#include <cmath>
#include <functional>
#include <numbers>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/verify.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/higher_order.h"
#include "ricci/transform/jet.h"
#include "ricci/transform/jvp.h"

#include "support/compare.h"

namespace ricci::testing::transform_jet_test {
namespace {

using Function = std::function<Value(Value)>;
using Numbers = std::vector<double>;

Graph of(const Function& f, const Type& type = f64({})) {
  Graph g("f");
  const Value x = g.input("x", type);
  g.set_outputs({f(x)});
  return g;
}

Tensor numbers(Dims dims, const Numbers& values) {
  return Tensor::from_numbers<double>(f64(std::move(dims)), values);
}
Tensor scalar(double v) { return numbers({}, {v}); }

double derivative(const Graph& g, int order, double x) {
  const Transformed t = nth_order_grad(g, "x", order);
  verify(t.graph);
  return interpret(t.graph, {{"x", scalar(x)}})[0].numbers<double>()[0];
}

void expect_near(double actual, double expected, const std::string& what) {
  EXPECT_NEAR(actual, expected, 2e-12 * std::max(1.0, std::abs(expected))) << what;
}

// Truncated power series in plain numbers: what the expected values are computed with.
struct Power {
  Numbers c;

  static Power variable(double x, std::size_t order) {
    Power p{Numbers(order + 1, 0.0)};
    p.c[0] = x;
    p.c[1] = 1;
    return p;
  }
  [[nodiscard]] double derivative(std::size_t k) const {
    return c[k] * std::tgamma(static_cast<double>(k) + 1);
  }
  friend Power operator*(const Power& a, const Power& b) {
    Power out{Numbers(a.c.size(), 0.0)};
    for (std::size_t i = 0; i < a.c.size(); ++i) {
      for (std::size_t j = 0; i + j < a.c.size(); ++j) out.c[i + j] += a.c[i] * b.c[j];
    }
    return out;
  }
  friend Power operator+(Power a, const Power& b) {
    for (std::size_t i = 0; i < a.c.size(); ++i) a.c[i] += b.c[i];
    return a;
  }
  friend Power operator*(double s, Power a) {
    for (double& v : a.c) v *= s;
    return a;
  }
  /// Σ f_k·(a - a₀)^k
  [[nodiscard]] Power into(const Numbers& coefficients) const {
    Power step = *this;
    step.c[0] = 0;
    Power power{Numbers(c.size(), 0.0)};
    power.c[0] = 1;
    Power out{Numbers(c.size(), 0.0)};
    for (const double f : coefficients) {
      out = out + f * power;
      power = power * step;
    }
    return out;
  }
};

Numbers exp_at(double x, std::size_t order) {
  Numbers out{std::exp(x)};
  for (std::size_t k = 1; k <= order; ++k) out.push_back(out.back() / static_cast<double>(k));
  return out;
}
// x^p
Numbers power_at(double x, double p, std::size_t order) {
  Numbers out{std::pow(x, p)};
  for (std::size_t k = 1; k <= order; ++k) {
    out.push_back(out.back() * (p - static_cast<double>(k) + 1) / static_cast<double>(k) / x);
  }
  return out;
}
// The series of a function from that of its derivative.
Numbers integral(double start, const Numbers& slope) {
  Numbers out{start};
  for (std::size_t k = 1; k < slope.size(); ++k) {
    out.push_back(slope[k - 1] / static_cast<double>(k));
  }
  return out;
}

// Derivatives of t = tanh x are polynomials of t: p ↦ p'·(1 - t²).
Numbers tanh_at(double x, std::size_t order) {
  const double t = std::tanh(x);
  Numbers p{0, 1};
  Numbers out;
  for (std::size_t k = 0; k <= order; ++k) {
    double value = 0;
    for (std::size_t i = p.size(); i-- > 0;) value = value * t + p[i];
    out.push_back(value / std::tgamma(static_cast<double>(k) + 1));
    Numbers next(p.size() + 1, 0.0);
    for (std::size_t i = 1; i < p.size(); ++i) {
      next[i - 1] += static_cast<double>(i) * p[i];
      next[i + 1] -= static_cast<double>(i) * p[i];
    }
    p = std::move(next);
  }
  return out;
}

constexpr std::size_t Most = 8;

void expect_series(const Function& f, double x, const Numbers& expected, const char* what) {
  const Graph g = of(f);
  for (int order = 3; order <= static_cast<int>(Most); ++order) {
    const auto k = static_cast<std::size_t>(order);
    expect_near(derivative(g, order, x), expected[k] * std::tgamma(order + 1),
                fmt::format("{}, order {}", what, order));
  }
}

TEST(TransformJet, SeriesOfElementaryFunctions) {
  const double x = 0.7;
  const Power X = Power::variable(x, Most);
  const Numbers e = exp_at(x, Most);
  const Numbers log = integral(std::log(x), power_at(x, -1, Most));
  expect_series([](Value v) { return exp(v); }, x, e, "exp");
  expect_series([](Value v) { return ricci::log(v); }, x, log, "log");
  expect_series([](Value v) { return v * ricci::log(v); }, x, (X * Power{log}).c, "x·log x");
  expect_series([](Value v) { return pow(v, 2.5); }, x, power_at(x, 2.5, Most), "pow");
  expect_series([](Value v) { return sqrt(v); }, x, power_at(x, 0.5, Most), "sqrt");
  expect_series([](Value v) { return rsqrt(v); }, x, power_at(x, -0.5, Most), "rsqrt");
  expect_series([](Value v) { return 1.0 / v; }, x, power_at(x, -1, Most), "1/x");
  // x^x = exp(x·log x)
  const Power inner = X * Power{log};
  expect_series([](Value v) { return pow(v, v); }, x, inner.into(exp_at(inner.c[0], Most)).c,
                "x^x");
  // 1/(1 + x²)
  const Power square = X * X;
  Power shifted = square;
  shifted.c[0] += 1;
  const Numbers slope = shifted.into(power_at(shifted.c[0], -1, Most)).c;
  expect_series([](Value v) { return atan(v); }, x, integral(std::atan(x), slope), "atan");
  const Power bell = (-1.0 * square).into(exp_at(-x * x, Most));
  const Numbers erf_series = integral(std::erf(x), (2 * std::numbers::inv_sqrtpi * bell).c);
  expect_series([](Value v) { return erf(v); }, x, erf_series, "erf");
  const Numbers tanh_series = tanh_at(x, Most);
  expect_series([](Value v) { return tanh(v); }, x, tanh_series, "tanh");
  const Power product = X * Power{tanh_series};
  expect_series([](Value v) { return exp(tanh(v) * v); }, x,
                product.into(exp_at(product.c[0], Most)).c, "exp(x·tanh x)");
}

TEST(TransformJet, SinesGoRound) {
  const Graph g = of([](Value x) { return sin(x * 2.0); });
  const std::array cycle{std::sin(1.4), std::cos(1.4), -std::sin(1.4), -std::cos(1.4)};
  for (int order = 3; order <= 12; ++order) {
    expect_near(derivative(g, order, 0.7),
                std::pow(2.0, order) * cycle[static_cast<std::size_t>(order % 4)],
                std::to_string(order));
  }
}

// x³ at 0, where b·a^(b-1) must not become 0·inf, and kinks beside which a function is smooth.
TEST(TransformJet, GuardsHold) {
  const Graph cube = of([](Value x) { return pow(x, 3.0); });
  EXPECT_EQ(derivative(cube, 3, 0), 6);
  EXPECT_EQ(derivative(cube, 4, 0), 0);
  const Graph kink = of([](Value x) { return relu(x) * x * x + max(x, 0.0 - x); });
  EXPECT_EQ(derivative(kink, 3, 2), 6);
  EXPECT_EQ(derivative(kink, 3, -2), 0);
  EXPECT_EQ(derivative(of([](Value x) { return sqrt(x); }), 3, 0), 0);
}

// Derivatives along a curve, all orders at once, by nesting forward mode on f(x + s·v).
void expect_like_nested(const Graph& g, const Feeds& feeds, int order) {
  const Transformed t = jet(g, {"x"}, order, {.line = true});
  verify(t.graph);
  const Tensor direction = random_tensor(9, feeds.at("x").type(), -1, 1);
  Feeds moving = feeds;
  moving[t.names.at("d1_x")] = direction;
  const std::vector<Tensor> series = interpret(t.graph, moving);
  Graph nested = g;
  Feeds now = feeds;
  for (int k = 1; k <= order; ++k) {
    Transformed next = jvp(nested, {"x"});
    now[next.names.at("tangent_x")] = direction;
    nested = std::move(next.graph);
    nested.set_outputs(std::vector<ValueId>{nested.outputs().back()});
    EXPECT_TRUE(
        close(series[static_cast<std::size_t>(k)], interpret(nested, now)[0], {1e-10, 1e-10}))
        << "order " << k;
  }
}

TEST(TransformJet, TensorsAndComposites) {
  const Type matrix = f64({3, 4});
  const auto check = [&](const Function& f) {
    expect_like_nested(of(f, matrix), {{"x", random_tensor(1, matrix, -1, 1)}}, 5);
  };
  check([](Value x) { return matmul(x, transpose_last(tanh(x))); });
  check([](Value x) { return softmax(x * x, {.axis = -1}); });
  check([](Value x) {
    const Value one = x.graph().constant(random_tensor(4, f64({4})));
    return layer_norm(x, one, one);
  });
  check([](Value x) { return log_sum_exp(x, {1}); });
  check([](Value x) { return reduce_prod(x, {0}); });
}

TEST(TransformJet, Attention) {
  const Type type = f64({1, 2, 3, 4});
  const Graph g = of(
      [](Value x) {
        return attention(x, sin(x), x * x,
                         {.num_heads = 2, .head_dim = 4, .layout = AttentionLayout::Bhsd});
      },
      type);
  expect_like_nested(g, {{"x", random_tensor(1, type, -1, 1)}}, 4);
}

// c ← sin(c)·x + row, over rows of x.
TEST(TransformJet, ScanCarriesCoefficients) {
  Graph g("loop");
  const Value x = g.input("x", f64({4, 2}));
  const Value start = sum(x, {0});
  const auto step = [](Graph&, std::span<const Value> in) {
    const Value next = sin(in[0]) * in[1] + in[1];
    return std::vector{next, next * in[0]};
  };
  const auto out = scan(std::array{start}, ScanOptions{.xs = {x}}, step);
  g.set_outputs({sum(out[0] * out[0]) + sum(out[1])});
  expect_like_nested(g, {{"x", random_tensor(1, f64({4, 2}), -1, 1)}}, 5);
}

// A loop without a bound has no reverse mode, but it has a series.
TEST(TransformJet, WhileAndIfFollowTheirValues) {
  const Graph loop = of([](Value x) {
    const auto go_on = [](Graph&, std::span<const Value> in) {
      return std::vector{lt(in[0], scalar_like(in[0], 10))};
    };
    const auto trip = [](Graph&, std::span<const Value> in) {
      return std::vector{in[0] * in[0] + 1.0};
    };
    return while_loop(std::array{x}, go_on, trip).carries[0];
  });
  expect_like_nested(loop, {{"x", scalar(0.8)}}, 6);
  const Graph branch = of([](Value x) {
    return cond(
        lt(x, scalar_like(x, 0)), std::array{x},
        [](Graph&, std::span<const Value> in) { return std::vector{exp(in[0])}; },
        [](Graph&, std::span<const Value> in) { return std::vector{in[0] * in[0] * in[0]}; })[0];
  });
  expect_near(derivative(branch, 5, -0.5), std::exp(-0.5), "then");
  expect_near(derivative(branch, 3, 0.5), 6, "else");
}

// d/ds of f(x(s)) with x'' ≠ 0: (f')·x''' + 3 f''·x'·x'' + f'''·x'³.
TEST(TransformJet, CurvesHaveDerivativesAsInputs) {
  const Transformed t = jet(of([](Value x) { return exp(x); }), {"x"}, 3);
  const auto out = interpret(
      t.graph,
      {{"x", scalar(0.5)}, {"d1_x", scalar(2)}, {"d2_x", scalar(-3)}, {"d3_x", scalar(5)}});
  ASSERT_EQ(out.size(), 4U);
  const double e = std::exp(0.5);
  const Numbers expected{e, 2 * e, (4 - 3) * e, (5 + 3 * 2 * -3 + 8) * e};
  for (std::size_t k = 0; k < 4; ++k) EXPECT_TRUE(close(out[k], scalar(expected[k])));
}

TEST(TransformJet, NamesAreUniqueAndHandedBack) {
  Graph g("taken");
  const Value x = g.input("x", f64({}));
  g.set_outputs({x * g.input("d1_x", f64({})) * g.input("dir_1", f64({}))});
  const Transformed t = jet(g, {"x"}, 2);
  EXPECT_EQ(t.names.at("d1_x"), "d1_x_2");
  EXPECT_EQ(t.names.at("d2_x"), "d2_x");
  EXPECT_EQ(t.graph.name(), "taken_jet2");
  for (const int levels : {2, 5}) {
    EXPECT_EQ(directional_nth_grad(g, "x", levels).names.at("dir_1"), "dir_1_2") << levels;
  }
  EXPECT_THROW((void)jet(g, {"x", "x"}, 2), UserError);
  EXPECT_THROW((void)jet(g, {"x"}, -1), UserError);
}

TEST(TransformJet, ZerosHaveTheRightType) {
  Graph g("zeros");
  const Value x = g.input("x", f64({1}));
  g.set_outputs({reshape_to(x * x, {}) + sum(g.param("b", f64({2})))});
  const Transformed t = nth_order_grad(g, "x", 3);
  EXPECT_TRUE(t.graph.find("b").has_value());
  EXPECT_EQ(t.graph.type(t.graph.outputs()[0]), f64({1}));
  const Transformed wide =
      directional_nth_grad(of([](Value v) { return v * v; }, f64({3})), "x", 6);
  EXPECT_EQ(wide.graph.type(wide.graph.outputs()[0]), f64({3}));
  EXPECT_EQ(wide.graph.inputs().size(), 7U);
}

// Symbolic sizes stay symbolic, and factorials need not fit into a dtype.
TEST(TransformJet, SymbolsAndNarrowTypes) {
  const Type rows = f64({Dim::symbol("n"), 3});
  const Graph g = of([](Value x) { return softmax(x * x, {.axis = 0}); }, rows);
  expect_like_nested(g, {{"x", random_tensor(1, f64({4, 3}), -1, 1)}}, 4);
  const Graph half = of([](Value x) { return exp(x * 0.5); }, f16({}));
  const Transformed t = nth_order_grad(half, "x", 10);
  const Tensor d = interpret(t.graph, {{"x", Tensor::splat(f16({}), 0.0)}})[0];
  EXPECT_EQ(d.dtype(), DType::F16);
  EXPECT_NEAR(d.numbers<double>()[0], std::pow(0.5, 10), 1e-5);
  const Graph single = of([](Value x) { return sin(x); }, f32({}));
  const Tensor far =
      interpret(nth_order_grad(single, "x", 64).graph, {{"x", Tensor::splat(f32({}), 0.7)}})[0];
  EXPECT_NEAR(far.numbers<double>()[0], std::sin(0.7), 1e-5);
}

// The rule of a function of its own, whose loops and branches depend on the function's result.
TEST(TransformJet, OwnRulesAreHonoured) {
  const auto fwd = [](Graph&, std::span<const Value> in) { return std::vector{exp(in[0])}; };
  const JvpFunction rule = [](Graph&, const JvpInputs& in) {
    const auto product = [](Graph&, std::span<const Value> v) { return std::vector{v[0] * v[1]}; };
    const auto zero = [](Graph&, std::span<const Value> v) { return std::vector{v[0] * 0.0}; };
    return cond(lt(in.outputs[0], scalar_like(in.outputs[0], 100)),
                std::array{in.outputs[0], in.tangents[0]}, product, zero);
  };
  const Graph g = of([&](Value x) { return custom_fn(std::array{x}, fwd, {.jvp = rule}); });
  expect_near(derivative(g, 6, 0.5), std::exp(0.5), "below");
  EXPECT_EQ(derivative(g, 6, 5), 0);
  // With a reverse rule that is not the derivative, here its double, what is differentiated again
  // is that rule.
  const VjpFunction twice = [](Graph&, const VjpInputs& in) {
    return std::vector{in.primals[0] * in.primals[0] * in.d_outputs[0] * 2.0};
  };
  const Graph odd = of([&](Value x) { return custom_fn(std::array{x}, fwd, {.vjp = twice}); });
  EXPECT_EQ(derivative(odd, 3, 7), 4);
}

}  // namespace
}  // namespace ricci::testing::transform_jet_test
