#include <array>

#include <gtest/gtest.h>

#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/model/module.h"

#include "support/compare.h"

namespace ricci::model_module_test {
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

constexpr std::array AllPolicies = {FusionPolicy::Direct, FusionPolicy::Fusable,
                                    FusionPolicy::ForAutodiff};

// Every policy gives the block's own values; the text reads back.
void expect_same_under_every_policy(const GraphModule& module) {
  EXPECT_EQ(print(parse_graph(print(module.graph()))), print(module.graph()));
  Feeds feeds;
  for (const NodeId id : module.graph().leaves()) {
    const Node& node = module.graph().node(id);
    const Tensor value = testing::random_tensor(id + 1, node.types[0]);
    feeds.emplace(*node.leaf_name(), is_float(node.types[0].dtype)
                                         ? value
                                         : Tensor::splat(node.types[0], std::int64_t{1}));
  }
  const std::vector<Tensor> expected = interpret(module.graph(), feeds);
  for (const FusionPolicy p : AllPolicies) {
    const Graph mir = module.lower(p).module.into_graph();
    verify(mir);
    const std::vector<Tensor> got = interpret(mir, feeds);
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(testing::close(got[i], expected[i])) << name(p) << i;
    }
  }
}

TEST(GraphModule, AGatedPartIsOneProductOrTwo) {
  const GraphModule m = GraphModule::define("gated", [](Graph& g) {
    return swiglu(g.input("x", f64({2, 3})), g.param("up", f64({3, 4})),
                  g.param("gate", f64({3, 4})), g.param("down", f64({4, 3})));
  });
  expect_same_under_every_policy(m);
  const Graph direct = m.lower().module.into_graph();
  EXPECT_EQ(count(direct, "matmul"), 2U);
  EXPECT_EQ(count(direct, "fused_swiglu"), 1U);
  EXPECT_EQ(m.lower(FusionPolicy::Fusable).module.graph().size(), 9U);
}

TEST(GraphModule, BothProductsOfAPairComeFromOneBlock) {
  GraphModule m = GraphModule::hir("pair");
  const auto [first, second] = shared_linear_pair(
      m.input("x", f64({2, 3})), m.param("a", f64({3, 4})), m.param("b", f64({3, 5})));
  const std::array outputs = {second, first};
  m.set_outputs(outputs);
  expect_same_under_every_policy(m);
  EXPECT_EQ(count(m.into_graph(), "matmul"), 2U);
}

TEST(GraphModule, ResidualNormsKeepTheirSum) {
  const Graph hir = parse_graph(R"(graph @norm {
  %x = input "x" : f64[2, 3]
  %r = input "r" : f64[2, 3]
  %g = param "g" : f64[3]
  %b = param "b" : f64[3]
  %0, %1 = residual_rms_norm %x, %r, %g, %b {eps = 0.1} : f64[2, 3], f64[2, 3]
  return %0, %1
}
)");
  const GraphModule m = GraphModule::from_graph(hir);
  EXPECT_EQ(m.stage(), GraphStage::Hir);
  expect_same_under_every_policy(m);
  EXPECT_EQ(count(m.into_graph(), "fused_residual_rms_norm"), 1U);
  EXPECT_EQ(count(m.lower(FusionPolicy::Fusable).module.graph(), "rms_norm"), 1U);
}

TEST(GraphModule, ACausalConvolutionIsAGroupedOne) {
  const GraphModule m = GraphModule::define("conv", [](Graph& g) {
    return depthwise_conv1d_causal(g.input("x", f64({2, 5, 3})), g.param("w", f64({3, 1, 1, 4})),
                                   g.input("before", f64({2, 3, 3})));
  });
  expect_same_under_every_policy(m);
  EXPECT_EQ(count(m.into_graph(), "conv"), 1U);
}

