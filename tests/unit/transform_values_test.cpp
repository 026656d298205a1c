// Batch axes, values at special points, and what gradient graphs are made of.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/verify.h"
#include "ricci/op/table.h"
#include "ricci/transform/check.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

#include "support/compare.h"
#include "support/count.h"

namespace ricci::testing::transform_values_test {
namespace {

constexpr double Inf = std::numeric_limits<double>::infinity();

Tensor numbers(Dims dims, const std::vector<double>& values) {
  return Tensor::from_numbers<double>(f64(std::move(dims)), values);
}

TEST(Jvp, AStoppedTangentIsZero) {  // [EW-22]
  Graph g("stop");
  const Value x = g.input("x", f64({2}));
  g.set_outputs({stop_gradient(x), stop_gradient(x) * x});
  const Graph j = jvp(g, {"x"}).graph;
  const std::vector<Tensor> out =
      interpret(j, {{"x", numbers({2}, {3, 4})}, {"tangent_x", numbers({2}, {1, 1})}});
  EXPECT_TRUE(same(out[2], numbers({2}, {0, 0})));
  EXPECT_TRUE(same(out[3], numbers({2}, {3, 4})));
}

TEST(Jvp, AQuotientDoesNotSquareItsDivisor) {  // [EW-16]
  Graph g("div");
  const Value a = g.input("a", f64());
  const Value b = g.input("b", f64());
  g.set_outputs({a / b});
  const Graph j = jvp(g, {"a", "b"}).graph;
  const Tensor big = Tensor::splat(f64(), 1e200);
  const Tensor t =
      interpret(j, {{"a", big}, {"b", big}, {"tangent_a", big}, {"tangent_b", big}})[1];
  EXPECT_TRUE(same(t, Tensor::splat(f64(), 0.0)));
}

TEST(Vmap, ParamsMayBeBatchedAndNamesAreChecked) {  // [LF-01]
  Graph g("weights");
  const Value x = g.input("x", f64({2, 3}));
  const Value w = g.param("w", f64({3, 2}));
  g.set_outputs({matmul(x, w)});
  const Graph b = vmap(g, {"w"}, 4).graph;
  EXPECT_EQ(b.node(*b.find("w")).types[0], f64({4, 3, 2}));
  EXPECT_THROW((void)vmap(g, {"weights"}, 4), UserError);
}

TEST(Vmap, AxesAreWhereTheCallerSays) {  // [vmap-axes] [TR-13] [TR-14]
  Graph g("axes");
  const Value x = g.input("x", f64({3}));
  const Value c = g.input("c", f64({2, 3}));
  g.set_outputs({x + c, c});
  const Graph b = vmap(g, {{"x", -1}}, 4, {.out_axes = {1, -1}}).graph;
  EXPECT_EQ(b.node(*b.find("x")).types[0], f64({3, 4}));
  EXPECT_EQ(b.type(b.outputs()[0]), f64({2, 4, 3}));
  EXPECT_EQ(b.type(b.outputs()[1]), f64({2, 3, 4}));
  const Tensor xs = random_tensor(1, f64({3, 4}));
  const Tensor cs = random_tensor(2, f64({2, 3}));
  const std::vector<Tensor> out = interpret(b, {{"x", xs}, {"c", cs}});
  for (std::int64_t e = 0; e < 4; ++e) {
    const std::vector<Tensor> alone =
        interpret(g, {{"x", xs.narrowed(1, e, 1).reshaped({3})}, {"c", cs}});
    EXPECT_TRUE(same(out[0].narrowed(1, e, 1).reshaped({2, 3}), alone[0]));
    EXPECT_TRUE(same(out[1].narrowed(2, e, 1).reshaped({2, 3}), alone[1]));
  }
  EXPECT_THROW((void)vmap(g, {{"x", 2}}, 4), UserError);
}

TEST(Vmap, SharedOperandsOfFunctionsStayShared) {  // [customfn-vmap-shared]
  Graph g("function");
  const Value x = g.input("x", f64({3}));
  const Value w = g.input("w", f64({3}));
  const auto product = [](Graph&, std::span<const Value> in) { return std::vector{in[0] * in[1]}; };
  const auto rule = [](Graph&, const VjpInputs& in) {
    return std::vector{in.d_outputs[0] * in.primals[1], in.d_outputs[0] * in.primals[0]};
  };
  g.set_outputs({custom_fn(std::array{x, w}, product, {.vjp = rule})});
  const Graph b = vmap(g, {"x"}, 4).graph;
  verify(b);
  ASSERT_EQ(count(b, "custom_fn"), 1U);
  for (const Node& node : b.nodes()) {
    if (!node.op.is<op::CustomFn>()) continue;
    EXPECT_EQ(b.type(node.operands[0]), f64({4, 3}));
    EXPECT_EQ(b.type(node.operands[1]), f64({3}));
  }
}

TEST(HigherOrder, HessianProductsOfANetwork) {  // [TR-11] [hvp-any-graph]
  Graph g("network");
  const Value x = g.input("x", f64({2, 3}));
  const Value w = g.param("w", f64({3, 4}));
  const Value b = g.param("b", f64({4}));
  const Value h = fused_matmul_bias_act(x, w, b, {.activation = UnaryKind::Gelu});
  const Value p = softmax(fused_swiglu(h));
  g.set_outputs({-sum(log(p) * p)});
  const Feeds feeds = {{"x", random_tensor(1, f64({2, 3}))},
                       {"w", random_tensor(2, f64({3, 4}))},
                       {"b", random_tensor(3, f64({4}))}};
  const DerivativeReport report = check_derivatives(g, {"w", "b"}, feeds, {.order = 2});
  EXPECT_TRUE(report.ok()) << report.to_string();
}

TEST(SpecialPoints, InfiniteCotangentsReachTheMaximumOnly) {  // [RD-02]
  Graph g("max");
  const Value x = g.input("x", f64({3}));
  g.set_outputs({reduce(x, {.op = ReduceKind::Max, .axes = {0}})});
  const Feeds feeds = {{"x", numbers({3}, {1, 3, 2})}, {"d_output", Tensor::splat(f64(), Inf)}};
  EXPECT_TRUE(same(interpret(grad(g, {"x"}, {.external_seed = true}).graph, feeds)[0],
                   numbers({3}, {0, Inf, 0})));
}

TEST(SpecialPoints, ProductsWithZerosHaveExactGradients) {  // [RD-04] [tie-and-zero-cases]
  Graph g("prod");
  const Value x = g.input("x", f64({3, 3}));
  g.set_outputs({reduce(x, {.op = ReduceKind::Prod, .axes = {1}})});
  const Feeds feeds = {{"x", numbers({3, 3}, {2, 0, 5, 0, 0, 5, 2, 3, 5})}};
  EXPECT_TRUE(same(interpret(value_and_grad(g, {"x"}).graph, feeds)[1],
                   numbers({3, 3}, {0, 10, 0, 0, 0, 0, 15, 10, 6})));
}

TEST(GradientGraphs, ComparisonsAreBools) {  // [EW-17]
  Graph g("compare");
  const Value x = g.input("x", f64({2}));
  const Value positive = gt(x, scalar_like(x, 0));
  EXPECT_EQ(positive.type(), (Type{DType::Bool, {2}}));
  g.set_outputs({sum(cast(positive, {.to = DType::F64}) * x)});
  const Graph d = value_and_grad(g, {"x"}).graph;
  EXPECT_TRUE(same(interpret(d, {{"x", numbers({2}, {-1, 3})}})[1], numbers({2}, {0, 1})));
}

TEST(SpecialPoints, AnInputNoStepReadsHasAZeroGradient) {  // [scan-unused-inputs]
  Graph g("unused");
  const Value c = g.input("c", f64({2}));
  const Value w = g.input("w", f64({2}));
  const auto step = [](Graph&, std::span<const Value> in) { return std::vector{tanh(in[0])}; };
  g.set_outputs({sum(scan_with_bcasts_and_xs(c, std::array{w}, {}, step, 3))});
  const Graph d = value_and_grad(g, {"c", "w"}, GradOptions::training()).graph;
  const Feeds feeds = {{"c", numbers({2}, {1, 2})}, {"w", numbers({2}, {3, 4})}};
  EXPECT_TRUE(same(interpret(d, feeds)[2], numbers({2}, {0, 0})));
}

TEST(SpecialPoints, RealPartsOfComplexProgramsAgreeWithReal) {  // [CX-01]
  Graph g("complex");
  const Value x = g.input("x", f64({3}));
  const Value z = cast(x, {.to = DType::C128});
  g.set_outputs({sum(cast(z * conjugate(z), {.to = DType::F64}))});
  const Feeds feeds = {{"x", numbers({3}, {1, -2, 3})}};
  EXPECT_TRUE(close(interpret(value_and_grad(g, {"x"}).graph, feeds)[1], numbers({3}, {2, -4, 6})));
}

TEST(GradientGraphs, ASharedWeightTakesOneProduct) {  // [LA-03]
  Graph g("weights");
  const Value x = g.input("x", f32({5, 2, 3}));
  const Value w = g.param("w", f32({3, 4}));
  g.set_outputs({sum(matmul(x, w))});
  const Graph d = grad(g, {"w"}, {.external_seed = true}).graph;
  for (const Node& node : d.nodes()) EXPECT_NE(node.types[0].dims, (Dims{5, 3, 4}));
}

TEST(GradientGraphs, SlicesArePaddedNotFilled) {  // [SH-03]
  Graph g("slice");
  const Value x = g.input("x", f32({1000}));
  g.set_outputs({sum(narrow(x, {.axis = 0, .start = 3, .len = 2}))});
  const Graph d = grad(g, {"x"}, {.external_seed = true}).graph;
  EXPECT_EQ(count(d, "pad"), 1U);
  EXPECT_EQ(count(d, "concat"), 0U);
}

// [SH-03] queries, keys and values cut from one product: their gradients are put together
TEST(GradientGraphs, SlicesSideBySideAreJoined) {
  Graph g("qkv");
  const Value x = g.input("x", f64({2, 6}));
  const auto part = [&](std::int64_t i) {
    return narrow(x, {.axis = 1, .start = 2 * i, .len = 2});
  };
  g.set_outputs({sum(part(0) * part(1) * part(2))});
  const Graph d = value_and_grad(g, {"x"}).graph;
  EXPECT_EQ(count(d, "pad"), 0U);
  EXPECT_LE(count(d, "concat"), 2U);
  EXPECT_EQ(count(d, "add"), 0U);
  const Tensor at = random_tensor(1, f64({2, 6}));
  const auto v = at.numbers<double>();
  const auto dx = interpret(d, {{"x", at}})[1].numbers<double>();
  for (std::size_t i = 0; i < 12; ++i) {
    const std::size_t row = i / 6 * 6;
    const std::size_t column = i % 2;
    double others = 1;
    for (std::size_t p = 0; p < 3; ++p) {
      const std::size_t at_part = row + 2 * p + column;
      if (at_part != i) others *= v[at_part];
    }
    EXPECT_DOUBLE_EQ(dx[i], others);
  }
}

// Rules that make constants: selections, means, powers, slices, products.
Graph constant_makers(DType dtype, const Dim& n) {
  Graph g("makers");
  const Value x = g.input("x", Type{dtype, {n, 2}});
  const Value y = g.input("y", Type{dtype, {n, 2}});
  const Value both = concat({max(x, y), where(gt(x, y), x, y)}, {.axis = 0});
  const Value part = narrow(both, {.axis = 0, .start = 1, .len = n});
  const Value mean_of = mean(abs(part) * sigmoid(part), {0});
  g.set_outputs({sum(mean_of) + reduce(x, {.op = ReduceKind::Max, .axes = {0, 1}})});
  return g;
}

TEST(GradientGraphs, ConstantsHaveTheDtypeTheyMeet) {  // [G-02] [dtype-of-helper-constants]
  const Tensor x = random_tensor(1, f64({3, 2}));
  const Tensor y = random_tensor(2, f64({3, 2}));
  const Graph wide = value_and_grad(constant_makers(DType::F64, 3), {"x", "y"}).graph;
  const std::vector<Tensor> expected = interpret(wide, {{"x", x}, {"y", y}});
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    const Graph d = value_and_grad(constant_makers(dtype, 3), {"x", "y"}).graph;
    verify(d);
    const auto as = [&](const Tensor& t) {
      return Tensor::from_numbers<double>(Type{dtype, {3, 2}}, t.numbers<double>());
    };
    const std::vector<Tensor> out = interpret(d, {{"x", as(x)}, {"y", as(y)}});
    EXPECT_EQ(out[1].dtype(), dtype);
    const double tolerance = dtype == DType::F32 ? 1e-5 : 0.05;
    EXPECT_TRUE(close(Tensor::from_numbers<double>(f64({3, 2}), out[1].numbers<double>()),
                      expected[1], {tolerance, tolerance}));
  }
}

TEST(GradientGraphs, SymbolicSizesStaySymbolic) {  // [G-05]
  const Graph symbolic =
      value_and_grad(constant_makers(DType::F64, Dim::symbol("n")), {"x", "y"}).graph;
  verify(symbolic);
  EXPECT_EQ(symbolic.symbols().size(), 1U);
  for (const std::int64_t n : {1, 4}) {
    const Graph sized = value_and_grad(constant_makers(DType::F64, n), {"x", "y"}).graph;
    const Feeds feeds = {{"x", random_tensor(1, f64({n, 2}))},
                         {"y", random_tensor(2, f64({n, 2}))}};
    const std::vector<Tensor> a = interpret(symbolic, feeds);
    const std::vector<Tensor> b = interpret(sized, feeds);
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(close(a[i], b[i])) << i;
  }
}

// An image and a kernel of its own for each example, however many there are.
TEST(Vmap, ConvolutionsTakeABatchOfUnknownSize) {
  Graph g("conv");
  const Value x = g.input("x", f64({2, 4, 5, 5}));
  const Value w = g.param("w", f64({4, 2, 3, 3}));
  g.set_outputs({sum(sin(conv(x, w, {.stride = {2, 1}, .groups = 2})))});
  const Graph gradient = value_and_grad(g, {"x", "w"}).graph;
  const Graph open = vmap(gradient, {{"x"}, {"w"}}, Dim::symbol("b")).graph;
  verify(open);
  const Feeds feeds{{"x", random_tensor(1, f64({3, 2, 4, 5, 5}), -1, 1)},
                    {"w", random_tensor(2, f64({3, 4, 2, 3, 3}), -1, 1)}};
  const auto expected = interpret(vmap(gradient, {{"x"}, {"w"}}, 3).graph, feeds);
  const auto actual = interpret(open, feeds);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same(actual[i], expected[i])) << i;
}

