// The backward ops of the normalisations against central differences of Σ dy · norm(…), in f64.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/interp/interpreter.h"
#include "ricci/op/ops.h"

#include "support/compare.h"

namespace ricci::testing::rule_norm_gradient_test {
namespace {

std::vector<Tensor> run_op(const Op& op, const std::vector<Tensor>& operands) {
  Graph g("applied");
  std::vector<Value> values;
  Feeds feeds;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const std::string name = fmt::format("x{}", k);
    values.push_back(g.input(name, operands[k].type()));
    feeds.emplace(name, operands[k]);
  }
  g.set_outputs(g.add_node(op, values));
  return interpret(g, feeds);
}

// Σ dy · f(operands)
double pairing(const Op& forward, const std::vector<Tensor>& operands, const Tensor& dy) {
  const auto y = run_op(forward, operands)[0].numbers<double>();
  const auto weights = dy.numbers<double>();
  double total = 0;
  for (std::size_t i = 0; i < y.size(); ++i) total += y[i] * weights[i];
  return total;
}

std::vector<double> central_differences(const Op& forward, std::vector<Tensor> operands,
                                        std::size_t wrt, const Tensor& dy) {
  constexpr double Step = 1e-5;
  const Tensor at = operands[wrt];
  std::vector<double> numbers = at.numbers<double>();
  std::vector<double> out;
  for (double& v : numbers) {
    const double before = v;
    v = before + Step;
    operands[wrt] = Tensor::from_numbers<double>(at.type(), numbers);
    const double above = pairing(forward, operands, dy);
    v = before - Step;
    operands[wrt] = Tensor::from_numbers<double>(at.type(), numbers);
    const double below = pairing(forward, operands, dy);
    v = before;
    out.push_back((above - below) / (2 * Step));
  }
  return out;
}

struct GradientCase {
  std::string name;
  Op forward;
  Op backward;
  std::vector<std::size_t> saved;  ///< forward operands the backward op takes before dy
  Dims dims;
  std::size_t axis = 0;     ///< of the channels
  std::size_t vectors = 2;  ///< operands along the channels
};

template <class Forward, class Backward>
void add_axes(std::vector<GradientCase>& to, std::vector<std::size_t> saved, std::size_t vectors) {
  const std::vector<std::pair<Dims, std::int64_t>> shapes = {
      {{2, 3, 4}, 2}, {{2, 3, 4}, 1}, {{2, 3, 4}, 0}, {{3, 3}, 0}, {{3, 3}, 1}, {{5}, 0}};
  for (const auto& [dims, axis] : shapes) {
    to.push_back({.name = fmt::format("{}_rank{}_axis{}", Forward::info.name, dims.size(), axis),
                  .forward = Op(Forward{.axis = axis, .eps = 0.01}),
                  .backward = Op(Backward{.axis = axis, .eps = 0.01}),
                  .saved = saved,
                  .dims = dims,
                  .axis = static_cast<std::size_t>(axis),
                  .vectors = vectors});
    if (dims.size() == 2) to.back().name += "_square";
  }
}

std::vector<GradientCase> gradient_cases() {
  std::vector<GradientCase> out;
  add_axes<op::LayerNorm, op::LayerNormBackward>(out, {0, 1}, 2);
  add_axes<op::RmsNorm, op::RmsNormBackward>(out, {0, 1}, 2);  // [NM-08]
  add_axes<op::BatchNormInference, op::BatchNormInferenceBackward>(out, {0, 1, 3, 4}, 4);
  const std::vector<std::pair<Dims, std::int64_t>> groups = {
      {{2, 4, 3}, 1}, {{2, 4, 3}, 2}, {{2, 4, 2, 2}, 2}, {{3, 3, 3}, 3}, {{2, 6}, 2}};
  for (const auto& [dims, count] : groups) {
    out.push_back({.name = fmt::format("group_norm_rank{}_size{}_groups{}", dims.size(),
                                       product(dims).to_string(), count),
                   .forward = Op(op::GroupNorm{.num_groups = count, .eps = 0.01}),
                   .backward = Op(op::GroupNormBackward{.num_groups = count, .eps = 0.01}),
                   .saved = {0, 1},
                   .dims = dims,
                   .axis = 1});
  }
  return out;
}

class NormGradient : public ::testing::TestWithParam<GradientCase> {};

TEST_P(NormGradient, MatchesCentralDifferences) {
  const GradientCase& c = GetParam();
  const Type along = f64({c.dims[c.axis]});
  std::vector<Tensor> operands = {random_tensor(1, f64(c.dims))};
  for (std::size_t i = 0; i < c.vectors; ++i) {
    // The last of batch norm's vectors is a variance.
    operands.push_back(i == 3 ? random_tensor(5, along, 0.5, 2) : random_tensor(2 + i, along));
  }
  const Tensor dy = random_tensor(9, f64(c.dims));
  std::vector<Tensor> saved;
  for (const std::size_t k : c.saved) saved.push_back(operands[k]);
  saved.push_back(dy);
  const std::vector<Tensor> gradients = run_op(c.backward, saved);
  ASSERT_EQ(gradients.size(), operands.size());
  for (std::size_t k = 0; k < operands.size(); ++k) {
    ASSERT_EQ(gradients[k].type(), operands[k].type());
    const auto expected = central_differences(c.forward, operands, k, dy);
    const auto actual = gradients[k].numbers<double>();
    double largest = 0;
    for (const double v : expected) largest = std::max(largest, std::fabs(v));
    for (std::size_t i = 0; i < actual.size(); ++i) {
      EXPECT_NEAR(actual[i], expected[i], 1e-6 * largest) << "operand " << k << " element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NormGradient, ::testing::ValuesIn(gradient_cases()),
                         [](const auto& c) { return c.param.name; });

}  // namespace
}  // namespace ricci::testing::rule_norm_gradient_test
