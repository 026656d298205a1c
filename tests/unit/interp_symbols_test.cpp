// Symbolic sizes at run time: where they are taken from, and what is said when they do not fit.
// Also where faults of a run are placed.
#include <gtest/gtest.h>

#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"

namespace ricci::interp_symbols_test {
namespace {

Graph graph_of(const std::string& body) {
  return std::move(parse("graph @g {\n" + body + "\n}", {.file = "g.ric"}).front());
}

std::string fault_of(const Graph& graph, const Feeds& feeds, const InterpretOptions& options = {}) {
  try {
    (void)interpret(graph, feeds, options);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no fault";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Tensor zeros(StaticDims dims) { return Tensor::zeros({DType::F32, {dims.begin(), dims.end()}}); }

TEST(InterpretSymbols, AttributesAreBoundByTheOptions) {
  const Graph size = graph_of("%n = dim_size {dim = n*n} return %n");
  EXPECT_EQ(interpret(size, {}, {.symbols = {{"n", 3}}})[0].numbers<std::int64_t>()[0], 9);
  const Graph wide = graph_of("%x = input \"x\" : f32[] %y = expand %x {target_shape = [m]} "
                              "return %y");
  EXPECT_EQ(interpret(wide, {{"x", zeros({})}}, {.symbols = {{"m", 5}}})[0].dims(),
            (StaticDims{5}));
}

TEST(InterpretSymbols, LinearSizesOfFeedsAreSolved) {
  const Graph g = graph_of("%x = input \"x\" : f32[2*n, b*s] %y = input \"y\" : f32[b - 3] "
                           "%n = dim_size {dim = n} %s = dim_size {dim = s} return %n, %s");
  const auto out = interpret(g, {{"x", zeros({8, 30})}, {"y", zeros({2})}});
  EXPECT_EQ(out[0].numbers<std::int64_t>()[0], 4);
  EXPECT_EQ(out[1].numbers<std::int64_t>()[0], 6) << "b is 5, from the other feed";
}

TEST(InterpretSymbols, SizesThatDoNotFitAreRefused) {
  const Graph g = graph_of("%x = input \"x\" : f32[2*n] return %x");
  EXPECT_TRUE(contains(fault_of(g, {{"x", zeros({7})}}), "no size 'n' gives"));
  const std::string other = fault_of(g, {{"x", zeros({8})}}, {.symbols = {{"n", 3}}});
  EXPECT_TRUE(contains(other, "'x' makes the size '2*n' 8, but the sizes given made it 6"))
      << other;
  EXPECT_TRUE(contains(fault_of(g, {{"x", zeros({8})}}, {.symbols = {{"m", 3}}}),
                       "no dimension is named 'm'"));
  EXPECT_TRUE(contains(fault_of(g, {{"x", zeros({8})}}, {.symbols = {{"n", -4}}}), "-4"));
  const Graph less = graph_of("%x = input \"x\" : f32[n + 3] return %x");
  EXPECT_TRUE(contains(fault_of(less, {{"x", zeros({2})}}), "no size 'n' gives"));
}

TEST(InterpretSymbols, AnUnboundSymbolSaysHowToBindIt) {
  const Graph square = graph_of("%x = input \"x\" : f32[n*n] return %x");
  const std::string fault = fault_of(square, {{"x", zeros({9})}});
  EXPECT_TRUE(contains(fault, "error[needs_static_dim]")) << fault;
  EXPECT_TRUE(contains(fault, "--size n=3")) << fault;
  EXPECT_TRUE(contains(fault, "InterpretOptions::symbols")) << fault;
  EXPECT_EQ(interpret(square, {{"x", zeros({9})}}, {.symbols = {{"n", 3}}})[0].dims(),
            (StaticDims{9}));
}

TEST(InterpretFaults, SizesNobodyCanCountAreRefusedWhereTheyAreMade) {
  try {
    (void)graph_of("%c = constant splat 1.0 : f32[1]\n"
                   "%x = expand %c {target_shape = [4000000000, 4000000000]}\nreturn %x");
    FAIL() << "accepted";
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostic().full_code(), "shape.expand_size");
    EXPECT_EQ(e.diagnostic().where.line, 3U);
  }
}

TEST(InterpretFaults, TooLittleMemoryNamesTheOp) {
  const Graph g = graph_of("%c = constant splat 1.0 : f32[1]\n"
                           "%x = expand %c {target_shape = [200000000000000]}\nreturn %x");
  const std::string fault = fault_of(g, {});
  EXPECT_TRUE(contains(fault, "error[out_of_memory.run]")) << fault;
  EXPECT_TRUE(contains(fault, "'expand'")) << fault;
  EXPECT_TRUE(contains(fault, "f32[200000000000000]")) << fault;
  EXPECT_TRUE(contains(fault, "g.ric:3")) << fault;
}

// Each size is known only once the next one is.
TEST(InterpretSymbols, LongChainsOfSizesAreSolved) {
  constexpr int Length = 20'000;
  Graph g("g");
  Feeds feeds;
  for (int i = 0; i < Length; ++i) {
    const std::string name = "x" + std::to_string(i);
    Dim size = Dim::symbol("n" + std::to_string(i));
    if (i + 1 < Length) size = size + Dim::symbol("n" + std::to_string(i + 1));
    g.input(name, f32({size}));
    feeds.emplace(name, Tensor::splat(f32({i + 1 < Length ? 2 : 1}), 0.0));
  }
  const SymbolBindings found = bindings_from_feeds(g, feeds);
  EXPECT_EQ(found.size(), std::size_t{Length});
  EXPECT_EQ(found.at("n0"), 1);
}

}  // namespace
}  // namespace ricci::interp_symbols_test
