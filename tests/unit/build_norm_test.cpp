// One-gradient builders of the normalisations: they ask the backward op for one result, and the
// parser knows them by the same names.
#include <gtest/gtest.h>

#include "ricci/build/norm.h"
#include "ricci/compat/norm.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"

#include "support/compare.h"

namespace ricci::testing::build_norm_test {
namespace {

class OneGradient : public ::testing::Test {
 protected:
  // `x` and `dy` [2, 4, 3], vectors along axis 1.
  Value in(const std::string& name) {
    const bool vector = name == "gamma" || name == "beta" || name == "mean" || name == "var";
    const Type type = f64(vector ? Dims{4} : Dims{2, 4, 3});
    feeds_.emplace(name, random_tensor(feeds_.size() + 1, type, 0.5, 2));
    return graph_.input(name, type);
  }

  // `one` is what result `which` of the merged op is, computed alone.
  void expect_result(Value one, std::size_t which, const Value* merged) {
    EXPECT_EQ(one.id().result, which);
    const Node& node = graph_.node(one.id().node);
    for (std::size_t r = 0; r < node.wanted.size(); ++r) EXPECT_EQ(node.wanted[r], r == which);
    graph_.set_outputs({one, merged[which]});
    const auto out = interpret(graph_, feeds_);
    EXPECT_TRUE(same(out[0], out[1]));
    EXPECT_EQ(parse_graph(print(graph_)), graph_);
  }

  // The alias builds what the builder built, made-up operands included.
  void expect_alias(const std::string& text, Value one) {
    graph_.set_outputs({one});
    EXPECT_EQ(parse_graph(text), graph_) << print(graph_);
  }

  Graph graph_{"g"};
  Feeds feeds_;
};

constexpr op::LayerNormBackward Layer{.axis = 1, .eps = 0.1};
constexpr op::RmsNormBackward Rms{.axis = 1, .eps = 0.1};
constexpr op::GroupNormBackward Group{.num_groups = 2, .eps = 0.1};
constexpr op::BatchNormInferenceBackward Batch{.axis = 1, .eps = 0.1};

TEST_F(OneGradient, OfLayerNorm) {
  const Value x = in("x");
  const Value gamma = in("gamma");
  const Value dy = in("dy");
  const auto all = layer_norm_backward(x, gamma, dy, Layer);
  expect_result(layer_norm_backward_input(x, gamma, dy, Layer), 0, all.data());
  expect_result(layer_norm_backward_gamma(x, dy, Layer), 1, all.data());
}

TEST_F(OneGradient, OfRmsNorm) {
  const Value x = in("x");
  const Value gamma = in("gamma");
  const Value beta = in("beta");
  const Value dy = in("dy");
  const auto all = rms_norm_backward(x, gamma, dy, Rms);
  expect_result(rms_norm_backward_input(x, gamma, beta, dy, Rms), 0, all.data());
  expect_result(rms_norm_backward_gamma(x, gamma, beta, dy, Rms), 1, all.data());
  expect_result(rms_norm_backward_beta(x, gamma, beta, dy, Rms), 2, all.data());
}

TEST_F(OneGradient, OfGroupNorm) {
  const Value x = in("x");
  const Value gamma = in("gamma");
  const Value beta = in("beta");
  const Value dy = in("dy");
  const auto all = group_norm_backward(x, gamma, dy, Group);
  expect_result(group_norm_backward_input(x, gamma, beta, dy, Group), 0, all.data());
  expect_result(group_norm_backward_gamma(x, dy, Group), 1, all.data());
  expect_result(group_norm_backward_beta(x, dy, Group), 2, all.data());
}

TEST_F(OneGradient, OfBatchNorm) {
  const Value x = in("x");
  const Value gamma = in("gamma");
  const Value mean = in("mean");
  const Value var = in("var");
  const Value dy = in("dy");
  const auto all = batch_norm_inference_backward(x, gamma, mean, var, dy, Batch);
  expect_result(batch_norm_inference_backward_input(x, gamma, mean, var, dy, Batch), 0, all.data());
  expect_result(batch_norm_inference_backward_gamma(x, mean, var, dy, Batch), 1, all.data());
  expect_result(batch_norm_inference_backward_beta(dy, Batch), 2, all.data());
}

TEST_F(OneGradient, IsAnAlias) {
  const Value x = in("x");
  const Value dy = in("dy");
  expect_alias("graph @g {\n"
               "  %x = input \"x\" : f64[2, 4, 3]\n"
               "  %dy = input \"dy\" : f64[2, 4, 3]\n"
               "  %d = layer_norm_backward_gamma %x, %dy {axis = 1, eps = 0.1}\n"
               "  return %d\n"
               "}\n",
               layer_norm_backward_gamma(x, dy, Layer));
}

TEST_F(OneGradient, NeedsOnlyDyForBatchNormsBeta) {
  const Value dy = in("dy");
  expect_alias("graph @g {\n"
               "  %dy = input \"dy\" : f64[2, 4, 3]\n"
               "  %d = batch_norm_inference_backward_beta %dy {axis = 1, eps = 0.1}\n"
               "  return %d\n"
               "}\n",
               batch_norm_inference_backward_beta(dy, Batch));
}

TEST_F(OneGradient, CountsItsOperands) {
  EXPECT_THROW((void)parse_graph("graph @g {\n"
                                 "  %x = input \"x\" : f64[2, 4]\n"
                                 "  %d = rms_norm_backward_beta %x, %x\n"
                                 "  return %d\n"
                                 "}\n"),
               UserError);
}

TEST_F(OneGradient, MakesUpGammaOfAnUnknownSize) {
  const Dim n = Dim::symbol("n");
  const Value x = graph_.input("x", f32({2, n}));
  const Value dy = graph_.input("dy", f32({2, n}));
  const Value d = layer_norm_backward_gamma(x, dy);
  EXPECT_EQ(d.type(), f32({n}));
}

TEST_F(OneGradient, LeavesABadAxisToTheOp) {
  const Value x = in("x");
  const Value dy = in("dy");
  try {
    (void)layer_norm_backward_gamma(x, dy, {.axis = 3});
    ADD_FAILURE() << "was accepted";
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostic().detail, "layer_norm_backward_axis");
  }
}

}  // namespace
}  // namespace ricci::testing::build_norm_test
