// The pipeline from blocks to a program, its reports, and what a program cannot be used for.
#include "ricci/model/pipeline.h"

#include <array>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/model/autodiff.h"
#include "ricci/model/training.h"

#include "runtime/models.h"
#include "support/compare.h"

namespace ricci::testing {
namespace {

GraphModule perceptron() {
  return GraphModule::define("perceptron", [](Graph& g) {
    const Value x = g.input("x", f32({32, 16}));
    const Value h = linear(x, g.param("w1", f32({16, 24})), g.param("b1", f32({24})),
                           {.activation = UnaryKind::Relu});
    const Value y = softmax(matmul(h, g.param("w2", f32({24, 4}))), {.axis = 1});
    return reduce(log(y), {.op = ReduceKind::Mean, .axes = {0, 1}});
  });
}

TEST(RuntimePipeline, LeadsFromBlocksToAProgram) {
  const Compiled c = CompilePipeline().compile_module(perceptron());
  EXPECT_EQ(c.module.stage(), GraphStage::Lir);
  EXPECT_EQ(c.module.as_lir()->outputs.size(), 1U);
  EXPECT_NE(c.module.inspect().find("stage lir"), std::string::npos);
  EXPECT_GT(c.fusion.nodes_before, 5U);
  EXPECT_GT(c.fusion.kernels, 0U);
  EXPECT_GT(c.fusion.attached, 0U);
  // Two matrix products.
  EXPECT_GE(c.fusion.steps + c.fusion.attached, c.fusion.kernels + 2);
  EXPECT_GT(c.fusion.fused_nodes, 0U);
  EXPECT_NE(c.fusion.to_string().find("kernels"), std::string::npos);
  EXPECT_EQ(c.dispatch.ops.at("matmul").native, 1U);
  EXPECT_EQ(c.dispatch.ops.at("fused_matmul_bias_act").expanded, 1U);
  EXPECT_EQ(c.dispatch.ops.at("log").kernel, 1U);
  for (const auto& [op, count] : c.dispatch.ops) EXPECT_EQ(count.reference, 0U) << op;
  EXPECT_NE(c.dispatch.to_string().find("matmul"), std::string::npos);

  // A program passes through; its MIR is kept inside.
  const Compiled again = CompilePipeline().compile_module(c.module);
  EXPECT_EQ(again.module.as_lir(), c.module.as_lir());
  EXPECT_GT(GraphModule(c.module).into_mir().size(), 0U);
}

// A loop that is written out is one function; what it computes is served by it.
TEST(RuntimePipeline, ReportsWhatIsInsideWrittenOutLoops) {
  const auto module = GraphModule::define("loop", [](Graph& g) {
    const Value c = g.input("c", f32({4}));
    const Value xs = g.input("xs", f32({20, 4}));
    return scan(std::array{c}, {.xs = {xs}}, [](Graph&, std::span<const Value> v) {
      return std::vector<Value>{tanh(v[0] + v[1])};
    })[0];
  });
  const Compiled c = CompilePipeline().compile_module(module);
  EXPECT_EQ(c.fusion.steps, 1U);
  EXPECT_EQ(c.fusion.kernels, 1U);
  EXPECT_EQ(c.fusion.fused_nodes, 2U);
  EXPECT_EQ(c.dispatch.ops.at("tanh").kernel, 1U);
  EXPECT_EQ(c.dispatch.ops.at("add").kernel, 1U);
  EXPECT_EQ(c.dispatch.ops.at("scan").native, 1U);
}

TEST(RuntimePipeline, ProgramsRunAsTheyAre) {
  const Compiled c = CompilePipeline().compile_module(perceptron());
  const CompiledGraph f = c.on(Device::cpu(2));
  EXPECT_EQ(&f.program(), c.module.as_lir().get());
  const Feeds feeds = random_feeds(c.module.graph());
  EXPECT_TRUE(close(f.run(feeds)[0], interpret(c.module.graph(), feeds)[0]));
  EXPECT_THROW((void)c.on(Device::cpu(1), {.donations = {{0, "x"}}}), UserError);
  EXPECT_THROW((void)load(dense_graph(), c.module.as_lir()), UserError);
  EXPECT_THROW((void)load(c.module.graph(), nullptr), UserError);
  EXPECT_THROW((void)f.served_by(f.program().steps.size()), UserError);
  // The same sizes do not make it the same graph.
  const auto doubled = [](bool squared) {
    Graph g("either");
    const Value x = g.input("x", f32({2, 3}));
    g.set_outputs({squared ? x * x : x + x});
    return g;
  };
  const auto program = std::make_shared<const ricci::Program>(compile(doubled(false)).program());
  EXPECT_NO_THROW((void)load(doubled(false), program));
  EXPECT_THROW((void)load(doubled(true), program), UserError);
  EXPECT_THROW((void)compile_training(perceptron(), {.compile = {.donations = {{0, "x"}}}}),
               UserError);
}

// The code generator's time grows faster than a kernel: what is large is cut, and the report says
// so.
TEST(RuntimePipeline, KernelsHaveALimit) {
  const auto module = GraphModule::define("long", [](Graph& g) {
    Value x = g.input("x", f32({8}));
    for (int i = 0; i < 600; ++i) x = x * 0.5 + g.input("y" + std::to_string(i), f32({8}));
    return x;
  });
  const Compiled c = CompilePipeline().compile_module(module);
  EXPECT_GT(c.fusion.kernels, 3U);
  EXPECT_LT(c.fusion.kernels, 10U);
  ASSERT_FALSE(c.fusion.misses.empty());
  EXPECT_EQ(c.fusion.misses[0].reason, "the kernel would be too large");
  const Feeds feeds = random_feeds(c.module.graph());
  EXPECT_TRUE(close(c.on().run(feeds)[0], interpret(c.module.graph(), feeds)[0]));
}

// Attention has a kernel in f32 and is written out in f64: the report says both.
TEST(RuntimePipeline, CountsTheWaysOfEachDtype) {
  const auto module = GraphModule::define("both", [](Graph& g) {
    const auto mixed = [&](const char* name, DType dtype) {
      const Value x = g.input(name, Type{dtype, {2, 8, 4}});
      return attention(x, x, x, {.num_heads = 1, .head_dim = 4});
    };
    const Value single = mixed("x", DType::F32);
    return cast(mixed("y", DType::F64), {.to = DType::F32}) + single;
  });
  const Compiled c = CompilePipeline().compile_module(module);
  EXPECT_EQ(c.dispatch.ops.at("attention").native, 1U);
  EXPECT_EQ(c.dispatch.ops.at("attention").expanded, 1U);
}

TEST(RuntimePipeline, CanBeToldNotToFuse) {
  const Compiled fused = CompilePipeline().compile_module(perceptron());
  const Compiled plain = CompilePipeline({.fuse = false}).compile_module(perceptron());
  EXPECT_GT(plain.fusion.kernels, fused.fusion.kernels);
  EXPECT_EQ(plain.fusion.fused_nodes, 0U);
}

// What runs first depends on it, so a program without fusion is made from another graph.
TEST(RuntimePipeline, WhatIsNotFusedRunsToo) {
  Graph g("turned");
  const Value x = g.input("x", f32({5, 7}));
  g.set_outputs({transpose(x + exp(x), {.perm = {1, 0}})});
  const Feeds feeds = {{"x", random_tensor(1, x.type())}};
  const auto run = [&](bool fuse) {
    return CompilePipeline({.fuse = fuse}).compile_graph(g).on().run(feeds);
  };
  EXPECT_TRUE(close(run(false)[0], run(true)[0], tolerance(DType::F32)));
}

TEST(RuntimePipeline, MissesCanBeAnError) {
  const PipelineOptions strict = {.assert_fusion_clean = true};
  Graph clean("clean");
  clean.set_outputs({tanh(clean.input("x", f32({8}))) + 1.0});
  EXPECT_EQ(CompilePipeline(strict).compile_graph(clean).fusion.kernels, 1U);
  Graph apart("apart");
  const Value x = apart.input("x", f32({64, 64}));
  const Value rows = softmax(x, {.axis = 1});
  apart.set_outputs({softmax(rows, {.axis = 0})});
  const FusionReport report = CompilePipeline().compile_graph(apart).fusion;
  ASSERT_FALSE(report.misses.empty()) << "a column cannot share the kernel of its rows";
  EXPECT_FALSE(report.misses[0].reason.empty());
  try {
    (void)CompilePipeline(strict).compile_graph(apart);
    ADD_FAILURE() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::LowerFailed);
  }
}

TEST(RuntimePipeline, AProgramCannotBeDifferentiated) {
  const GraphModule lir = CompilePipeline().compile_module(perceptron()).module;
  const auto expect_wrong_stage = [](auto&& f) {
    try {
      f();
      ADD_FAILURE() << "no error";
    } catch (const AutodiffError& e) {
      EXPECT_EQ(e.code(), ErrorCode::WrongStage) << e.what();
    }
  };
  expect_wrong_stage([&] { (void)grad_with_loss_module(lir, {"w1"}); });
  expect_wrong_stage([&] { (void)jvp_module(lir, {"w1"}); });
  expect_wrong_stage([&] { (void)hvp_module(lir, {"w1"}); });
  expect_wrong_stage([&] { (void)nth_order_grad_module(lir, "w1", 2); });
  expect_wrong_stage([&] { (void)compile_training(lir); });
  EXPECT_THROW((void)lir.as_mir(), UserError);
  EXPECT_THROW((void)perceptron().as_lir(), UserError);
  // The MIR inside can.
  EXPECT_NO_THROW(
      (void)grad_with_loss_module(GraphModule::from_mir(GraphModule(lir).into_mir()), {"w1"}));
}

TEST(RuntimePipeline, SpecialisesSymbolicDimensions) {
  Graph g("rows");
  g.set_outputs({tanh(g.input("x", {DType::F32, {Dim::symbol("n"), 3}}))});
  const GraphModule module = GraphModule::from_mir(g);
  try {
    (void)CompilePipeline().compile_module(module);
    ADD_FAILURE() << "compiled without the size";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::NeedsStaticDim);
    EXPECT_NE(std::string(e.what()).find("'rows' has sizes that are not known yet: n"),
              std::string::npos)
        << e.what();
  }
  const Compiled c = CompilePipeline().specialize(module, {{"n", 7}});
  EXPECT_EQ(
      c.module.as_lir()->buffers[static_cast<std::size_t>(c.module.as_lir()->inputs[0])].elements,
      21);
}

// [no-silent-nop] What a device cannot run is an error that names the op and the node.
TEST(RuntimePipeline, RewritesForARestrictedTarget) {
  PipelineOptions options;
  options.supported = SupportedOps::only({OpKind::Unary, OpKind::Binary});
  Graph g("square");
  const Value x = g.input("x", f32({4}));
  const Value dy = g.input("dy", f32({4}));
  g.set_outputs({matmul(reshape(x, {.new_shape = {1, 4}}), reshape(dy, {.new_shape = {4, 1}}))});
  try {
    (void)CompilePipeline(options).compile_graph(g);
    ADD_FAILURE() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::UnsupportedOnBackend) << e.what();
    EXPECT_NE(std::string(e.what()).find("matmul x1"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("reshape x2"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("the first is node 2"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace ricci::testing
