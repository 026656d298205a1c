// How many passes over memory gradients take once compiled: what is one kernel forwards is one
// kernel backwards, without a fused backward op for each.
#include <gtest/gtest.h>

#include "ricci/compiler/schedule/program.h"
#include "ricci/ir/text.h"
#include "ricci/transform/grad.h"

namespace ricci::testing::fused_gradients_test {
namespace {

struct Steps {
  std::size_t kernels = 0;  ///< that walk whole arrays
  std::size_t calls = 0;
};

Steps steps_of(const Graph& graph) {
  Steps out;
  const Program program = make_program(graph);
  for (const Step& step : program.steps) {
    if (const auto* call = std::get_if<CallStep>(&step.what)) {
      ++out.calls;
      if (call->after) ++out.kernels;
    }
    const auto* kernels = std::get_if<KernelStep>(&step.what);
    if (kernels == nullptr) continue;
    for (const Launch& launch : kernels->launches) {
      // Adding up what the tiles of one kernel have summed is not a pass over an array.
      if (!launch.from.label.ends_with("(combine)")) ++out.kernels;
    }
  }
  return out;
}

Steps gradient_steps(const char* text, std::vector<ValueRef> wrt) {
  const Graph graph = parse_graph(text);
  return steps_of(vjp(graph, wrt).graph);
}

TEST(BackendFusion, RegionsAndTheirGradientsAreOneKernel) {  // [region-ad]
  const char* text = R"(graph @g {
    %x = input "x" : f32[64, 512]
    %y = input "y" : f32[64, 512]
    %z = elementwise_region %x, %y {chain = [tanh(input(0)), mul(step(0), input(1)), exp(step(1))]}
    return %z
  })";
  EXPECT_EQ(steps_of(parse_graph(text)).kernels, 1U);
  const Steps back = gradient_steps(text, {"x", "y"});
  EXPECT_EQ(back.kernels, 1U);
  EXPECT_EQ(back.calls, 0U);
}

TEST(BackendFusion, ResidualNormsAndTheirGradientsAreOneKernel) {  // [fused-native-backward]
  const char* text = R"(graph @g {
    %x = input "x" : f32[64, 512]
    %r = input "r" : f32[64, 512]
    %gamma = param "gamma" : f32[512]
    %beta = param "beta" : f32[512]
    %y = fused_residual_ln %x, %r, %gamma, %beta
    return %y
  })";
  EXPECT_EQ(steps_of(parse_graph(text)).kernels, 1U);
  const Steps back = gradient_steps(text, {"x", "r", "gamma", "beta"});
  EXPECT_EQ(back.kernels, 1U);
  EXPECT_EQ(back.calls, 0U);
}

TEST(BackendFusion, SwigluAndItsGradientAreOneKernelEach) {  // [fused-native-backward]
  const char* text = R"(graph @g {
    %p = input "p" : f32[64, 512]
    %y = fused_swiglu %p
    return %y
  })";
  EXPECT_EQ(steps_of(parse_graph(text)).kernels, 1U);
  // The two halves are written into one array.
  EXPECT_LE(gradient_steps(text, {"p"}).kernels, 2U);
}

TEST(BackendFusion, DenseLayersAddOneKernelToTheirProducts) {  // [fused-native-backward]
  const char* text = R"(graph @g {
    %x = input "x" : f32[64, 256]
    %w = param "w" : f32[256, 512]
    %b = param "b" : f32[512]
    %y = fused_matmul_bias_act %x, %w, %b {activation = gelu}
    return %y
  })";
  const Steps forward = steps_of(parse_graph(text));
  EXPECT_EQ(forward.calls, 1U);
  EXPECT_EQ(forward.kernels, 1U);
  const Steps back = gradient_steps(text, {"x", "w", "b"});
  EXPECT_EQ(back.calls, 3U);
  EXPECT_LE(back.kernels, 2U);
}

}  // namespace
}  // namespace ricci::testing::fused_gradients_test
