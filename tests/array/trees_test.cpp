// Derivatives of structs by structs, axes of single arrays, rules that capture what is traced, and
// derivatives in two halves.
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/support/error.h"

// A class whose arrays are not in sight: it says itself how it is walked.
class Hidden {
 public:
  Hidden() = default;
  Hidden(ricci::Array w, int kind) : weight_(std::move(w)), kind_(kind) {}
  ricci::Array& weight() { return weight_; }
  [[nodiscard]] const ricci::Array& weight() const { return weight_; }
  int& kind() { return kind_; }

 private:
  ricci::Array weight_;
  int kind_ = 0;
};
template <>
struct ricci::TreeTraits<Hidden> {
  static void visit(Hidden& x, ricci::TreeVisitor& v) {
    v.visit("weight", x.weight());
    v.visit("kind", x.kind());
  }
};

namespace ricci::trees_test {
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

struct Point {
  Array a, b;
};
struct Pair2 {
  Point first;
  Array second;
};

TEST(ArrayTrees, HessiansOfStructsAreBlocks) {
  // f = a²·b₀ + b₀·b₁: by (a, b) the Hessian is known.
  const auto f = [](const Point& p) { return p.a * p.a * p.b[0] + p.b[0] * p.b[1]; };
  const Point at{array(3.0), array({2.0, 5.0})};
  const auto h = hessian(f)(at);
  EXPECT_EQ(h("a", "a").item(), 4);
  EXPECT_EQ(h("a", "b").to_vector(), (Numbers{6, 0}));
  EXPECT_EQ(h("b", "a").to_vector(), (Numbers{6, 0}));
  EXPECT_EQ(h("b", "b").shape(), (Dims{2, 2}));
  EXPECT_EQ(h("b", "b").to_vector(), (Numbers{0, 1, 1, 0}));
  EXPECT_EQ(h["a"].b.to_vector(), (Numbers{6, 0}));
  EXPECT_EQ(jit(hessian(f))(at)("a", "b").to_vector(), (Numbers{6, 0}));
  EXPECT_NE(refusal([&] { (void)h("c", "a"); }).find("there is no array 'c'"), std::string::npos);
  // By an Array among other arguments, and through more structure.
  const Array one =
      hessian<1>([](const Point& p, const Array& x) { return sum(p.b * x * x); })(at, ones({2}));
  EXPECT_EQ(one.to_vector(), (Numbers{4, 0, 0, 10}));
  const auto deep = hessian([](const Pair2& p) { return p.first.a * p.second; });
  EXPECT_EQ(deep(Pair2{at, array(1.0)})("first.a", "second").item(), 1);
}

TEST(ArrayTrees, JacobiansOfStructs) {
  const auto f = [](const Point& p) { return Point{p.a * p.b, sum(p.b) * p.a}; };
  const Point at{array(3.0), array({2.0, 5.0})};
  for (const auto& j : {jacfwd(f)(at), jacrev(f)(at)}) {
    EXPECT_EQ(j("a", "a").to_vector(), (Numbers{2, 5}));
    EXPECT_EQ(j("a", "b").to_vector(), (Numbers{3, 0, 0, 3}));
    EXPECT_EQ(j("b", "a").item(), 7);
    EXPECT_EQ(j["b"].b.to_vector(), (Numbers{3, 3}));
  }
  // A struct by an Array is a struct, an Array by a struct too.
  const Point by = jacfwd([](const Array& x) { return Point{x * x, sum(x)}; })(array({1.0, 2.0}));
  EXPECT_EQ(by.a.to_vector(), (Numbers{2, 0, 0, 4}));
  EXPECT_EQ(by.b.to_vector(), (Numbers{1, 1}));
  const Array second = jacrev<1>([](const Array& x, const Array& y) { return x * y; })(
      array({1.0, 2.0}), array({3.0, 4.0}));
  EXPECT_EQ(second.to_vector(), (Numbers{1, 0, 0, 2}));
}

TEST(ArrayTrees, IntegersAmongThemHaveNone) {
  struct Mixed {
    Array x, n;
  };
  const auto h = hessian([](const Mixed& m) { return sum(m.x * m.x * cast(m.n, DType::F32)); })(
      Mixed{array({1.0, 2.0}), array({3, 4})});
  EXPECT_EQ(h("x", "x").to_vector(), (Numbers{6, 0, 0, 8}));
  EXPECT_EQ(h("x", "n").to_vector(), (Numbers{0, 0, 0, 0}));
  const auto slope = grad([](const Mixed& m) { return sum(m.x * cast(m.n, DType::F32)); })(
      Mixed{array({1.0, 2.0}), array({3, 4})});
  EXPECT_EQ(slope.n.to_vector(), (Numbers{0, 0}));
}

// A whole number where a float was meant has no derivative, and not one of 0.
TEST(ArrayTrees, DerivativesByIntegersAloneAreRefused) {
  const auto f = [](const Array& x) { return sum(cast(x, DType::F32) * 2.0); };
  for (const std::string& text :
       {refusal([&] { (void)grad(f)(3); }), refusal([&] { (void)value_and_grad(f)(arange(3)); }),
        refusal([&] { (void)jacfwd(f)(arange(3)); }), refusal([&] { (void)jacrev(f)(arange(3)); }),
        refusal([&] { (void)hessian(f)(arange(3)); })}) {
    EXPECT_NE(text.find("which has no derivative"), std::string::npos) << text;
  }
  const auto g = [&](const Array& x, const Array& n) { return sum(x) * f(n); };
  EXPECT_EQ(grad(g)(array({1.0, 2.0}), arange(3)).to_vector(), (Numbers{6, 6}));
  EXPECT_NE(refusal([&] { (void)grad<1>(g)(1.0, 3); }).find("i32[]"), std::string::npos);
}

TEST(ArrayTrees, AxesOfSingleArrays) {
  const auto f = [](const Point& p, const Array& x) { return sum(p.a * x) + p.b; };
  const Point p{reshape(arange(6, {.dtype = DType::F32}), {3, 2}), array(10.0)};
  const Array x = array({1.0, 2.0});
  EXPECT_EQ(vmap(f, {.in_axes = {Point{.a = 0, .b = {}}, {}}})(p, x).to_vector(),
            (Numbers{12, 18, 24}));
  EXPECT_EQ(
      vmap(f, {.in_axes = {Point{.a = 1, .b = {}}, {}}})(p, array({1.0, 2.0, 3.0})).to_vector(),
      (Numbers{26, 32}));
  const auto both = vmap([](const Array& a) { return std::pair{a * 2.0, sum(a)}; },
                         {.out_axes = std::pair<Array, Array>{1, 0}})(p.a);
  EXPECT_EQ(both.first.shape(), (Dims{2, 3}));
  EXPECT_EQ(both.second.shape(), (Dims{3}));
  EXPECT_NE(refusal([&] { (void)vmap(f, {.in_axes = {0, {}, 0}})(p, x); }).find("3 arguments"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              (void)vmap(f, {.in_axes = {Pair2{{0, {}}, 0}, {}}})(p, x);
            }).find("a tree of 3 arrays"),
            std::string::npos);
}

