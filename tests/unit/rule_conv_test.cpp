// Identities that tie convolution, pooling and their transposes together.
#include <gtest/gtest.h>

#include "ricci/build/conv.h"
#include "ricci/compat/conv.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/transform/grad.h"

#include "support/compare.h"

namespace ricci::testing::rule_conv_test {
namespace {

double number(const Tensor& scalar) { return scalar.numbers<double>()[0]; }

// All inputs of a graph, filled at random.
Feeds random_feeds(const Graph& g) {
  Feeds feeds;
  std::uint64_t seed = 1;
  for (const NodeId id : g.inputs()) {
    const Node& n = g.node(id);
    feeds.emplace(n.op.as<op::Input>()->name, random_tensor(seed++, n.types[0]));
  }
  return feeds;
}

struct ConvGeometry {
  Dims x;
  Dims w;
  op::Conv op;
};

std::vector<ConvGeometry> conv_geometries() {
  return {
      {{2, 3, 6, 5}, {4, 3, 3, 2}, {}},
      {{3, 4, 7, 7}, {6, 2, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 2}},
      {{2, 3, 8, 9}, {3, 1, 2, 3}, {.stride = {3, 2}, .padding = {0, 2}, .groups = 3}},
      {{2, 4, 9, 6},
       {4, 2, 3, 2},
       {.stride = {2, 3}, .padding = {2, 1}, .dilation = {2, 3}, .groups = 2}},
      {{2, 2, 4, 4}, {5, 2, 1, 1}, {.stride = {3, 2}}},
      {{1, 1, 1, 1}, {1, 1, 1, 1}, {.padding = {2, 3}}},
  };
}

// <y, conv(x, w)> = <conv2d_backward_input(y, w), x> = <conv2d_backward_weight(x, y), w>
TEST(Conv, ItsGradientsAreItsTransposes) {
  for (const ConvGeometry& geometry : conv_geometries()) {
    const op::Conv& o = geometry.op;
    Graph g;
    const Value x = g.input("x", f64(geometry.x));
    const Value w = g.input("w", f64(geometry.w));
    const Value out = conv(x, w, o);
    const Value y = g.input("y", out.type());
    const Value dx = conv2d_backward_input(y, w,
                                           {.input_size = {x.dims()[2], x.dims()[3]},
                                            .stride = o.stride,
                                            .padding = o.padding,
                                            .dilation = o.dilation,
                                            .groups = o.groups});
    const Value dw =
        conv2d_backward_weight(x, y,
                               {.kernel_size = {w.dims()[2].value(), w.dims()[3].value()},
                                .stride = o.stride,
                                .padding = o.padding,
                                .dilation = o.dilation,
                                .groups = o.groups});
    ASSERT_EQ(dx.type(), x.type());
    ASSERT_EQ(dw.type(), w.type());
    g.set_outputs({sum(y * out), sum(dx * x), sum(dw * w)});
    const auto results = interpret(g, random_feeds(g));
    const double expected = number(results[0]);
    const double tolerance = 1e-11 * (1 + std::abs(expected));
    EXPECT_NEAR(number(results[1]), expected, tolerance) << to_string(geometry.x);
    EXPECT_NEAR(number(results[2]), expected, tolerance) << to_string(geometry.x);
  }
}

TEST(Conv, OneByOneKernelsMultiplyChannels) {
  Graph g;
  const Value x = g.input("x", f64({2, 3, 4, 5}));
  const Value w = g.input("w", f64({6, 3, 1, 1}));
  const Value flat = matmul(reshape_to(w, {6, 3}), reshape_to(x, {2, 3, 20}));
  g.set_outputs({conv(x, w), reshape_to(flat, {2, 6, 4, 5})});
  const auto results = interpret(g, random_feeds(g));
  EXPECT_TRUE(close(results[0], results[1]));
}

// Group k sees the channels of group k only.
TEST(Conv, GroupsAreConvolutionsSideBySide) {
  Graph g;
  const Value x = g.input("x", f64({2, 6, 5, 4}));
  const Value w = g.input("w", f64({4, 3, 2, 2}));
  std::vector<Value> outputs = {conv(x, w, {.groups = 2})};
  for (const std::int64_t k : {0, 1}) {
    const Value part = conv(narrow(x, {.axis = 1, .start = 3 * k, .len = 3}),
                            narrow(w, {.axis = 0, .start = 2 * k, .len = 2}));
    outputs.push_back(narrow(outputs[0], {.axis = 1, .start = 2 * k, .len = 2}));
    outputs.push_back(part);
  }
  g.set_outputs(outputs);
  const auto results = interpret(g, random_feeds(g));
  EXPECT_TRUE(close(results[1], results[2]));
  EXPECT_TRUE(close(results[3], results[4]));
}

TEST(Conv, AKernelSizeThatAgreesIsLeftOut) {
  Graph g;
  const Value x = g.input("x", f32({1, 1, 4, 4}));
  const Value w = g.input("w", f32({1, 1, 3, 2}));
  const Value y = conv(x, w, {.kernel_size = HeightWidth{3, 2}});
  EXPECT_FALSE(g.node(y.id().node).op.as<op::Conv>()->kernel_size.has_value());
}

TEST(Conv, SymbolicSizesFollowTheStride) {
  const Dim h = Dim::symbol("h");
  Graph g;
  const Value x = g.input("x", f32({1, 1, h * 4, h * 2 + 3}));
  const Value w = g.input("w", f32({1, 1, 3, 2}));
  const Value y = conv(x, w, {.stride = {4, 2}});
  EXPECT_EQ(y.dims(), (Dims{1, 1, h, h + 1}));
}

std::vector<op::MaxPool2dSelect> pool_geometries() {
  return {
      {.kernel_size = {2, 2}, .stride = {2, 2}},
      {.kernel_size = {3, 2}},
      {.kernel_size = {3, 3}, .stride = {2, 1}, .padding = {1, 2}},
      {.kernel_size = {1, 4}, .stride = {3, 2}, .padding = {0, 3}},
  };
}

// <y, select(x, v)> = <backward(x, y), v>, and selecting x itself is max pooling.
TEST(MaxPool, SelectIsTheTransposeOfBackward) {
  for (const op::MaxPool2dSelect& o : pool_geometries()) {
    Graph g;
    const Value x = g.input("x", f64({2, 3, 7, 6}));
    const Value v = g.input("v", f64({2, 3, 7, 6}));
    const Value selected = max_pool2d_select(x, v, o);
    const Value y = g.input("y", selected.type());
    const Value spread = maxpool2d_backward(
        x, y, {.kernel_size = o.kernel_size, .stride = o.stride, .padding = o.padding});
    const Value pooled = pool(x, {.kind = ReduceKind::Max,
                                  .kernel_size = o.kernel_size,
                                  .stride = o.stride,
                                  .padding = o.padding});
    g.set_outputs({sum(y * selected), sum(spread * v), pooled, max_pool2d_select(x, x, o)});
    const auto results = interpret(g, random_feeds(g));
    EXPECT_NEAR(number(results[0]), number(results[1]), 1e-11);
    EXPECT_TRUE(same(results[2], results[3]));
  }
}

// Rounded inputs have many ties, where both must choose alike.
TEST(MaxPool, SelectIsTheTransposeOfBackwardAtTies) {
  for (const op::MaxPool2dSelect& o : pool_geometries()) {
    Graph g;
    const Value x = round(g.input("x", f64({2, 3, 7, 6})));
    const Value v = g.input("v", f64({2, 3, 7, 6}));
    const Value selected = max_pool2d_select(x, v, o);
    const Value y = g.input("y", selected.type());
    const Value spread = max_pool2d_backward(
        x, y, {.kernel_size = o.kernel_size, .stride = o.stride, .padding = o.padding});
    g.set_outputs({sum(y * selected), sum(spread * v)});
    const auto results = interpret(g, random_feeds(g));
    EXPECT_NEAR(number(results[0]), number(results[1]), 1e-11);
  }
}

// A mean that counts its padding is a convolution with a constant kernel.
TEST(Pool, MeanIsAConvolution) {
  Graph g;
  const Value x = g.input("x", f64({2, 3, 6, 7}));
  const Value kernel = g.constant(Tensor::splat(f64({3, 1, 2, 3}), 1.0 / 6));
  const Value pooled = pool(
      x, {.kind = ReduceKind::Mean, .kernel_size = {2, 3}, .stride = {2, 1}, .padding = {1, 2}});
  g.set_outputs({pooled, conv(x, kernel, {.stride = {2, 1}, .padding = {1, 2}, .groups = 3})});
  const auto results = interpret(g, random_feeds(g));
  EXPECT_TRUE(close(results[0], results[1]));
}

// However windows lie, the gradient of their sums is that of a convolution with ones.
TEST(Pool, GradientsOfSumsAreThoseOfAConvolution) {
  const std::vector<op::Pool> geometries{
      {.kernel_size = {2, 3}, .stride = {2, 3}},
      {.kernel_size = {3, 3}},
      {.kernel_size = {3, 2}, .padding = {2, 1}},
      {.kernel_size = {3, 3}, .stride = {2, 2}, .padding = {1, 0}},
      {.kernel_size = {1, 2}, .stride = {3, 4}},
      {.kernel_size = {2, 4}, .stride = {1, 3}, .padding = {1, 3}},
      {.kernel_size = {7, 9}, .stride = {5, 20}, .padding = {0, 4}},
      {.kernel_size = {40, 3}, .stride = {1, 1}, .padding = {39, 0}},
  };
  for (op::Pool o : geometries) {
    o.kind = ReduceKind::Sum;
    Graph g;
    const Value x = g.input("x", f64({2, 3, 7, 9}));
    const Value windows = pool(x, o);
    g.set_outputs({sum(windows * g.input("w", windows.type()))});
    Graph h;
    const Value y = h.input("x", f64({2, 3, 7, 9}));
    const Value ones =
        h.constant(Tensor::splat(f64({3, 1, o.kernel_size[0], o.kernel_size[1]}), 1));
    const Value same_windows =
        conv(y, ones, {.stride = o.stride, .padding = o.padding, .groups = 3});
    h.set_outputs({sum(same_windows * h.input("w", same_windows.type()))});
    const auto of_pool = interpret(value_and_grad(g, {"x"}).graph, random_feeds(g));
    const auto of_conv = interpret(value_and_grad(h, {"x"}).graph, random_feeds(h));
    EXPECT_TRUE(close(of_pool[1], of_conv[1])) << o.kernel_size[0] << " by " << o.kernel_size[1];
  }
}

TEST(MaxPool, TheOtherSpellingIsReadAndNotWritten) {
  Graph g("pooling");
  const Value x = g.input("x", f32({1, 1, 4, 4}));
  const Value dy = g.input("dy", f32({1, 1, 2, 2}));
  g.set_outputs({maxpool2d_backward(x, dy, {.kernel_size = {2, 2}, .stride = {2, 2}})});
  std::string text = print(g);
  const std::size_t at = text.find("max_pool2d_backward");
  ASSERT_NE(at, std::string::npos) << text;
  text.erase(at + 3, 1);
  EXPECT_TRUE(parse_graph(text) == g) << text;
}

}  // namespace
}  // namespace ricci::testing::rule_conv_test
