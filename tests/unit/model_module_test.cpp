#include <gtest/gtest.h>

#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/model/module.h"

#include "support/compare.h"

namespace ricci {
namespace {

std::size_t count(const Graph& graph, std::string_view mnemonic) {
  std::size_t n = 0;
  for (const Node& node : graph.nodes()) n += node.op.mnemonic() == mnemonic ? 1 : 0;
  return n;
}

GraphModule dense(bool fused) {
  return GraphModule::define("dense", [&](Graph& g) {
    const Value x = g.input("x", f32({2, 3}));
    const Value w = g.param("w", f32({3, 4}));
    const Value b = g.param("b", f32({4}));
    return fused ? linear_fused(x, w, b, {.activation = UnaryKind::Gelu})
                 : linear(x, w, b, {.activation = UnaryKind::Gelu});
  });
}

TEST(GraphModule, DirectLoweringFusesABiasedLayer) {  // 8.19, first half
  const Graph mir = dense(false).lower().module.into_graph();
  EXPECT_EQ(count(mir, "fused_matmul_bias_act"), 1U);
  EXPECT_EQ(count(mir, "linear"), 0U);
}

TEST(GraphModule, FusableLoweringGivesPrimitives) {
  const Graph mir = dense(false).lower(FusionPolicy::Fusable).module.into_graph();
  EXPECT_EQ(count(mir, "matmul"), 1U);
  EXPECT_EQ(count(mir, "add"), 1U);
  EXPECT_EQ(count(mir, "gelu"), 1U);
}

TEST(GraphModule, FusedLayersStayFusedUnlessDifferentiated) {
  EXPECT_EQ(count(dense(true).lower(FusionPolicy::Fusable).module.graph(), "fused_matmul_bias_act"),
            1U);
  const Graph mir = dense(true).lower_for_autodiff().module.into_graph();
  EXPECT_EQ(count(mir, "fused_matmul_bias_act"), 0U);
  EXPECT_EQ(count(mir, "matmul"), 1U);
}

TEST(GraphModule, EveryPolicyGivesTheSameValues) {
  const Feeds feeds = {{"x", testing::random_tensor(1, f32({2, 3}))},
                       {"w", testing::random_tensor(2, f32({3, 4}))},
                       {"b", testing::random_tensor(3, f32({4}))}};
  for (const bool fused : {false, true}) {
    const GraphModule m = dense(fused);
    const Tensor expected = interpret(m.graph(), feeds)[0];
    for (const FusionPolicy p :
         {FusionPolicy::Direct, FusionPolicy::Fusable, FusionPolicy::ForAutodiff}) {
      const Graph mir = m.with_fusion_policy(p).lower().module.into_graph();
      verify(mir);
      EXPECT_TRUE(testing::close(interpret(mir, feeds)[0], expected)) << name(p);
    }
  }
}

TEST(GraphModule, LoweringSaysWhereValuesWent) {
  const GraphModule m = dense(false);
  const auto lowered = m.lower();
  const ValueId w{*m.graph().find("w"), 0};
  const ValueId out = m.graph().outputs()[0];
  EXPECT_EQ(lowered.map(w)->node, *lowered.module.graph().find("w"));
  EXPECT_EQ(lowered.map(out), lowered.module.graph().outputs()[0]);
}

TEST(GraphModule, LoweredNodesRememberTheirBlock) {
  const Graph mir = dense(false).into_graph();
  EXPECT_EQ(mir.nodes().back().provenance->origin, "block 'linear'");
  EXPECT_NE(mir.nodes().back().provenance->where.file.find("model_module_test"), std::string::npos);
}

TEST(GraphModule, BlocksInBodiesAreLoweredToo) {
  GraphModule m = GraphModule::define("loop", [](Graph& g) {
    const Value c = g.input("c", f32({2, 2}));
    const Value w = g.param("w", f32({2, 2}));
    return scan(std::array{c}, {.bcasts = {w}, .length = Dim(3)},
                [](Graph&, std::span<const Value> in) {
                  return std::vector<Value>{linear(in[0], in[1])};
                })[0];
  });
  const Graph mir = m.into_graph();
  EXPECT_EQ(count(*mir.nodes().back().body("body"), "linear"), 0U);
  verify(mir);
}

TEST(GraphModule, ABlockIsRefusedInMir) {
  try {
    (void)GraphModule::from_mir(dense(false).graph());
    FAIL() << "accepted";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::WrongStage);
    EXPECT_NE(std::string(e.what()).find("legal only before lowering"), std::string::npos);
  }
}

TEST(GraphModule, StagesAreChecked) {
  const GraphModule mir = dense(false).lower().module;
  EXPECT_EQ(mir.stage(), GraphStage::Mir);
  EXPECT_THROW((void)mir.with_fusion_policy(FusionPolicy::Direct), UserError);
  EXPECT_THROW((void)mir.as_hir(), UserError);
  EXPECT_THROW((void)dense(false).as_mir(), UserError);
  EXPECT_EQ(mir.lower().module.graph(), mir.graph());
}

TEST(GraphModule, InspectShowsStageAndText) {
  const std::string text = dense(false).inspect();
  EXPECT_TRUE(text.starts_with("// stage hir, policy direct\n"));
  EXPECT_NE(text.find("linear %x, %w, %b {activation = gelu}"), std::string::npos);
}

}  // namespace
}  // namespace ricci