// The rule is about x; by what the function captures it is differentiated as any other.
TEST(ArrayRules, CaptureWhatIsTraced) {
  const auto f = [](const Array& s, const Array& x) {
    const auto scaled = custom_vjp([&](const Array& v) { return s * v * v; },
                                   [](const Array&, const Array&, const Array& d) {
                                     return 100.0 * d;  // not the derivative: it must be used
                                   });
    return sum(scaled(x));
  };
  const Array s = array(3.0);
  const Array x = array({1.0, 2.0});
  const auto [ds, dx] = grad<0, 1>(f)(s, x);
  EXPECT_EQ(ds.item(), 5);
  EXPECT_EQ(dx.to_vector(), (Numbers{100, 100}));
  EXPECT_EQ(jit(f)(s, x).item(), 15);
  EXPECT_EQ(jit(grad(f))(s, x).item(), 5);
  EXPECT_EQ(vmap(f, {.in_axes = {0, {}}})(array({1.0, 2.0}), x).to_vector(), (Numbers{5, 10}));

  const auto g = [](const Array& t, const Array& y) {
    const auto scaled = custom_jvp([&](const Array& v) { return t * v * v; },
                                   [](const Array&, const Array& dv) { return 100.0 * dv; });
    return sum(scaled(y));
  };
  EXPECT_EQ(jvp([&](const Array& t) { return g(t, x); }, s, array(1.0)).second.item(), 5);
  EXPECT_EQ(jvp([&](const Array& y) { return g(s, y); }, x, ones({2})).second.item(), 200);
  EXPECT_EQ(grad(g)(s, x).item(), 5);
}

TEST(ArrayRules, MayCaptureInTheRuleAlone) {
  const auto f = [](const Array& s, const Array& x) {
    const auto same = custom_vjp([](const Array& v) { return v; },
                                 [&](const Array&, const Array&, const Array& d) { return s * d; });
    return sum(same(x));
  };
  const auto [ds, dx] = grad<0, 1>(f)(array(3.0), ones({2}));
  EXPECT_EQ(ds.item(), 0);
  EXPECT_EQ(dx.to_vector(), (Numbers{3, 3}));
  // The rule itself is differentiated by what it captures.
  const Array second = grad([&](const Array& s) { return sum(grad<1>(f)(s, ones({2}))); })(3.0);
  EXPECT_EQ(second.item(), 2);
}

