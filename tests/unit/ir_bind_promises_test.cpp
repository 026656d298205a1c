// Promises about sizes that become known late, and about reductions over any axes.
#include <algorithm>
#include <variant>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/interp/interpreter.h"

#include "support/compare.h"

namespace ricci::testing::ir_bind_promises_test {
namespace {

// [dynamic-correct] The last two rows, whatever their number: a start that is out of range is an
// error, not another row.
TEST(BoundSizes, NeverMoveWhereASliceStarts) {
  Graph g("tail");
  const Dim n = Dim::symbol("n");
  const Value x = g.input("x", f64({n}));
  g.set_outputs({narrow(x, {.axis = 0, .start = n - Dim(2), .len = 2})});
  const auto tail_of = [&](std::initializer_list<double> rows) {
    const auto count = static_cast<std::int64_t>(rows.size());
    const std::span<const double> numbers(rows.begin(), rows.size());
    return interpret(g, {{"x", Tensor::of<double>({count}, numbers)}})[0];
  };
  EXPECT_TRUE(same(tail_of({1, 2, 3, 4}), Tensor::of<double>({2}, {3, 4})));
  EXPECT_TRUE(same(tail_of({1, 2}), Tensor::of<double>({2}, {1, 2})));
  EXPECT_THROW((void)tail_of({1}), UserError);
  EXPECT_THROW((void)g.bind({{"n", 1}}), UserError);
}

// [reduce-native] One kernel, and nothing is transposed for it.
TEST(Reductions, OverAnyAxesAreOneKernel) {
  for (const Axes& axes : {Axes{0, 2}, Axes{1}, Axes{0, 1, 2}, Axes{1, 2}}) {
    Graph g("sums");
    const Value x = g.input("x", f32({4, 5, 6}));
    g.set_outputs({sum(x, axes)});
    const Program program = make_program(g);
    EXPECT_EQ(program.kernels.size(), 1U);
    EXPECT_TRUE(std::ranges::all_of(program.steps, [](const Step& step) {
      return std::holds_alternative<KernelStep>(step.what);
    }));
  }
}

}  // namespace
}  // namespace ricci::testing::ir_bind_promises_test
