// Sums of whole tensors, which are cut into rows: the cut must suit the tensor's own axes.
#include <complex>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/runtime/compiled_graph.h"

namespace ricci::testing::long_sums_test {
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

// A sum down the columns, added up one row after the other, is 2000.03: each addition loses the
// same part of a tenth.
TEST(LongSums, OfF32KeepTheirDigits) {
  for (const DType dtype : {DType::F32, DType::C64}) {
    Graph g("columns");
    const Value x = g.input("x", Type{dtype, {20000, 11}});
    g.set_outputs({reduce(x, {.op = ReduceKind::Sum, .axes = {0}})});
    const Feeds feeds = {{"x", Tensor::splat(x.type(), 0.1)}};
    const std::complex<double> expected = 20000.0 * static_cast<double>(0.1F);
    for (const std::complex<double> total :
         compile(g).run(feeds)[0].numbers<std::complex<double>>()) {
      EXPECT_NEAR(total.real(), expected.real(), 4e-6 * expected.real()) << name(dtype);
      EXPECT_EQ(total.imag(), 0) << name(dtype);
    }
  }
}

}  // namespace
}  // namespace ricci::testing::long_sums_test