// Its nodes fuse into one kernel again, but for the sums of what was broadcast.
TEST(GradientGraphs, RegionsHaveElementwiseGradients) {  // [region-ad]
  using In = RegionOperand;
  Graph g("region");
  const Value x = g.input("x", f64({2, 3}));
  const Value y = g.input("y", f64({3}));
  const auto region = elementwise_region(
      {x, y}, {.chain = {RegionStep::activation(UnaryKind::Sigmoid, In::input(0)),
                         RegionStep::binary(BinaryKind::Mul, In::step(0), In::input(1)),
                         RegionStep::compare(CompareKind::Lt, In::step(1), In::input(0)),
                         RegionStep::activation(UnaryKind::Tanh, In::step(1)),
                         RegionStep::where(In::step(2), In::step(3), In::input(0))},
               .outputs = {{1, 4}}});
  g.set_outputs({region[1], region[0]});
  const Graph gradient = vjp(g, {"x", "y"}).graph;
  std::size_t sums = 0;
  for (const Node& node : gradient.nodes()) {
    const OpDescriptor& d = descriptor(node.op.kind());
    const bool fuses = has(d.info->traits, Trait::Elementwise) || d.op_class == OpClass::Leaf ||
                       node.op.is<op::ElementwiseRegion>() || node.op.is<op::Reshape>();
    if (fuses) continue;
    EXPECT_TRUE(node.op.is<op::Reduce>()) << node.op.mnemonic();
    ++sums;
  }
  EXPECT_EQ(sums, 1U);  // y was broadcast along one axis
}

}  // namespace
}  // namespace ricci::testing::transform_values_test
