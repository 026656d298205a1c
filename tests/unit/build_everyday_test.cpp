// The calls people try first on values of a graph: by position, and by the names of other
// libraries.
#include <sstream>

#include <gtest/gtest.h>

#include "ricci/build/everyday.h"
#include "ricci/build/indexing.h"
#include "ricci/interp/interpreter.h"
#include "ricci/support/error.h"

namespace ricci::build_everyday_test {
namespace {

// What `build` makes of x = [[1, 2, 3], [4, 5, 6]] and y = [[3, 3, 3], [3, 3, 3]].
template <class F>
Tensor of_two(F&& build) {
  Graph g("everyday");
  const Value x = g.input("x", f32({2, 3}));
  const Value y = g.input("y", f32({2, 3}));
  g.set_outputs({build(g, x, y)});
  return interpret(g, {{"x", Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6})},
                       {"y", Tensor::splat(f32({2, 3}), 3)}})[0];
}
using Numbers = std::vector<double>;

TEST(EverydayBuilders, TakeShapesAndAxesByPosition) {  // [FE-3b]
  const auto shape = [](auto&& build) { return of_two(build).type(); };
  EXPECT_EQ(shape([](Graph&, Value x, Value) { return reshape(x, {3, 2}); }), f32({3, 2}));
  EXPECT_EQ(shape([](Graph&, Value x, Value) { return reshape(x, {x.dims()[1], -1}); }),
            f32({3, 2}));
  EXPECT_EQ(shape([](Graph&, Value x, Value) { return reshape(x, {.new_shape = {6}}); }), f32({6}));
  EXPECT_EQ(shape([](Graph&, Value x, Value) { return transpose(x, {1, 0}); }), f32({3, 2}));
  EXPECT_EQ(shape([](Graph&, Value x, Value) { return transpose(x, {.perm = {1, 0}}); }),
            f32({3, 2}));
  EXPECT_EQ(shape([](Graph&, Value x, Value) { return narrow(x, 1, 0, 2); }), f32({2, 2}));
  EXPECT_EQ(shape([](Graph&, Value x, Value y) { return concat({x, y}, 1); }), f32({2, 6}));
  EXPECT_EQ(shape([](Graph&, Value x, Value y) { return stack({x, y}, 0); }), f32({2, 2, 3}));
  EXPECT_EQ(shape([](Graph& g, Value, Value) { return rng_uniform(g, {.shape = {4, 3}}); }),
            f32({4, 3}));
  EXPECT_EQ(shape([](Graph&, Value x, Value) { return sum(x, 1, true); }), f32({2, 1}));
  EXPECT_EQ(shape([](Graph&, Value x, Value) { return sum(x, {}); }), f32());
  EXPECT_THROW((void)shape([](Graph&, Value x, Value) { return reshape(x, {4, -1}); }), UserError);
}

TEST(EverydayBuilders, AreTheOpsOfTheirNames) {
  const auto numbers = [](auto&& build) { return of_two(build).template numbers<double>(); };
  EXPECT_EQ(numbers([](Graph&, Value x, Value) { return x[0]; }), (Numbers{1, 2, 3}));
  EXPECT_EQ(numbers([](Graph&, Value x, Value) { return x[-1][1]; }), (Numbers{5}));
  EXPECT_THROW(numbers([](Graph&, Value x, Value) { return x[0][0][0]; }), UserError);
  EXPECT_THROW(numbers([](Graph&, Value x, Value) { return x[2]; }), UserError);
  EXPECT_EQ(numbers([](Graph&, Value x, Value) { return sum(x, 0); }), (Numbers{5, 7, 9}));
  EXPECT_EQ(numbers([](Graph&, Value x, Value) { return mean(x, 1); }), (Numbers{2, 5}));
  EXPECT_EQ(numbers([](Graph&, Value x, Value) { return argmax(x, 0); }), (Numbers{1, 1, 1}));
  EXPECT_EQ(numbers([](Graph&, Value x, Value) { return argmin(x); }), (Numbers{0, 0}));
  EXPECT_EQ(numbers([](Graph&, Value x, Value y) { return where(x > y, x, 0.0); }),
            (Numbers{0, 0, 0, 4, 5, 6}));
  EXPECT_EQ(numbers([](Graph&, Value x, Value y) { return where(!(x < y), 1.0, x); }),
            (Numbers{1, 2, 1, 1, 1, 1}));
  EXPECT_EQ(numbers([](Graph&, Value x, Value) { return x >= 2 && 5.0 > x; }),
            (Numbers{0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(numbers([](Graph&, Value x, Value) { return x <= 1.0 || x > 5.0; }),
            (Numbers{1, 0, 0, 0, 0, 1}));
  EXPECT_EQ(numbers([](Graph&, Value x, Value) { return clip(x, 2.0, 4.0); }),
            (Numbers{2, 2, 3, 4, 4, 4}));
  EXPECT_NEAR(numbers([](Graph&, Value x, Value y) { return mse(x, y); })[0], 19.0 / 6, 1e-6);
  // An axis that is not given is the op's own, not axis 0.
  EXPECT_EQ(numbers([](Graph&, Value x, Value) { return softmax(x, {}) - softmax(x, 1); }),
            (Numbers{0, 0, 0, 0, 0, 0}));
  const Numbers lost =
      numbers([](Graph&, Value x, Value) { return sum(exp(log_softmax(x, 0)), 0) - 1.0; });
  for (const double d : lost) EXPECT_NEAR(d, 0, 1e-6);
}

TEST(EverydayBuilders, ConvolvePoolAndCompareWithClasses) {  // [FE-3c]
  Graph g("cnn");
  const Value x = g.input("x", f32({1, 1, 4, 4}));
  const Value w = g.constant(Tensor::splat(f32({2, 1, 3, 3}), 1));
  const Value b = g.constant(Tensor::of<float>({2}, {0, 100}));
  const Value y = max_pool2d(conv2d(x, w, b, {.padding = 1}), 2);
  EXPECT_EQ(y.type(), f32({1, 2, 2, 2}));
  EXPECT_EQ(conv2d(x, w, {.stride = {2, 1}}).type(), f32({1, 2, 1, 2}));
  EXPECT_EQ(avg_pool2d(x, 2, {.stride = 1}).type(), f32({1, 1, 3, 3}));
  const Value classes = g.constant(Tensor::of<std::int32_t>({1}, {1}));
  const Value logits = reshape(mean(y, {2, 3}), {1, 2});
  const Value shares = one_hot(classes, 2);
  g.set_outputs({y, cross_entropy(logits, classes), cross_entropy(logits, shares)});
  const auto out = interpret(g, {{"x", Tensor::splat(f32({1, 1, 4, 4}), 1)}});
  EXPECT_EQ(out[0].numbers<double>(), (Numbers{9, 9, 9, 9, 109, 109, 109, 109}));
  EXPECT_NEAR(out[1].numbers<double>()[0], 0, 1e-6);
  EXPECT_NEAR(out[2].numbers<double>()[0], 0, 1e-6);
}

TEST(EverydayBuilders, ValuesPrintAsWhatTheyAre) {
  Graph g("printed");
  const Value x = g.input("x", f32({2, 3}));
  std::ostringstream out;
  out << x << ", " << tanh(x) << ", " << tanh(x).named("y") << ", " << Value();
  EXPECT_EQ(out.str(), "x: f32[2, 3], tanh: f32[2, 3], y: f32[2, 3], no value");
}

}  // namespace
}  // namespace ricci::build_everyday_test
