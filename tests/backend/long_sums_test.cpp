// Sums of whole tensors, which are cut into rows: the cut must suit the tensor's own axes. And what
// sums and products are kept in.
#include <algorithm>
#include <complex>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/runtime/compiled_graph.h"

#include "support/every_device.h"

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

// Factors whose first few are out of the dtype's range, or whose last few, while all together are
// 1: whichever are multiplied first, along rows, down columns and in parts.
TEST(LongProducts, DoNotOverflowOnTheWay) {
  for (const DType dtype : {DType::F16, DType::BF16, DType::F32, DType::C64}) {
    const double large = dtype == DType::F16 ? 0x1p12 : 0x1p90;
    for (const std::int64_t axis : {0, 1}) {
      for (const StaticDims& dims : {StaticDims{3, 24}, StaticDims{24, 130}, StaticDims{20, 24}}) {
        Graph g("products");
        const Value x = g.input("x", Type{dtype, Dims(dims.begin(), dims.end())});
        g.set_outputs({reduce(x, {.op = ReduceKind::Prod, .axes = {axis}})});
        std::vector<double> numbers;
        for (std::int64_t row = 0; row < dims[0]; ++row) {
          for (std::int64_t column = 0; column < dims[1]; ++column) {
            const std::int64_t along = axis == 0 ? row : column;
            const std::int64_t size = dims[static_cast<std::size_t>(axis)];
            const std::int64_t some = std::min<std::int64_t>(8, size / 2);
            const double first = along < some ? large : 1;
            numbers.push_back(along < size - some ? first : 1 / large);
          }
        }
        const Feeds feeds = {{"x", Tensor::from_numbers<double>(x.type(), numbers)}};
        for (const std::string& device : usable_devices()) {
          for (const bool fuse : {true, false}) {
            const Tensor made = compile(g, Device::named(device), {.fuse = fuse}).run(feeds)[0];
            for (const std::complex<double> p : made.numbers<std::complex<double>>()) {
              EXPECT_EQ(p, 1.0) << name(dtype) << " on " << device << ", axis " << axis;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ricci::testing::long_sums_test