TEST(ArrayRules, SayWhenACaptureHasNoDerivative) {
  const auto f = [](const Array& s, const Array& x) {
    const auto loop = custom_vjp(
        [&](const Array& v) {
          return while_loop(
              v, [](const Array& c) { return c < 10.0; }, [&](const Array& c) { return c * s; });
        },
        [](const Array&, const Array&, const Array& d) { return d; });
    return loop(x);
  };
  const std::string text = refusal([&] { (void)grad(f)(array(2.0), array(1.0)); });
  EXPECT_NE(text.find("cannot be differentiated by it"), std::string::npos) << text;
  EXPECT_NE(text.find("pass it as an argument"), std::string::npos) << text;
}

// Halves of derivatives through loops: the values come from the loop that has no tangents.
TEST(ArrayTransforms, LinearisesThroughLoops) {
  const auto f = [](const Array& x) {
    return scan(x, 4, [](const Array& h) { return carry_and(sin(h), h * h); });
  };
  const Array x = array({0.5, 1.0});
  const auto [value, push] = linearize(f, x);
  const auto expected = jvp(f, x, ones({2}));
  EXPECT_TRUE(allclose(value.last, expected.first.last));
  EXPECT_TRUE(allclose(value.ys, expected.first.ys));
  EXPECT_TRUE(allclose(push(ones({2})).ys, expected.second.ys));
  const auto [again, pull] = vjp(f, x);
  EXPECT_TRUE(allclose(again.ys, value.ys));
  const auto seed = tree_map([](const Array& y) { return ones_like(y); }, again);
  const Array back = pull(seed);
  const Array direct = grad([&](const Array& v) {
    const auto out = f(v);
    return sum(out.last) + sum(out.ys);
  })(x);
  EXPECT_TRUE(allclose(back, direct));
}

// A loop keeps no copies of what it captures, however many trips there may be.
TEST(ArrayLoops, WhatAWhileCapturesHasNoTape) {
  const auto f = [](const Array& w, const Array& x) {
    const auto out = while_loop(
        std::pair{Array(0), x}, [](const auto& c) { return c.first < 3; },
        [&](const auto& c) { return std::pair{c.first + 1, tanh(matmul(w, c.second))}; },
        {.max_iterations = 50});
    return sum(out.second);
  };
  const Array w = normal(Key(1), {6, 6});
  const Array x = normal(Key(2), {6});
  const auto plain = [](const Array& v, const Array& y) {
    return sum(tanh(matmul(v, tanh(matmul(v, tanh(matmul(v, y)))))));
  };
  const auto [dw, dx] = grad<0, 1>(f)(w, x);
  const auto [ew, ex] = grad<0, 1>(plain)(w, x);
  EXPECT_TRUE(allclose(dw, ew, 1e-4, 1e-5));
  EXPECT_TRUE(allclose(dx, ex, 1e-4, 1e-5));
  for (const Graph& g : {trace(grad<0, 1>(f), w, x)}) {
    for (const Node& n : g.nodes()) {
      for (std::size_t r = 0; r < n.types.size(); ++r) {
        const bool tape = n.wanted[r] && n.types[r] == f32({50, 6, 6});
        EXPECT_FALSE(tape) << n.op.mnemonic();
      }
    }
  }
}

TEST(ArrayTrees, KeysAndPositionsAreNames) {
  const std::map<int, Array> layers = {{-1, array(1.0)}, {3, array(2.0)}, {20, array(3.0)}};
  EXPECT_EQ(leaf_names(layers), (std::vector<std::string>{"-1", "3", "20"}));
  EXPECT_EQ(
      grad([](const std::map<int, Array>& m) { return m.at(3) * m.at(20); })(layers).at(3).item(),
      3);
  const Array x = array(1.0);
  const auto many = std::tuple(x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x);
  const std::vector<std::string> names = leaf_names(many);
  ASSERT_EQ(names.size(), 19U);
  EXPECT_EQ(names[9], "9");
  EXPECT_EQ(names[10], "10");
  EXPECT_EQ(names[16], "16");
  EXPECT_EQ(names[18], "18");
}

TEST(ArrayTrees, OtherTypesSayHowTheyAreWalked) {
  struct Net {
    Hidden first;
    Array b;
  };
  const Net net{Hidden(array({1.0, 2.0}), 2), array({1.0, 1.0})};
  EXPECT_EQ(leaf_names(net), (std::vector<std::string>{"first.weight", "b"}));
  const auto loss = [](const Net& n) { return sum(n.first.weight() * n.first.weight() * n.b); };
  EXPECT_EQ(grad(loss)(net).first.weight().to_vector(), (std::vector<double>{2, 4}));
  // What it says is static is part of what a function is compiled for.
  const auto f = jit([](const Hidden& h) { return h.weight() * 1.0; });
  (void)f(Hidden(array({1.0}), 1));
  (void)f(Hidden(array({2.0}), 1));
  EXPECT_EQ(f.compiled(), 1U);
  (void)f(Hidden(array({2.0}), 2));
  EXPECT_EQ(f.compiled(), 2U);
}

}  // namespace
}  // namespace ricci::trees_test
