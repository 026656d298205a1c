// Running totals down the rows of an array: loop kernels that keep a total for every column, fused
// with what makes their operand and what reads them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"

#include "backend/agreement.h"
#include "support/compare.h"

namespace ricci::testing::running_totals_test {
namespace {

constexpr std::array TotalKinds = {CumulativeKind::Cumsum, CumulativeKind::Cumprod,
                                   CumulativeKind::Cummax, CumulativeKind::Cummin};

TEST(BackendRunningTotals, OfEveryKindAndShape) {
  for (const DType dtype :
       {DType::F32, DType::F64, DType::BF16, DType::I8, DType::I64, DType::U32}) {
    for (const Dims& dims :
         {Dims{7, 5}, Dims{3, 4, 6}, Dims{20, 1024}, Dims{5, 67}, Dims{9, 3, 2}}) {
      Graph g(fmt::format("totals_{}", name(dtype)));
      const Value x = g.input("x", {dtype, dims});
      std::vector<Value> out;
      for (const CumulativeKind kind : TotalKinds) {
        for (const bool exclusive : {false, true}) {
          out.push_back(cumulative(kind, x, {.axis = 0, .exclusive = exclusive}));
          out.push_back(cumulative(kind, x, {.axis = -2, .exclusive = exclusive}));
        }
      }
      if (is_float(dtype)) {
        out.push_back(cumsum_backward(x, {.axis = 0}));
        out.push_back(cumsum_backward(x, {.axis = -2, .exclusive = true}));
      }
      g.set_outputs(out);
      expect_agreement_everywhere(g, {{"x", random_tensor(3, {dtype, dims}, 0.5, 1.5)}});
    }
  }
}

TEST(BackendRunningTotals, FuseWithTheirNeighbours) {
  for (const bool backward : {false, true}) {
    Graph g("fused");
    const Value x = g.input("x", {DType::F32, {30, 2048}});
    const Value row = g.input("row", {DType::F32, {2048}});
    const Value made = exp(mul(x, row));
    const Value total = backward ? cumsum_backward(made, {.axis = 0}) : cumsum(made, {.axis = 0});
    const Value scaled = div(total, add(made, row));
    g.set_outputs({scaled});
    expect_agreement_everywhere(
        g, {{"x", random_tensor(3, x.type())}, {"row", random_tensor(4, row.type(), 1, 2)}});
    const Program program = make_program(g);
    EXPECT_EQ(program.kernels.size(), 1U) << to_string(program);
    EXPECT_GE(program.kernels[0].kept_rows(), 4);  // parts of the columns, for several threads
  }
}

// Columns are cut into parts that keep vectors busy, or stay whole.
TEST(BackendRunningTotals, PartsOfColumnsAreNotShort) {
  for (const auto& [dims, axis] : {std::pair{Dims{8, 6, 32001}, 1}, std::pair{Dims{6, 65, 2062}, 0},
                                   std::pair{Dims{6, 128, 1031}, 0}}) {
    Graph g("parts");
    const Value x = g.input("x", f32(dims));
    g.set_outputs({cumsum(x, {.axis = axis})});
    const Program program = make_program(g);
    for (const loop::Kernel& k : program.kernels) EXPECT_GE(k.row_elements(), 64);
    expect_agreement_everywhere(g, {{"x", random_tensor(3, x.type())}});
  }
}

// A prime number of columns under one row has no parts: a call, unless the device takes longer
// rows.
TEST(BackendRunningTotals, TheDeviceSaysHowLongRowsAre) {
  class LongParts final : public schedule::Target {
   public:
    explicit LongParts(std::int64_t part) { shape_.running_part = part; }
    [[nodiscard]] bool claims(const loop::Call& /*call*/,
                              std::span<const Type> /*operands*/) const override {
      return true;
    }
    [[nodiscard]] const schedule::KernelShape& kernel_shape() const override { return shape_; }

   private:
    schedule::KernelShape shape_;
  };
  Graph g("columns");
  g.set_outputs({cumsum(g.input("x", f32({7, 1031})), {.axis = 0})});
  for (const auto& [part, kernels] : {std::pair{512, 0U}, {1030, 0U}, {1031, 1U}, {4096, 1U}}) {
    const LongParts target(part);
    EXPECT_EQ(make_program(g, {.target = &target}).kernels.size(), kernels) << part;
  }
}

// Totals both ways, and sums over the same rows, do not walk together.
TEST(BackendRunningTotals, KeepApartWhatWalksAnotherWay) {
  Graph g("apart");
  const Value x = g.input("x", {DType::F32, {30, 65}});
  const Value down = cumsum(x, {.axis = 0});
  const Value up = cumsum_backward(x, {.axis = 0});
  g.set_outputs({add(down, up), sum(x, {0}), sum(down, {0}), sum(up, {1}),
                 sub(down, reduce_max(down, {1}, true)), cumsum(down, {.axis = 0}),
                 cumprod(up, {.axis = 0, .exclusive = true})});
  expect_agreement_everywhere(g, {{"x", random_tensor(3, x.type(), 0.9, 1.1)}});
}

}  // namespace
}  // namespace ricci::testing::running_totals_test
