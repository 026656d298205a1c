#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"

namespace ricci::ir_text_test {
namespace {

std::string reprint(const std::string& text) { return print(parse_graph(text)); }

std::string error_of(const std::string& text) {
  try {
    (void)parse(text, {.file = "net.ric"});
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Text, ReadsTheExampleOfTheLanguagePage) {
  const Graph g = parse_graph(R"(
graph @layer {
  // comments and missing types are fine
  %x = input "x" : f32[32, 784]
  %w = param "w" : f32[784, 10]
  %h = matmul %x, %w
  %t = tanh %h
  %m = reduce %t {op = mean, axes = [0, -1]}
  return %m
})");
  EXPECT_EQ(print(g), R"(graph @layer {
  %x = input "x" : f32[32, 784]
  %w = param "w" : f32[784, 10]
  %h = matmul %x, %w : f32[32, 10]
  %t = tanh %h : f32[32, 10]
  %m = reduce %t {op = mean, axes = [0, 1]} : f32[]
  return %m
}
)");
  verify(g);
}

TEST(Text, AnonymousValuesAreNumbered) {
  EXPECT_EQ(reprint("graph @g { %x = input \"x\" : f32[] %7 = neg %x %9 = neg %7 return %9 }"),
            R"(graph @g {
  %x = input "x" : f32[]
  %0 = neg %x : f32[]
  %1 = neg %0 : f32[]
  return %1
}
)");
}

TEST(Text, RepeatedNamesAreMadeUnique) {
  Graph g("g");
  const Value x = g.input("x", f32());
  g.set_outputs({neg(neg(x).named("x")).named("x_2")});
  const std::string text = print(g);
  EXPECT_EQ(print(parse_graph(text)), text);
  EXPECT_EQ(parse_graph(text), g);
}

TEST(Text, BodiesNestAndPrintAfterTheAttributes) {
  const std::string text = R"(graph @loop {
  %h0 = input "h0" : f32[3]
  %xs = input "xs" : f32[4, 3]
  %h = scan %h0, %xs {length = 4, num_xs = 1} body {
    %c = input "c" : f32[3]
    %x = input "x" : f32[3]
    %next = add %c, %x : f32[3]
    return %next
  } : f32[3]
  return %h
}
)";
  EXPECT_EQ(reprint(text), text);
}

TEST(Text, ConstantsInEveryForm) {
  const std::string text = R"(graph @constants {
  %a = constant splat 0.5 : f32[4, 4]
  %b = constant [[1, 2, 3], [4, 5, 6]] : i32[2, 3]
  %c = constant 2.5 : f64[]
  %d = constant [true, false] : bool[2]
  %e = constant [(1.0, 2.0), (0.5, -0.0)] : c64[2]
  %f = constant [1.0, inf, -inf, nan] : f16[4]
  %g = constant [nan(0x7fc00001), 1e-45] : f32[2]
  %h = constant splat 0 : i64[0, 5]
  %i = constant hex "000102030405060708090a0b0c0d0e0f1011" : u8[18]
  return %a, %b, %c, %d, %e, %f, %g, %h, %i
}
)";
  EXPECT_EQ(reprint(text), text);
}

TEST(Text, FloatsReadBackToTheSameBits) {
  for (const double v : {0.1, 1.0 / 3, 1e300, 5e-324, -0.0, 3.0e-8}) {
    Graph g("g");
    g.set_outputs({g.constant(Tensor::splat(f64({2}), v)), g.constant(Tensor::splat(f32(), v)),
                   g.constant(Tensor::splat(bf16(), v))});
    EXPECT_EQ(parse_graph(print(g)), g) << print(g);
  }
}

TEST(Text, SymbolicDimensionsArePolynomials) {
  const std::string text = R"(graph @symbols {
  %x = input "x" : f32[b, s, 8]
  %y = reshape %x {new_shape = [b*s, 8]} : f32[b*s, 8]
  %z = narrow %y {axis = 0, start = 1, len = b*s - 1} : f32[b*s - 1, 8]
  return %z
}
)";
  EXPECT_EQ(reprint(text), text);
}

TEST(Text, UnwantedResultsPrintAsUnderscores) {
  const std::string text = R"(graph @attend {
  %q = input "q" : f32[3, 4]
  %y = attention %q, %q, %q {num_heads = 1, head_dim = 4} : f32[3, 4]
  _, %lse = attention %q, %q, %q {num_heads = 1, head_dim = 4} : f32[3, 4], f32[1, 1, 3]
  return %y, %lse
}
)";
  EXPECT_EQ(reprint(text), text);
}

TEST(Text, AFileHoldsSeveralGraphsAndAVersion) {
  const std::string text = "ricci 1\ngraph @a { return } graph @b { return }";
  const auto graphs = parse(text);
  ASSERT_EQ(graphs.size(), 2U);
  EXPECT_EQ(graphs[1].name(), "b");
  EXPECT_EQ(parse(print_file(graphs)).size(), 2U);
}

TEST(Text, LocationsAreShownOnRequest) {
  const Graph g =
      parse_graph("graph @g {\n  %x = input \"x\" : f32[]\n  return %x\n}", {.file = "net.ric"});
  EXPECT_NE(print(g, {.locations = true}).find("// net.ric:2:3"), std::string::npos);
  EXPECT_EQ(parse_graph(print(g, {.locations = true})), g);
}

TEST(Text, AliasesPrintAsTheirOp) {
  EXPECT_NE(reprint("graph @g { %x = input \"x\" : f32[] %y = detach %x return %y }")
                .find("%y = stop_gradient %x : f32[]"),
            std::string::npos);
}

