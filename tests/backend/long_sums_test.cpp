// Sums of whole tensors, which are cut into rows: the cut must suit the tensor's own axes.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/runtime/compiled_graph.h"

namespace ricci::testing {
namespace {

TEST(LongSums, AreCutWhereTheAxesAllow) {
  const std::vector<StaticDims> shapes = {
      {128, 384},     // 16384 divides the whole, but straddles rows of 384
      {3, 7, 1000},   // the same with three axes
      {2, 20011},     // an axis that is a prime: there is no cut
      {131, 257},     // only whole rows
      {1, 40000, 1},  // one axis in truth
  };
  for (const StaticDims& dims : shapes) {
    Graph g("sum");
    const Value x = g.input("x", f64(Dims(dims.begin(), dims.end())));
    g.set_outputs({sum(x * x)});
    std::vector<double> numbers(static_cast<std::size_t>(Tensor::zeros(x.type()).numel()));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i % 17);
    const Feeds feeds = {{"x", Tensor::from_numbers<double>(x.type(), numbers)}};
    EXPECT_EQ(compile(g).run(feeds)[0].item(), interpret(g, feeds)[0].item())
        << x.type().to_string();
  }
}

}  // namespace
}  // namespace ricci::testing
