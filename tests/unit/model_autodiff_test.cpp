// Derivatives of modules: stages, ids before lowering, and the errors of differentiation.
#include <gtest/gtest.h>

#include "ricci/interp/interpreter.h"
#include "ricci/ir/verify.h"
#include "ricci/model/autodiff.h"

#include "model/autodiff_stage.h"
#include "support/compare.h"
#include "support/count.h"

namespace ricci::testing::model_autodiff_test {
namespace {

// A layer with a block before its last parameter, so that ids shift when it is lowered.
struct Dense {
  GraphModule module = GraphModule::hir("dense");
  ValueId hidden;
  ValueId scale;

  Dense() {
    Graph& g = module.graph();
    const Value x = g.input("x", f64({2, 3}));
    const Value w = g.param("w", f64({3, 4}));
    const Value b = g.param("b", f64({4}));
    const Value h = linear(x, w, b, {.activation = UnaryKind::Tanh});
    const Value s = g.param("s", f64({4}));
    hidden = h.id();
    scale = s.id();
    module.finish_hir(sum(h * s));
  }
  [[nodiscard]] Feeds feeds() const {
    return {{"x", random_tensor(1, f64({2, 3}))},
            {"w", random_tensor(2, f64({3, 4}))},
            {"b", random_tensor(3, f64({4}))},
            {"s", random_tensor(4, f64({4}))}};
  }
};

Tensor with_seed_one(const Graph& gradient, Feeds feeds, std::size_t output) {
  feeds.emplace("d_output", Tensor::splat(f64(), 1.0));
  return interpret(gradient, feeds)[output];
}

TEST(ModuleAutodiff, IdsOfBlocksAreCarriedThroughLowering) {  // [hir-ids] [wrt-remap] [TR-03]
  const Dense d;
  const Transformed t = grad_with_loss_module(d.module, {d.scale, d.hidden, "w"});
  verify(t.graph);
  ASSERT_EQ(t.graph.outputs().size(), 4U);
  EXPECT_EQ(count(t.graph, "linear"), 0U);
  const Tensor s = d.feeds().at("s");
  const Tensor hidden = with_seed_one(t.graph, d.feeds(), 2);
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(hidden.numbers<double>()[static_cast<std::size_t>(i)],
              s.numbers<double>()[static_cast<std::size_t>(i)]);
  }
  EXPECT_TRUE(t.map(d.hidden));
  EXPECT_EQ(t.map(d.module.graph().outputs()[0]), t.graph.outputs()[0]);
}

TEST(ModuleAutodiff, HirAndMirGiveTheSameGradient) {
  const Dense d;
  const Graph hir = grad_with_loss_module(d.module, {"w", "s"}).graph;
  const Graph mir = grad_with_loss_module(d.module.lower().module, {"w", "s"}).graph;
  for (const std::size_t output : {1U, 2U}) {
    EXPECT_TRUE(same(with_seed_one(hir, d.feeds(), output), with_seed_one(mir, d.feeds(), output)));
  }
}

TEST(ModuleAutodiff, ForwardAndSecondOrderModesTakeModules) {
  const Dense d;
  const Transformed tangents = jvp_module(d.module, {"w", d.scale});
  EXPECT_EQ(tangents.graph.outputs().size(), 2U);
  const Transformed products = hvp_module(d.module, {"w"});
  verify(products.graph);
  EXPECT_EQ(products.graph.outputs().size(), 4U);
  EXPECT_TRUE(products.graph.find("tangent_w"));
  const GraphModule cubic = GraphModule::define("cubic", [](Graph& g) {
    const Value x = g.input("x", f64());
    return x * x * x;
  });
  const Graph second = nth_order_grad_module(cubic, "x", 2).graph;
  EXPECT_TRUE(
      close(interpret(second, {{"x", Tensor::splat(f64(), 2.0)}})[0], Tensor::splat(f64(), 12.0)));
}

TEST(ModuleAutodiff, PreparationLowersAndMapsIds) {  // [prepare-minimal]
  const Dense d;
  const GraphModule::Lowered prepared = prepare_module_for_ad(d.module);
  EXPECT_EQ(prepared.module.stage(), GraphStage::Mir);
  EXPECT_EQ(count(prepared.module.graph(), "fused_matmul_bias_act"), 0U);
  EXPECT_EQ(prepared.map(d.scale)->node, *prepared.module.graph().find("s"));
  EXPECT_TRUE(close(interpret(prepared.module.graph(), d.feeds())[0],
                    interpret(d.module.graph(), d.feeds())[0]));
  EXPECT_EQ(prepare_mir_for_ad(d.module.lower().module).module.graph(), prepared.module.graph());
  EXPECT_THROW((void)prepare_mir_for_ad(d.module), UserError);
}

TEST(ModuleAutodiff, AProgramForADeviceIsNotDifferentiated) {
  EXPECT_NO_THROW(model::require_differentiable(GraphStage::Hir, "m"));
  EXPECT_NO_THROW(model::require_differentiable(GraphStage::Mir, "m"));
  try {
    model::require_differentiable(GraphStage::Lir, "m");
    FAIL() << "accepted";
  } catch (const AutodiffError& e) {
    EXPECT_EQ(e.code(), ErrorCode::WrongStage);
    EXPECT_NE(std::string(e.what()).find("'m' is at stage lir"), std::string::npos) << e.what();
    EXPECT_NE(e.diagnostic().help.find("the MIR that is kept inside the LIR"), std::string::npos);
  }
}

TEST(ModuleAutodiff, AMissingGradientIsOfTheFamily) {
  const Dense d;
  try {
    (void)grad_with_loss_module(d.module.lower().module, {"x", "w", "b", "s"});
    Graph g("cut");
    const Value x = g.input("x", f64({2}));
    const Value y = g.input("y", f64({2}));
    g.set_outputs({stop_gradient(x) + y});
    (void)grad_with_loss_module(GraphModule::from_mir(g), {"x"});
    FAIL() << "accepted";
  } catch (const AutodiffError& e) {
    EXPECT_EQ(e.code(), ErrorCode::NoGradient);
    EXPECT_NE(std::string(e.what()).find("stop_gradient"), std::string::npos) << e.what();
  }
}

TEST(AutodiffError, CoversItsFamilyOnly) {
  for (const ErrorCode code : {ErrorCode::WrongStage, ErrorCode::LowerFailed, ErrorCode::NoGradient,
                               ErrorCode::Refused, ErrorCode::UnboundedLoop}) {
    EXPECT_TRUE(AutodiffError::covers(code)) << name(code);
  }
  EXPECT_FALSE(AutodiffError::covers(ErrorCode::Shape));
  EXPECT_FALSE(AutodiffError::covers(ErrorCode::NeedsStaticDim));
}

}  // namespace
}  // namespace ricci::testing::model_autodiff_test