std::vector<Value> decoder_operands(Graph& g) {
  const auto matrix = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return g.param(name, f64({rows, columns}));
  };
  const auto vector = [&](const char* name) { return g.param(name, f64({6})); };
  return {g.input("x", f64({2, 3, 6})),
          vector("ln1_g"),
          vector("ln1_b"),
          matrix("q", 6, 8),
          matrix("k", 6, 4),
          matrix("v", 6, 4),
          matrix("o", 8, 6),
          vector("ln2_g"),
          vector("ln2_b"),
          matrix("gate", 6, 5),
          matrix("up", 6, 5),
          matrix("down", 5, 6),
          matrix("cos", 4, 1),
          matrix("sin", 4, 1)};
}

TEST(GraphModule, ADecoderBlockFollowsThePolicy) {  // [hir-validation]: heads are grouped natively
  const op::LlamaDecoderBlock attrs{
      .num_heads = 4, .head_dim = 2, .num_kv_heads = 2, .mask_kind = MaskKind::causal()};
  const GraphModule m = GraphModule::define(
      "decoder", [&](Graph& g) { return transformer_block(decoder_operands(g), attrs); });
  EXPECT_EQ(count(m.graph(), "llama_decoder_block"), 1U);
  expect_same_under_every_policy(m);
  const Graph direct = m.into_graph();
  EXPECT_EQ(count(direct, "fused_residual_rms_norm"), 1U);
  EXPECT_EQ(count(direct, "fused_swiglu"), 1U);
  EXPECT_EQ(count(direct, "attention"), 1U);
  EXPECT_EQ(count(direct, "expand"), 0U);
  const Graph chain = m.lower(FusionPolicy::Fusable).module.into_graph();
  EXPECT_EQ(count(chain, "rms_norm"), 2U);
  EXPECT_EQ(count(chain, "matmul"), 7U);
  const Graph other = parse_graph(R"(graph @alias {
  %x = input "x" : f64[1, 2]
  %v = param "v" : f64[2]
  %w = param "w" : f64[2, 2]
  %t = param "t" : f64[1, 1]
  %0 = transformer_block %x, %v, %v, %w, %w, %w, %w, %v, %v, %w, %w, %w, %t, %t {num_heads = 1, head_dim = 2} : f64[1, 2]
  return %0
}
)");
  EXPECT_EQ(count(other, "llama_decoder_block"), 1U);
}

TEST(GraphModule, BlocksSayWhichPartDoesNotFit) {
  try {
    (void)GraphModule::define("wrong", [](Graph& g) {
      std::vector<Value> in = decoder_operands(g);
      in[4] = g.param("k2", f64({6, 6}));
      return llama_decoder_block(in, {.num_heads = 4, .head_dim = 2, .num_kv_heads = 2});
    });
    FAIL() << "accepted";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("'k_w' is f64[6, 6], but must be [6, 4]"),
              std::string::npos)
        << e.what();
  }
}

TEST(GraphModule, NamedPartsLabelTheirNodes) {
  GraphModule m = GraphModule::hir("named");
  const Value x = m.input("x", f32({2, 3}));
  const Value y = m.block("head", [&](Graph& g) { return linear(x, g.param("w", f32({3, 4}))); });
  m.finish_hir(y);
  EXPECT_EQ(m.graph().node(y.id().node).names[0], "head");
  const Graph mir = m.into_graph();
  EXPECT_EQ(mir.nodes().back().provenance->label, "head");
}

TEST(GraphModule, ExtensionsAreFoundByName) {
  ModuleExtensions extensions;
  extensions.add("square", [](GraphModule m) {
    m.finish_hir(square(m.graph().output_values()[0]));
    return m;
  });
  extensions.add("unfused",
                 [](const GraphModule& m) { return m.with_fusion_policy(FusionPolicy::Fusable); });
  EXPECT_EQ(extensions.names(), (std::vector<std::string>{"square", "unfused"}));
  EXPECT_EQ(count(extensions.apply("square", dense(false)).graph(), "square"), 1U);
  const GraphModule all = extensions.apply_all(dense(false));
  EXPECT_EQ(all.fusion_policy(), FusionPolicy::Fusable);
  EXPECT_EQ(count(all.into_graph(), "fused_matmul_bias_act"), 0U);
  EXPECT_THROW(extensions.add("square", {}), UserError);
  try {
    (void)extensions.apply("sqare", dense(false));
    FAIL() << "found";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean 'square'?"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace ricci::model_module_test
