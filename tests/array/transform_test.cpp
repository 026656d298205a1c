// Functions of functions: what they compute, how they compose, and what they say when they cannot.
#include <cmath>
#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/build/build.h"
#include "ricci/ir/verify.h"
#include "ricci/support/error.h"

namespace ricci::transform_test {
namespace {

using Numbers = std::vector<double>;

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

void expect_near(const Array& actual, const Numbers& expected, double tolerance = 1e-5) {
  const Numbers found = actual.to_vector();
  ASSERT_EQ(found.size(), expected.size()) << actual;
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << actual;
  }
}

struct Layer {
  Array w, b;
  Array operator()(const Array& x) const { return tanh(matmul(x, w) + b); }
};
struct Net {
  Layer first, second;
  double slope = 1;  // static
  Array operator()(const Array& x) const { return slope * second(first(x)); }
};
Net some_net() {
  return {{normal(Key(1), {2, 4}), zeros({4})}, {normal(Key(2), {4, 1}), ones({1})}};
}
Array some_batch() { return normal(Key(3), {5, 2}); }
Array net_loss(const Net& net, const Array& x) { return mean(square(net(x))); }

TEST(ArrayTransforms, GradientsOfFunctions) {  // [FE-1a]
  const auto f = [](Array x) { return sum(x * x * x); };
  expect_near(grad(f)(array({1.0, 2.0})), {3, 12});
  expect_near(grad(grad([](Array x) { return x * x * x; }))(2.0), {12});
  expect_near(grad<1>([](Array x, Array y) { return x * y * y; })(3.0, 2.0), {12});
  const auto [dx, dy] = grad<0, 1>([](Array x, Array y) { return x * y * y; })(3.0, 2.0);
  expect_near(dx, {4});
  expect_near(dy, {12});
  const auto [value, g] = value_and_grad(f)(array({1.0, 2.0}));
  EXPECT_EQ(value.item(), 9);
  expect_near(g, {3, 12});
}

TEST(ArrayTransforms, GradientsHaveTheStructureOfTheArgument) {
  const Net net = some_net();
  const Array x = some_batch();
  const Net g = grad(net_loss)(net, x);
  EXPECT_EQ(leaf_names(g),
            (std::vector<std::string>{"first.w", "first.b", "second.w", "second.b"}));
  EXPECT_EQ(g.first.w.type(), net.first.w.type());
  // Against a difference.
  Net moved = net;
  const double h = 1e-2;
  moved.second.b = net.second.b + h;
  const double up = net_loss(moved, x).item();
  moved.second.b = net.second.b - h;
  const double slope = (up - net_loss(moved, x).item()) / (2 * h);
  EXPECT_NEAR(g.second.b.item(), slope, 1e-3);
}

TEST(ArrayTransforms, AuxValuesAreHandedOn) {
  const auto f = [](Array x) { return std::pair{sum(x * x), x + 1}; };
  const auto [g, aux] = grad(f)(array({1.0, 2.0}));
  expect_near(g, {2, 4});
  expect_near(aux, {2, 3});
  const auto [value, g2] = value_and_grad(f)(array({1.0, 2.0}));
  EXPECT_EQ(value.first.item(), 5);
}

TEST(ArrayTransforms, ContainersAreTrees) {
  using Params = std::map<std::string, std::vector<std::optional<Array>>>;
  const Params p = {{"a", {array({1.0}), std::nullopt}}, {"b", {array({2.0, 3.0})}}};
  const auto f = [](const Params& q) { return sum(*q.at("a")[0]) * sum(square(*q.at("b")[0])); };
  const Params g = grad(f)(p);
  expect_near(*g.at("a")[0], {13});
  EXPECT_FALSE(g.at("a")[1].has_value());
  expect_near(*g.at("b")[0], {4, 6});
  EXPECT_EQ(leaf_names(p), (std::vector<std::string>{"a.0", "b.0"}));
  const Params doubled = tree_map([](const Array& x) { return 2 * x; }, p);
  expect_near(*doubled.at("b")[0], {4, 6});
}

struct Wide {
  Array a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19,
      a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31;
};
TEST(ArrayTransforms, AStructHas32Fields) {
  Wide wide;
  std::vector<Array> values;
  // A struct without values has no leaves; here each gets one.
  wide = {ones({1}), ones({1}), ones({1}), ones({1}), ones({1}), ones({1}), ones({1}), ones({1}),
          ones({1}), ones({1}), ones({1}), ones({1}), ones({1}), ones({1}), ones({1}), ones({1}),
          ones({1}), ones({1}), ones({1}), ones({1}), ones({1}), ones({1}), ones({1}), ones({1}),
          ones({1}), ones({1}), ones({1}), ones({1}), ones({1}), ones({1}), ones({1}), ones({1})};
  const Wide g = grad([](const Wide& w) { return sum(3 * w.a31 + w.a0 * w.a0); })(wide);
  expect_near(g.a31, {3});
  expect_near(g.a0, {2});
  expect_near(g.a15, {0});
  EXPECT_EQ(leaf_names(wide)[31], "a31");
  EXPECT_EQ(leaves(Wide()).size(), 0U);
}

TEST(ArrayTransforms, ForwardModeAndProducts) {
  const auto f = [](Array x) { return sin(x) * x; };
  const auto [y, dy] = jvp(f, array({1.0}), array({2.0}));
  EXPECT_NEAR(dy.item(), 2 * (std::cos(1) + std::sin(1)), 1e-5);
  const auto two = [](Array x, Array z) { return x * z; };
  EXPECT_EQ(jvp(two, std::tuple{Array(2.0), Array(3.0)}, std::tuple{Array(1.0), Array(1.0)})
                .second.item(),
            5);
  const auto cubes = [](Array x) { return sum(x * x * x); };
  expect_near(hvp(cubes)(array({1.0, 2.0}), array({1.0, 1.0})), {6, 12});
  expect_near(hessian(cubes)(array({1.0, 2.0})), {6, 0, 0, 12});
  const auto squares = [](Array x) { return x * x; };
  expect_near(jacfwd(squares)(array({1.0, 2.0})), {2, 0, 0, 4});
  expect_near(jacrev(squares)(array({1.0, 2.0})), {2, 0, 0, 4});
  EXPECT_EQ(jacrev([](Array x) { return matmul(x, x); })(ones({2, 2})).shape(), (Dims{2, 2, 2, 2}));
}

TEST(ArrayTransforms, PullbacksAndPushforwardsAreCalledOften) {
  int calls = 0;
  const auto f = [&](Array x, Array y) {
    ++calls;
    return exp(x) * y;
  };
  const auto [value, back] = vjp(f, array({0.0, 1.0}), array({2.0, 3.0}));
  expect_near(value, {2, 3 * std::exp(1.0)});
  const auto [dx, dy] = back(array({1.0, 0.0}));
  expect_near(dx, {2, 0});
  expect_near(dy, {1, 0});
  expect_near(std::get<0>(back(array({0.0, 1.0}))), {0, 3 * std::exp(1.0)});
  const auto [same, push] = linearize(f, array({0.0, 1.0}), array({2.0, 3.0}));
  expect_near(push(array({1.0, 0.0}), array({0.0, 1.0})), {2, std::exp(1.0)});
  expect_near(push(array({0.0, 0.0}), array({1.0, 1.0})), {1, std::exp(1.0)});
  EXPECT_EQ(calls, 2);
}

TEST(ArrayTransforms, Batches) {
  const Array xs = reshape(arange(6), {3, 2});
  expect_near(vmap([](Array x) { return sum(x); })(xs), {1, 5, 9});
  const auto dot2 = [](Array x, Array w) { return sum(x * w); };
  expect_near(vmap(dot2, {.in_axes = {0, {}}})(xs, array({1, 10})), {10, 32, 54});
  expect_near(vmap(dot2, {.in_axes = {1, {}}})(xs, array({1, 0, 0})), {0, 1});
  const Array rows = vmap([](Array x) { return 2 * x; }, {.in_axes = {0}, .out_axes = 1})(xs);
  EXPECT_EQ(rows.shape(), (Dims{2, 3}));
  // Captures are shared; gradients per example compose.
  const Array w = array({1.0, 2.0});
  const auto per_example =
      vmap(grad([&](Array x) { return sum(x * x * w); }))(cast(xs, DType::F32));
  expect_near(per_example, {0, 4, 4, 12, 8, 20});
}

TEST(ArrayTransforms, CapturesOfTwoEnclosingTraces) {
  // d/dx d/dy (x·y²·k) = 2·y·k, where the inner function captures x, and k from outside.
  const Array k = array({3.0});
  const auto outer = [&](Array x) {
    const auto inner = [&](Array y) { return sum(x * y * y * k); };
    return sum(grad(inner)(x * 2.0));
  };
  // inner' at y = 2x: 2·x·2x·k = 4k·x²; its derivative 8k·x.
  expect_near(grad(outer)(array({5.0})), {120});
  expect_near(jit(grad(outer))(array({5.0})), {120});
  expect_near(vmap(grad(outer))(array({{5.0}, {1.0}})), {120, 24});
  // Three deep, with a loop in the middle that captures from both.
  const auto deep = [&](Array a) {
    return sum(grad([&](Array b) {
      const Array c = scan(b, 3, [&](Array s) { return s * a + b * k; }).last;
      return sum(c);
    })(a * a));
  };
  const auto at = [&](double v) { return deep(array({v}, {.dtype = DType::F32})).item(); };
  const double slope = (at(1.01) - at(0.99)) / 0.02;
  EXPECT_NEAR(grad(deep)(array({1.0})).item(), slope, 2e-2 * std::abs(slope));
}

TEST(ArrayTransforms, HvpThroughAScanWithCapturesAndACustomRule) {
  const auto gentle = custom_vjp([](Array x) { return tanh(x); },
                                 [](Array, Array y, Array dy) { return dy * (1 - y * y); });
  const auto plain = [](Array x) { return tanh(x); };
  const auto loss_with = [](const auto& f) {
    return [f](const Layer& p, Array x) {
      const Array last = scan(x, 4, [&](Array h) { return f(matmul(h, p.w) + p.b); }).last;
      return sum(last * last);
    };
  };
  const Layer p = {normal(Key(1), {3, 3}), normal(Key(2), {3})};
  const Layer v = {normal(Key(3), {3, 3}), normal(Key(4), {3})};
  const Array x = normal(Key(5), {2, 3});
  const Layer a = hvp(loss_with(gentle))(p, v, x);
  const Layer b = hvp(loss_with(plain))(p, v, x);
  expect_near(a.w, b.w.to_vector(), 1e-4);
  expect_near(a.b, b.b.to_vector(), 1e-4);
  const Layer c = jit([&](const Layer& q, const Layer& t, const Array& y) {
    return hvp(loss_with(gentle))(q, t, y);
  })(p, v, x);
  expect_near(c.w, b.w.to_vector(), 1e-4);
}

TEST(ArrayTransforms, RulesOfOnesOwn) {
  const auto clipped = custom_vjp([](Array x) { return x * x; },
                                  [](Array x, Array, Array dy) { return clip(dy * 2 * x, -1, 1); });
  expect_near(grad([&](Array x) { return sum(clipped(x)); })(array({0.25, 3.0})), {0.5, 1});
  const auto two = custom_vjp([](Array x, Array y) { return x * y; },
                              [](Array, Array, Array, Array d) { return std::tuple{d, 7 * d}; });
  const auto [dx, dy] = grad<0, 1>([&](Array x, Array y) { return two(x, y); })(2.0, 3.0);
  EXPECT_EQ(dx.item(), 1);
  EXPECT_EQ(dy.item(), 7);
  const auto forward =
      custom_jvp([](Array x) { return x * x; }, [](Array, Array dx2) { return 10 * dx2; });
  EXPECT_EQ(jvp(forward, Array(3.0), Array(1.0)).second.item(), 10);
  const Array captured = grad([](Array w) {
    const auto f =
        custom_vjp([&](Array x) { return x * w; }, [](Array, Array, Array d) { return 10 * d; });
    return sum(f(w));
  })(array({3.0}));
  EXPECT_EQ(captured.item(), 13);  // by the argument as the rule says, by the capture as it is
}

TEST(ArrayTransforms, ForwardRulesAreThoseOfGradientsToo) {
  // Not the function's derivative, so that it shows which one is taken.
  const auto tenfold =
      custom_jvp([](Array x) { return 3 * x; }, [](Array x, Array t) { return 10 * x * t; });
  const Array two = array(2.0);
  EXPECT_EQ(grad(tenfold)(two).item(), 20);
  EXPECT_EQ(jit(grad(tenfold))(two).item(), 20);
  EXPECT_EQ(value_and_grad(tenfold)(two).first.item(), 6);
  EXPECT_EQ(hessian(tenfold)(two).item(), 10);
  EXPECT_EQ(grad(grad(tenfold))(two).item(), 10);
  EXPECT_EQ(jacfwd(tenfold)(two).item(), 20);
  EXPECT_EQ(jacrev(tenfold)(two).item(), 20);
  expect_near(vmap(grad(tenfold))(array({1.0, 2.0})), {10, 20});
  expect_near(grad([&](Array x) { return sum(vmap(tenfold)(x)); })(array({1.0, 2.0})), {10, 20});
  // A value all examples share.
  const auto scaled =
      custom_jvp([](Array x, Array w) { return x * w; },
                 [](Array x, Array w, Array dx, Array dw) { return 10 * (dx * w + x * dw); });
  EXPECT_EQ(grad([&](Array w) {
              return sum(vmap(scaled, {.in_axes = {0, {}}})(array({1.0, 2.0}), w));
            })(array(5.0))
                .item(),
            30);
  // Structs, an integer beside, and what neither the rule nor the gradient asks for.
  struct Point {
    Array x, y, label;
  };
  const auto product =
      custom_jvp([](const Point& p) { return p.x * p.y; },
                 [](const Point& p, const Point& t) { return 100 * t.x * p.y + 7 * t.y * p.x; });
  const Point g = grad(product)(Point{array(2.0), array(3.0), array(1)});
  EXPECT_EQ(g.x.item(), 300);
  EXPECT_EQ(g.y.item(), 14);
  // As in JAX's documentation: no overflow where the function has none.
  const auto softplus = custom_jvp([](Array x) { return log1p(exp(x)); },
                                   [](Array x, Array t) { return (1 - 1 / (1 + exp(x))) * t; });
  EXPECT_EQ(grad(softplus)(array(100.0)).item(), 1);
  // By what is captured it is differentiated as it is, inside a loop too.
  const auto captured = [](Array w) {
    const auto f =
        custom_jvp([&](Array x) { return x * w; }, [&](Array, Array t) { return 10 * t * w; });
    return scan(w, 2, f).last;
  };
  EXPECT_EQ(grad(captured)(array(2.0)).item(), 444);
  // A rule that has no transpose is one for forward mode.
  const auto halved = custom_jvp(
      [](Array x) { return 2 * x; },
      [](Array, Array t) {
        return while_loop(t, [](Array s) { return abs(s) > 1; }, [](Array s) { return s / 2; });
      });
  EXPECT_EQ(jvp(halved, array(1.0), array(8.0)).second.item(), 1);
  EXPECT_THROW((void)grad(halved)(array(1.0)).item(), UserError);
}

TEST(ArrayTransforms, CheckpointsChangeNothing) {
  const Net net = some_net();
  const Array x = some_batch();
  const auto plain = grad(net_loss)(net, x);
  const auto kept = grad([](const Net& n, Array y) {
    return checkpoint([](const Net& m, Array z) { return net_loss(m, z); })(n, y);
  })(net, x);
  const auto captured =
      grad([&](const Net& n) { return checkpoint([&] { return net_loss(n, x); })(); })(net);
  expect_near(kept.first.w, plain.first.w.to_vector());
  expect_near(captured.first.w, plain.first.w.to_vector());
  expect_near(grad([](Array y) { return sum(stop_gradient(y) * y); })(array({3.0})), {3});
}

TEST(ArrayJit, CompilesOncePerSetOfTypes) {
  int traced = 0;
  const auto f = jit([&](Array x, double slope) {
    ++traced;
    return x * slope;
  });
  expect_near(f(array({1.0, 2.0}), 3.0), {3, 6});
  expect_near(f(array({2.0, 2.0}), 3.0), {6, 6});
  EXPECT_EQ(traced, 1);
  expect_near(f(array({1.0, 2.0}), 4.0), {4, 8});  // static
  expect_near(f(array({1.0}), 4.0), {4});
  EXPECT_EQ(traced, 3);
  EXPECT_EQ(f.compiled(), 3U);
  // A number for an array is an argument like others.
  const auto g = jit([&](Array x, Array slope) { return x * slope; });
  expect_near(g(array({1.0}), 0.5), {0.5});
  expect_near(g(array({1.0}), 0.25), {0.25});
  EXPECT_EQ(g.compiled(), 1U);
  const Array d = array({1.0}, {.dtype = DType::F64});
  EXPECT_EQ(g(d, 0.1).item(), 0.1);
}

TEST(ArrayJit, TakesListsWhereItKnowsWhatTheyAre) {
  const auto sum_of = jit([](std::vector<Array> v) { return v[0] + v[1]; });
  EXPECT_EQ(sum_of({array(1.0), array(2.0)}).item(), 3);
  struct Point {
    Array x, y;
  };
  const auto product = [](const Point& p, const Array& w) { return p.x * p.y * w; };
  const Array w = array(2.0);
  EXPECT_EQ(grad(product)({array(3.0), array(5.0)}, w).x.item(), 10);
  EXPECT_EQ(jit(product)({w, w}, 2.0).item(), 8);
  // What is handed over is, as without this.
  const auto next = jit([](Array x) { return x + 1; }, {.donate = {0}});
  Array x = next(ones({3}));
  expect_near(next(std::move(x)), {3, 3, 3});
  EXPECT_FALSE(x.valid());  // NOLINT: it was donated
}

TEST(ArrayJit, TakesAndGivesTrees) {
  const Net net = some_net();
  const auto step = jit([](const Net& n, Array x) {
    const auto [loss, g] = value_and_grad(net_loss)(n, x);
    return std::pair{loss,
                     tree_map([](const Array& p, const Array& d) { return p - 0.1 * d; }, n, g)};
  });
  auto [first, now] = step(net, some_batch());
  for (int i = 0; i < 20; ++i) std::tie(first, now) = step(now, some_batch());
  EXPECT_LT(first.item(), net_loss(net, some_batch()).item());
  EXPECT_EQ(now.slope, 1);
}

TEST(ArrayJit, InlinesWhereItIsTraced) {
  const auto f = jit([](Array x) { return x * x; });
  expect_near(grad([&](Array x) { return sum(f(x)); })(array({3.0})), {6});
  expect_near(vmap(f)(array({1.0, 2.0})), {1, 4});
  expect_near(jit([&](Array x) { return f(f(x)); })(array({2.0})), {16});
  // What it captures of a trace around it is good for that trace only.
  const auto outer = [](Array w) {
    const auto inner = jit([&](Array x) { return x * w; });
    return sum(inner(array({2.0})) + inner(w));
  };
  expect_near(grad(outer)(array({3.0})), {8});
}

TEST(ArrayJit, WarnsWhenItKeepsCompiling) {
  std::vector<std::string> warnings;
  set_warning_handler([&](std::string_view w) { warnings.emplace_back(w); });
  const auto f = jit([](Array x) { return x + 1; }, {.name = "step", .warn_after = 3});
  for (int n = 1; n <= 5; ++n) (void)f(zeros({n}));
  set_warning_handler({});
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("'step', jit at"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("'x0' was f32[2] and is f32[3]"), std::string::npos) << warnings[0];
}

TEST(ArrayJit, WarnsWhichStaticValueChanges) {
  std::vector<std::string> warnings;
  set_warning_handler([&](std::string_view w) { warnings.emplace_back(w); });
  const auto step =
      jit([](Array x, bool on, double rate) { return on ? x * rate : x; }, {.warn_after = 2});
  for (const double rate : {0.5, 0.25}) (void)step(zeros({2}), true, rate);
  const auto count = jit([](Array x, int n) { return x + n; }, {.warn_after = 2});
  for (const int n : {3, -4}) (void)count(zeros({2}), n);
  struct Setting {
    Array x;
    float rate;
  };
  const auto tree = jit([](Array x, const Setting& s) { return x * s.rate; }, {.warn_after = 2});
  for (const float rate : {1.0F, 2.0F}) (void)tree(zeros({2}), Setting{zeros({2}), rate});
  set_warning_handler({});
  ASSERT_EQ(warnings.size(), 3U);
  EXPECT_NE(warnings[0].find("argument 2, a number that is compiled in, was 0.5 and is 0.25 (an "
                             "Array in its place may vary)"),
            std::string::npos)
      << warnings[0];
  EXPECT_NE(warnings[1].find("argument 1, a number that is compiled in, was 3 and is -4"),
            std::string::npos)
      << warnings[1];
  EXPECT_NE(warnings[2].find("argument 1 holds another number, string or size"), std::string::npos)
      << warnings[2];
}

TEST(ArrayTraces, HaveNoValueAndSayWhose) {
  const std::string look = refusal([] {
    (void)jit([](Array x) {
      if (x > 0) return x;
      return -x;
    })(array({1.0}));
  });
  EXPECT_NE(look.find("is being traced by 'jit' and has no value"), std::string::npos) << look;
  EXPECT_NE(look.find("use where or cond in place of if"), std::string::npos) << look;
  EXPECT_NE(look.find("transform_test.cpp"), std::string::npos) << look;
  Array kept;
  (void)grad([&](Array x) {
    kept = x * 2;
    return sum(x);
  })(array({1.0}));
  const std::string escaped = refusal([&] { (void)kept.item(); });
  EXPECT_NE(escaped.find("has escaped from the function that 'grad' traced"), std::string::npos)
      << escaped;
  const std::string used = refusal([&] { (void)jit([&](Array x) { return x + kept; })(kept); });
  EXPECT_NE(used.find("escaped"), std::string::npos) << used;
  EXPECT_EQ(kept.str(), "traced f32[1] of 'grad'");
}

TEST(ArrayTraces, ErrorsOfTransforms) {
  const Array x = array({1.0, 2.0});
  EXPECT_NE(refusal([&] {
              (void)grad([](Array y) { return y; })(x);
            }).find("'grad' wants a function that gives one number, it gives f32[2]"),
            std::string::npos);
  EXPECT_NE(
      refusal([&] { (void)grad([](Array y) { return sum(y > 0); })(x); }).find("gives a float"),
      std::string::npos);
  EXPECT_NE(refusal([&] {
              (void)vmap([](Array a, Array b) { return a + b; })(x, zeros({3}));
            }).find("batches of 2 and of 3"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              (void)vmap([](Array a) { return a; })(Array(zeros({})));
            }).find("maps over axis 0 of f32[]"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              (void)jvp([](Array a) { return a; }, x, zeros({3}));
            }).find("the tangent of f32[2] is f32[3]"),
            std::string::npos);
  const auto pulled = vjp([](Array a) { return a; }, x);
  EXPECT_NE(refusal([&] { (void)pulled.map(zeros({3})); }).find("f32[3] is given for f32[2]"),
            std::string::npos);
}

TEST(ArrayGraphs, OneCanGoDownAndComeBack) {
  const Graph g = trace([](const Net& n, Array x) { return n(x); }, some_net(), some_batch());
  verify(g);
  ASSERT_EQ(g.inputs().size(), 5U);
  EXPECT_EQ(*g.node(g.inputs()[0]).leaf_name(), "first.w");
  const Net net = some_net();
  const std::vector<Array> args = {net.first.w, net.first.b, net.second.w, net.second.b,
                                   some_batch()};
  expect_near(call(g, args)[0], net(some_batch()).to_vector());
  Graph h("square");
  const Value p = h.param("p", f32({2}));
  h.set_outputs({mul(p, p)});
  expect_near(grad([&](Array x) { return sum(call(h, {&x, 1})[0]); })(array({1.0, 2.0})), {2, 4});
  EXPECT_NE(refusal([&] { (void)call(h, args); }).find("has 1 inputs and params, 5 arrays"),
            std::string::npos);
}

}  // namespace
}  // namespace ricci::transform_test
