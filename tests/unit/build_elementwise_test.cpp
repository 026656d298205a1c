// Builders and spellings of element-wise ops beyond those of the op list.
#include <gtest/gtest.h>

#include "ricci/build/elementwise.h"
#include "ricci/compat/elementwise.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"

namespace ricci::build_elementwise_test {
namespace {

TEST(ElementwiseBuilders, DetachIsStopGradient) {
  Graph g;
  const Value x = g.input("x", f32({2}));
  const Value y = detach(x);
  EXPECT_TRUE(g.node(y.id().node).op.is<op::StopGradient>());
}

TEST(ElementwiseBuilders, ActivationBackwardPrintsItsKind) {
  Graph g;
  const Value x = g.input("x", f32({2}));
  const Value dy = g.input("dy", f32({2}));
  g.set_outputs({activation_backward(x, dy, {.kind = UnaryKind::Tanh})});
  EXPECT_NE(print(g).find("activation_backward %x, %dy {kind = tanh}"), std::string::npos)
      << print(g);
}

TEST(ElementwiseBuilders, ComparisonsTakeNumbers) {
  Graph g("main");
  const Value x = g.input("x", Type{DType::F16, {2}});
  g.set_outputs({lt(x, 0.5), ge(1.0, x)});
  EXPECT_EQ(g.type(g.outputs()[0]), (Type{DType::Bool, {2}}));
  for (const Node& node : g.nodes()) {
    if (!node.op.is<op::Constant>()) continue;
    EXPECT_EQ(node.types[0], (Type{DType::F16, {}}));
  }
  const Graph same = parse_graph(R"(graph @main {
    %x = input "x" : f16[2]
    %half = constant 0.5 : f16[]
    %a = lt %x, %half
    %one = constant 1.0 : f16[]
    %b = ge %one, %x
    return %a, %b
  })");
  EXPECT_TRUE(same == g) << print(g);
}

TEST(ElementwiseBuilders, RegionsPrintAsNestedSteps) {
  using In = RegionOperand;
  Graph g;
  const Value x = g.input("x", f32({2}));
  const Value y = g.input("y", f32({2}));
  const std::vector<RegionStep> chain = {
      RegionStep::activation(UnaryKind::Tanh, In::input(0)),
      RegionStep::binary(BinaryKind::Add, In::step(0), In::input(1)),
      RegionStep::cast(DType::F64, In::step(1)),
      RegionStep::compare(CompareKind::Lt, In::input(0), In::input(1)),
      RegionStep::where(In::step(3), In::step(0), In::step(1))};
  g.set_outputs(elementwise_region({x, y}, {.chain = chain}));
  EXPECT_NE(print(g).find("elementwise_region %x, %y {chain = [tanh(input(0)), "
                          "add(step(0), input(1)), cast(f64, step(1)), lt(input(0), input(1)), "
                          "where(step(3), step(0), step(1))]}"),
            std::string::npos)
      << print(g);
}

TEST(ElementwiseBuilders, RegionMultiIsARegionWithOutputs) {
  using In = RegionOperand;
  Graph g("main");
  const Value x = g.input("x", f32({2}));
  g.set_outputs(region_multi({x}, {.chain = {RegionStep::activation(UnaryKind::Exp, In::input(0)),
                                             RegionStep::activation(UnaryKind::Neg, In::step(0))},
                                   .outputs = std::vector<std::int64_t>{0, 1}}));
  const Graph parsed = parse_graph(R"(graph @main {
    %x = input "x" : f32[2]
    %a, %b = region_multi %x {chain = [exp(input(0)), neg(step(0))], outputs = [0, 1]}
    return %a, %b
  })");
  EXPECT_TRUE(parsed == g) << print(parsed);
}

TEST(ElementwiseBuilders, MalformedStepsAreRefused) {
  const auto parse_chain = [](const std::string& chain) {
    return parse_graph("graph @g { %x = input \"x\" : f32[2] %y = elementwise_region %x {chain = " +
                       chain + "} return %y }");
  };
  EXPECT_NO_THROW((void)parse_chain("[tanh(input(0))]"));
  for (const char* bad :
       {"tanh", "[tanh]", "[tanh(input(0), input(0))]", "[add(input(0))]", "[nothing(input(0))]",
        "[tanh(input)]", "[tanh(input(0, 1))]", "[cast(input(0))]", "[cast(f9, input(0))]",
        "[cast()]", "[where(input(0), input(0))]", "[tanh(output(0))]", "[3]"}) {
    EXPECT_THROW((void)parse_chain(bad), UserError) << bad;
  }
}

}  // namespace
}  // namespace ricci::build_elementwise_test
