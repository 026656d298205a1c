// Reductions and running totals by name, from builders and from text.
#include <gtest/gtest.h>

#include "ricci/build/reduce.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"

#include "support/compare.h"

namespace ricci::build_reduce_test {
namespace {

using testing::close;
using testing::random_tensor;
using testing::same;

TEST(ReduceBuilders, NoAxesMeansAll) {
  Graph g;
  const Value x = g.input("x", f32({2, 3}));
  EXPECT_EQ(reduce_max(x).type(), f32());
  EXPECT_EQ(reduce_min(x, {0}).type(), f32({3}));
  EXPECT_EQ(reduce_prod(x, {1}, true).type(), f32({2, 1}));
  EXPECT_EQ(log_sum_exp(x, {-1}).type(), f32({2}));
  const Value b = g.input("b", boolean({2, 3}));
  EXPECT_EQ(reduce_any(b).type(), boolean());
  EXPECT_EQ(reduce_all(b, {0, 1}, true).type(), boolean({1, 1}));
}

TEST(ReduceBuilders, LogSumExpIsWhatItsNameSays) {
  const Tensor x = random_tensor(1, f64({3, 5}));
  Graph g;
  const Value in = g.input("x", x.type());
  g.set_outputs({log_sum_exp(in, {1}), log(sum(exp(in), {1}))});
  const auto out = interpret(g, {{"x", x}});
  EXPECT_TRUE(close(out[0], out[1]));
}

TEST(ReduceBuilders, TheParserKnowsThem) {
  const Graph g = parse_graph("graph @g {\n"
                              "  %x = input \"x\" : f32[2, 3]\n"
                              "  %a = reduce_max %x {axes = [1], keep_dim = true}\n"
                              "  %b = log_sum_exp %x\n"
                              "  %c = cumprod %x {axis = 0, exclusive = true}\n"
                              "  return %a, %b, %c\n"
                              "}\n");
  EXPECT_EQ(g.type(g.outputs()[0]), f32({2, 1}));
  EXPECT_EQ(g.type(g.outputs()[1]), f32());
  EXPECT_NE(print(g).find("cumprod %x {axis = 0, exclusive = true}"), std::string::npos)
      << print(g);
  EXPECT_TRUE(parse_graph(print(g)) == g);
}

// The transpose pairs: ⟨cumsum x, dy⟩ = ⟨x, cumsum_backward dy⟩.
TEST(ReduceBuilders, CumsumBackwardIsTheTransposeOfCumsum) {
  for (const bool exclusive : {false, true}) {
    Graph g;
    const Value x = g.input("x", f64({3, 4}));
    const Value dy = g.input("dy", f64({3, 4}));
    const Value y = cumsum(x, {.axis = 0, .exclusive = exclusive});
    const Value dx = cumsum_backward(dy, {.axis = 0, .exclusive = exclusive});
    g.set_outputs({sum(y * dy), sum(x * dx)});
    const auto out =
        interpret(g, {{"x", random_tensor(2, x.type())}, {"dy", random_tensor(3, dy.type())}});
    EXPECT_TRUE(close(out[0], out[1]));
  }
}

TEST(ReduceBuilders, CummaxEndsInTheMaximum) {
  const Tensor x = random_tensor(4, i32({4, 9}), -50, 50);
  Graph g;
  const Value in = g.input("x", x.type());
  g.set_outputs({narrow(cummax(in), {.axis = 1, .start = 8, .len = 1}), reduce_max(in, {1}, true),
                 narrow(cummin(in), {.axis = 1, .start = 8, .len = 1}), reduce_min(in, {1}, true)});
  const auto out = interpret(g, {{"x", x}});
  EXPECT_TRUE(same(out[0], out[1]));
  EXPECT_TRUE(same(out[2], out[3]));
}

}  // namespace
}  // namespace ricci::build_reduce_test
