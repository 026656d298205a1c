// Params that are kept and updated in place; runs by position; symbolic dimensions: on every
// device.
#include <array>

#include <gtest/gtest.h>

#include "ricci/compiler/schedule/program.h"
#include "ricci/runtime/session.h"

#include "runtime/models.h"
#include "support/every_device.h"

namespace ricci::testing {
namespace {

const CompileOptions Counting = {.donations = {{0, "c"}, {2, "s"}}};

class RuntimeParams : public OnEveryDevice {
 protected:
  [[nodiscard]] CompiledGraph counting() const;
};
class RuntimeSymbols : public OnEveryDevice {};
RICCI_ON_EVERY_DEVICE(RuntimeParams);
RICCI_ON_EVERY_DEVICE(RuntimeSymbols);

CompiledGraph RuntimeParams::counting() const {
  CompiledGraph f = compile(counting_graph(), device(), Counting);
  f.set_param("c", Tensor::of<float>({}, {1}));
  f.set_param("s", Tensor::of<float>({3}, {0, 0, 0}));
  return f;
}

TEST_P(RuntimeParams, UpdateChangesThemInPlace) {
  CompiledGraph f = counting();
  const Tensor x = Tensor::of<float>({3}, {1, 10, 100});
  for (int i = 0; i < 3; ++i) {
    const std::vector<Tensor> out = f.update({{"x", x}});
    ASSERT_EQ(out.size(), 1U);  // the sum; c and s are kept
  }
  EXPECT_EQ(f.param("c").item(), 4);
  EXPECT_EQ(f.param("s").elements<float>(), (std::vector<float>{6, 60, 600}));
}

TEST_P(RuntimeParams, WhatParamGaveStaysAsItWas) {
  CompiledGraph f = counting();
  const Tensor before = f.param("s");
  (void)f.update({{"x", Tensor::of<float>({3}, {1, 1, 1})}});
  EXPECT_EQ(before.elements<float>(), (std::vector<float>{0, 0, 0}));
}

TEST_P(RuntimeParams, RunLeavesThemAlone) {
  CompiledGraph f = counting();
  const Tensor x = Tensor::of<float>({3}, {1, 10, 100});
  const std::vector<Tensor> out = f.run({{"x", x}});
  ASSERT_EQ(out.size(), 3U);
  EXPECT_EQ(out[0].item(), 2);
  EXPECT_EQ(f.param("c").item(), 1);
}

TEST_P(RuntimeParams, ByPosition) {
  CompiledGraph f = counting();
  ASSERT_EQ(f.inputs().size(), 3U);
  EXPECT_EQ(f.inputs()[1].name, "c");
  EXPECT_FALSE(f.inputs()[0].is_param);
  EXPECT_TRUE(f.inputs()[2].is_param);
  f.set_param(1, Tensor::of<float>({}, {5}));
  EXPECT_EQ(f.param(1).item(), 5);
  EXPECT_THROW(f.set_param(3, Tensor::of<float>({}, {5})), UserError);
  EXPECT_THROW((void)f.param(17), UserError);

  ExecutionContext context = f.make_context();
  const std::array<float, 3> x = {1, 2, 3};
  float total = 0;
  const std::array<const void*, 3> in = {x.data(), nullptr, nullptr};
  const std::array<void*, 3> out = {nullptr, &total, nullptr};
  f.run(context, in, out);
  f.run(context, in, out);
  EXPECT_EQ(f.param("c").item(), 7);
  EXPECT_EQ(f.param("s").elements<float>(), (std::vector<float>{11, 22, 33}));
  EXPECT_EQ(total, 66);
}

TEST_P(RuntimeParams, InPlaceWithBuffersOfTheCallers) {
  const CompiledGraph f = compile(counting_graph(), device(), Counting);
  ExecutionContext context = f.make_context();
  const std::array<float, 3> x = {1, 2, 3};
  float c = 2;
  float total = 0;
  std::array<float, 3> s = {0, 0, 0};
  const std::array<const void*, 3> in = {x.data(), &c, s.data()};
  const std::array<void*, 3> out = {&c, &total, s.data()};
  f.run(context, in, out);
  f.run(context, in, out);
  EXPECT_EQ(c, 4);
  EXPECT_EQ(s, (std::array<float, 3>{5, 10, 15}));
}

TEST_P(RuntimeParams, DonationsMustFit) {
  EXPECT_THROW((void)compile(counting_graph(), device(), {.donations = {{0, "s"}}}), UserError);
  EXPECT_THROW((void)compile(counting_graph(), device(), {.donations = {{7, "s"}}}), UserError);
  EXPECT_THROW((void)compile(counting_graph(), device(), {.donations = {{2, "nobody"}}}),
               UserError);
  EXPECT_THROW((void)compile(counting_graph(), device(), {.donations = {{2, "s"}, {2, "s"}}}),
               UserError);
  CompiledGraph f = counting();
  EXPECT_THROW(
      (void)f.update({{"x", Tensor::of<float>({3}, {1, 1, 1})}, {"c", Tensor::of<float>({}, {1})}}),
      UserError);
}

TEST_P(RuntimeSymbols, AreBoundPerCall) {
  Graph g("rows");
  const Dim n = Dim::symbol("n");
  const Value x = g.input("x", {DType::F32, {n, 3}});
  const Value w = g.param("w", f32({3, 2}));
  g.set_outputs({tanh(matmul(x, w)), reduce(x, {.op = ReduceKind::Mean, .axes = {0}})});
  CompiledGraph f = compile(g, device(), {.max_bindings = 2});
  const Tensor weights = random_tensor(1, f32({3, 2}));
  f.set_param("w", weights);
  for (const std::int64_t rows : {1, 2, 5, 2, 1, 7, 5}) {  // more than are kept
    const Tensor rows_in = random_tensor(2, f32({rows, 3}));
    const std::vector<Tensor> actual = f.run({{"x", rows_in}});
    const std::vector<Tensor> expected = interpret(g, {{"x", rows_in}, {"w", weights}});
    for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(close(actual[i], expected[i])) << rows;
  }
  EXPECT_THROW((void)f.make_context(), UserError);
  EXPECT_THROW((void)f.program(), UserError);
  EXPECT_THROW((void)f.run({{"x", Tensor::zeros(f32({2, 4}))}}), UserError);
}

TEST_P(RuntimeSymbols, ContextsAreMadeForSizes) {
  Graph g("rows");
  const Dim n = Dim::symbol("n");
  const Value x = g.input("x", {DType::F32, {n, 3}});
  const Value scale = g.param("scale", {DType::F32, {n, 1}});
  g.set_outputs({x * scale});
  CompiledGraph f = compile(g, device());
  EXPECT_THROW((void)f.make_context(), UserError);
  EXPECT_THROW((void)f.make_context({{"m", 2}}), UserError);
  EXPECT_THROW(f.set_param("scale", Tensor::zeros(f32({5, 2}))), UserError);
  f.set_param("scale", Tensor::splat(f32({5, 1}), 3.0));
  for (const std::int64_t rows : {5, 2}) {
    ExecutionContext context = f.make_context({{"n", rows}});
    const Tensor in = random_tensor(1, f32({rows, 3}));
    Tensor out = Tensor::zeros(f32({rows, 3}));
    const std::array<const void*, 2> inputs = {in.data(), nullptr};
    const std::array<void*, 1> outputs = {out.mutable_data()};
    if (rows == 2) {  // the kept value is one of five rows
      EXPECT_THROW(f.run(context, inputs, outputs), UserError);
      continue;
    }
    f.run(context, inputs, outputs);
    const Feeds feeds = {{"x", in}, {"scale", f.param("scale")}};
    EXPECT_TRUE(close(out, interpret(g, feeds)[0]));
  }
}

}  // namespace
}  // namespace ricci::testing
