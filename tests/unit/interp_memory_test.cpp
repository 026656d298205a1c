// What a run of the interpreter needs is known, and refused, before anything is allocated.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"

#include "interp/memory.h"

namespace ricci::interp_memory_test {
namespace {

TEST(InterpMemory, CountsWhatIsAliveAtOnce) {
  Graph chain("chain");
  Value v = chain.input("x", f32({1000}));
  for (int i = 0; i < 50; ++i) v = sin(v);
  chain.set_outputs({v});
  // A result and the operand behind it, 4 bytes each, and both as f64.
  EXPECT_EQ(peak_memory(chain).bytes, 1000 * (4 + 4 + 8 + 8));

  Graph kept("kept");
  v = kept.input("x", f32({1000}));
  std::vector<Value> all;
  for (int i = 0; i < 50; ++i) all.push_back(v = sin(v));
  kept.set_outputs(all);
  EXPECT_EQ(peak_memory(kept).bytes, 1000 * (50 * 4 + 8 + 8));
  EXPECT_EQ(peak_memory(kept).node, 50U);
}

TEST(InterpMemory, BodiesCountWhereTheyRun) {
  const Graph g = parse_graph(R"(graph @g {
    %x = input "x" : f32[2]
    %y = scan %x {length = 3} body {
      %c = input "c" : f32[2]
      %w = expand %c {target_shape = [1000000, 2]}
      %s = reduce %w {op = sum, axes = [0]}
      return %s
    }
    return %y })");
  EXPECT_GT(peak_memory(g).bytes, 8'000'000);
  EXPECT_EQ(g.node(peak_memory(g).node).op.mnemonic(), "scan");
}

TEST(InterpMemory, SumsDoNotWrap) {
  Graph g("g");
  const Value x =
      g.constant(Tensor::splat(f64({std::int64_t{1} << 47, std::int64_t{1} << 11}), 1.0));
  std::vector<Value> all;
  for (int i = 0; i < 8; ++i) all.push_back(all.empty() ? sin(x) : sin(all.back()));
  g.set_outputs(all);
  EXPECT_EQ(peak_memory(g).bytes, std::numeric_limits<std::int64_t>::max());
  EXPECT_THROW((void)interpret(g, {}), UserError);
}

TEST(InterpMemory, TooMuchIsRefusedFirst) {
  Graph g("huge");
  Value x = g.input("x", f32({"n"}));
  g.set_outputs({matmul(reshape_to(x, {"n", 1}), reshape_to(x, {1, "n"}))});
  const Tensor fed = Tensor::splat(f32({10'000'000}), 1.0);  // one element; the product has 400 TB
  try {
    (void)interpret(g, {{"x", fed}});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostic().full_code(), "out_of_memory.run");
    EXPECT_NE(std::string(e.what()).find("'matmul'"), std::string::npos) << e.what();
  }
  const Feeds small = {{"x", Tensor::splat(f32({10}), 1.0)}};
  EXPECT_EQ(interpret(g, small)[0].numel(), 100);
  EXPECT_THROW((void)interpret(g, small, {.memory_limit = 100}), UserError);
}

}  // namespace
}  // namespace ricci::interp_memory_test