TEST(Text, ErrorsShowLineColumnAndHelp) {
  EXPECT_EQ(error_of("graph @g {\n  %x = input \"x\" : f32[2]\n  %y = tahn %x\n  return %y\n}"),
            "error[parse]: there is no op 'tahn'\n"
            "  --> net.ric:3:8    %y = tahn %x\n"
            "  help: did you mean 'tanh'?");
  EXPECT_EQ(error_of("graph @g {\n  %x = input \"x\" : f32[2]\n  %y = add %x, %z\n  return %y\n}"),
            "error[parse]: %z is not defined before this line\n"
            "  --> net.ric:3:16    %y = add %x, %z");
}

TEST(Text, ConstraintErrorsPointAtTheStatement) {
  const std::string message =
      error_of("graph @g {\n  %x = input \"x\" : f32[2, 3]\n  %y = matmul %x, %x\n  return %y\n}");
  EXPECT_TRUE(message.starts_with("error[shape.matmul_c2]: inner sizes differ")) << message;
  EXPECT_NE(message.find("--> net.ric:3"), std::string::npos) << message;
  EXPECT_NE(message.find("a of 'matmul' is %x : f32[2, 3], defined at net.ric:2:3"),
            std::string::npos)
      << message;
}

TEST(Text, DeclaredTypesMustAgree) {
  EXPECT_NE(error_of("graph @g { %x = input \"x\" : f32[2] %y = neg %x : f32[3] return %y }")
                .find("error[shape.declared]: 'neg' gives f32[2], but f32[3] is declared"),
            std::string::npos);
}

TEST(Text, WhatLooksAlmostRightIsExplained) {
  const std::string head = "graph @g { %x = input \"x\" : f32[2] ";
  EXPECT_NE(error_of(head + "%y = tanh(%x) return %y }").find("without parentheses"),
            std::string::npos);
  EXPECT_NE(error_of(head + "%y = tanh %x {kind = exp} return %y }").find("given twice"),
            std::string::npos);
  EXPECT_NE(
      error_of(head + "%c = constant [1.0, [2.0]] : f32[2, 1] return %c }").find("differ in depth"),
      std::string::npos);
  EXPECT_NE(error_of(head + "%y = sum %x return %y }").find("did you mean 'reduce_sum'?"),
            std::string::npos);
  EXPECT_NE(error_of("graph @g { return } graph @g { return }").find("already has a graph"),
            std::string::npos);
  EXPECT_NE(error_of("graph @g { %x = input \"x\" : f32[inf] return }").find("cannot name"),
            std::string::npos);
  EXPECT_NE(error_of(head + "%h = scan %x {length = 2} body { %c = input \"c\" : f32[2] "
                            "%n = add %c, %x return %n } return %h }")
                .find("belongs to the graph around this body"),
            std::string::npos);
}

TEST(Text, TheSmallestIntegerReadsBack) {
  Graph g("g");
  g.set_outputs({rng_bits(g, {.shape = {2}, .key = std::numeric_limits<std::int64_t>::min()})});
  EXPECT_EQ(parse_graph(print(g)), g);
}

TEST(Text, KeysThatAreNotGivenDifferFromThoseThatAre) {
  const Graph g = parse_graph("graph @g { %a = rng_bits {shape = [2]} %b = rng_bits {shape = [2], "
                              "key = 1} return %a, %b }");
  EXPECT_NE(print(g).find("key = 2"), std::string::npos) << print(g);
}

// Counting on from the largest key would overflow: it is said that there is none left.
TEST(Text, KeysAtTheTopOfTheirRange) {
  const auto text = [](const std::string& key) {
    return "graph @g { %a = rng_bits {shape = [2], key = " + key +
           "} %b = rng_bits {shape = [2]} %c = rng_bits {shape = [2]} return %a, %b, %c }";
  };
  EXPECT_NE(error_of(text("9223372036854775806")).find("no random key is left"), std::string::npos);
  EXPECT_NE(error_of(text("9223372036854775805")).find("no random key is left"), std::string::npos);
  const Graph g = parse_graph(text("9223372036854775807"));
  EXPECT_EQ(parse_graph(print(g)), g);
  EXPECT_NE(print(g).find("key = 2"), std::string::npos) << print(g);
}

TEST(Text, HighDegreesAreRefusedQuickly) {
  std::string size = "n";
  for (int i = 0; i < 20000; ++i) size += "*n";
  EXPECT_NE(error_of("graph @g { %x = input \"x\" : f32[" + size + "] return }").find("error"),
            std::string::npos);
}

TEST(Text, HostileTextGetsAnError) {
  const std::string deep(100000, '[');
  EXPECT_NE(error_of("graph @g { %c = constant " + deep).find("nested too deeply"),
            std::string::npos);
  EXPECT_NE(error_of("graph @g { %c = iota {shape = " + deep).find("nested too deeply"),
            std::string::npos);
  EXPECT_NE(error_of("graph @g { %c = constant splat 0 : f32[99999999999, 99999999999] return }")
                .find("error[shape]"),
            std::string::npos);
  EXPECT_NE(error_of("graph @g { %c = constant [1] : f32[99999999999] return %c }"), "no error");
  EXPECT_NE(error_of("graph @g { %c = constant \"").find("has no end"), std::string::npos);
  EXPECT_NE(error_of("graph @g { %x = input \"x\" : f32[").find("error[parse]"), std::string::npos);
}

}  // namespace
}  // namespace ricci::ir_text_test
