// Builders that are compositions, on small floats: as in f64 on the same numbers, rounded once.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/build/elementwise.h"
#include "ricci/build/loss.h"
#include "ricci/build/norm.h"
#include "ricci/interp/interpreter.h"

namespace ricci::testing::build_small_floats_test {
namespace {

using Numbers = std::vector<double>;

// The builder on small floats against itself in f64, on the same numbers: rounded once, if at all.
template <class Build>
void expect_rounded_once(DType dtype, const std::vector<std::pair<Dims, Numbers>>& operands,
                         Build&& build) {
  const auto results = [&](DType wide) {
    Graph graph("small");
    Feeds feeds;
    std::vector<Value> in;
    for (const auto& [dims, numbers] : operands) {
      const std::string name = "in" + std::to_string(in.size());
      const Tensor small = Tensor::from_numbers<double>(Type{dtype, dims}, numbers);
      const Type type{wide, dims};
      in.push_back(graph.input(name, type));
      feeds.emplace(name, Tensor::from_numbers<double>(type, small.numbers<double>()));
    }
    graph.set_outputs(build(in));
    return interpret(graph, feeds);
  };
  const std::vector<Tensor> expected = results(DType::F64);
  const std::vector<Tensor> found = results(dtype);
  const double unit = dtype == DType::F16 ? 0x1p-10 : 0x1p-7;
  for (std::size_t r = 0; r < expected.size(); ++r) {
    EXPECT_EQ(found[r].dtype(), dtype);
    const Numbers want = expected[r].numbers<double>();
    const Numbers have = found[r].numbers<double>();
    for (std::size_t i = 0; i < want.size(); ++i) {
      EXPECT_NEAR(have[i], want[i], unit * std::max(std::abs(want[i]), unit))
          << name(dtype) << " result " << r << ", element " << i;
    }
  }
}

// Counts beyond 65504, squares beyond it, and more terms than bf16 has digits for.
TEST(BuildSmallFloats, AreRoundedOnce) {
  constexpr std::int64_t Rows = 70000;
  Numbers column;
  for (std::int64_t i = 0; i < Rows; ++i) column.push_back(static_cast<double>(i % 601) - 250);
  const Numbers one{1};
  const Numbers half{0.5};
  Numbers logits;
  Numbers targets;
  for (int i = 0; i < 3000; ++i) {
    logits.push_back(1 + i % 7 * 0.125);
    targets.push_back(i % 3 == 0 ? 0.001953125 : 0);
  }
  for (const DType dtype : {DType::F16, DType::BF16}) {
    expect_rounded_once(
        dtype, {{{Rows, 1}, column}, {{1}, one}, {{1}, half}, {{1}, one}, {{1}, half}},
        [](const std::vector<Value>& v) {
          const BatchNormResult r = batch_norm_training(v[0], v[1], v[2], v[3], v[4]);
          return std::vector{r.out, r.mean, r.running_mean, sqrt(r.running_var)};
        });
    expect_rounded_once(dtype, {{{1, 3000}, logits}, {{1, 3000}, targets}},
                        [](const std::vector<Value>& v) {
                          return std::vector{softmax_cross_entropy_dense(v[0], v[1])};
                        });
  }
}

}  // namespace
}  // namespace ricci::testing::build_small_floats_test
