// Text that is large, deep or odd: what is within the limits is read in time that grows with it,
// the rest is refused with a message that says which limit it was.
#include <functional>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/canonicalize.h"
#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/support/text.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

namespace ricci::ir_limits_test {
namespace {

std::string error_of(const std::string& text, const Limits& limits = {}) {
  try {
    (void)parse(text, {.file = "net.ric", .limits = limits});
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

std::string repeated(std::string_view piece, std::size_t times) {
  std::string out;
  out.reserve(piece.size() * times);
  for (std::size_t i = 0; i < times; ++i) out += piece;
  return out;
}

// The piece with every '#' replaced by 0, 1, …
std::string numbered(std::string_view piece, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) {
    for (const char c : piece) c == '#' ? void(out += std::to_string(i)) : void(out += c);
  }
  return out;
}

std::string with_x(const std::string& statements, const std::string& outputs = "%x") {
  return "graph @g { %x = input \"x\" : f32[2]\n" + statements + "return " + outputs + " }";
}

std::string chain(std::string_view op, std::size_t length) {
  std::string out = "%v0 = neg %x\n";
  for (std::size_t i = 1; i < length; ++i) {
    out +=
        "%v" + std::to_string(i) + " = " + std::string(op) + " %v" + std::to_string(i - 1) + "\n";
  }
  return with_x(out, "%v" + std::to_string(length - 1));
}

struct LargeText {
  const char* name;
  std::function<std::string()> text;
  std::string refusal = {};  ///< a part of the message; empty: it is accepted
};

// Sizes that would take minutes or the whole stack where cost grew faster than the text.
const std::vector<LargeText>& large_texts() {
  constexpr std::size_t Many = 100'000;
  static const std::vector<LargeText> texts = {
      {"graphs", [] { return numbered("graph @g# { return }\n", Many); }},
      {"inputs",
       [] { return "graph @g {" + numbered("%x# = input \"x#\" : f32[]\n", Many) + "return }"; }},
      {"chain", [] { return chain("sin", Many); }},
      {"chain_that_folds_away", [] { return chain("neg", Many); }},
      {"equal_nodes", [] { return with_x(numbered("%y# = sin %x\n", Many), "%y0, %y99999"); }},
      {"same_name_with_suffix", [] { return with_x(numbered("%y_# = sin %x\n", Many)); }},
      {"operands",
       [] { return with_x("%y = concat %x" + repeated(", %x", Many) + " {axis = 0}\n", "%y"); }},
      {"outputs", [] { return with_x("", "%x" + repeated(", %x", Many)); }},
      {"symbols",
       [] { return "graph @g {" + numbered("%x# = input \"x#\" : f32[n#]\n", Many) + "return }"; }},
      {"constant_list",
       [] {
         return with_x("%c = constant [" + repeated("1.5, 2.5, ", Many) + "0] : f32[200001]\n",
                       "%c");
       }},
      {"constant_rows",
       [] {
         return with_x(
             "%c = constant [" + repeated("[1, 2], ", Many) + "[3, 4]] : i32[100001, 2]\n", "%c");
       }},
      {"hex",
       [] {
         return with_x("%c = constant hex \"" + repeated("0123456789abcdef", 1'000'000) +
                           "\" : u8[8000000]\n",
                       "%c");
       }},
      {"comments", [] { return repeated("// a comment\n", 1'000'000) + with_x(""); }},
      {"blank_lines", [] { return repeated("\n", 4'000'000) + with_x(""); }},
      {"one_line", [] { return with_x(numbered("%y# = neg %x ", Many)); }},
      {"many_carries",
       [] {
         constexpr std::size_t Carries = 20'000;
         const std::string all = numbered("%c#, ", Carries) + "%c0";
         std::string operands = all;
         std::string results = numbered("%y#, ", Carries) + "%last";
         return "graph @g {" + numbered("%c# = input \"c#\" : f32[]\n", Carries) + results +
                " = scan " + operands + " {length = 2, num_carry = 20001} body {" +
                numbered("%c# = input \"c#\" : f32[]\n", Carries + 1) + "return " +
                numbered("%c#, ", Carries) + "%c20000 }\nreturn %y0, %last }";
       }},
      {"wrong_carries",
       [] {
         return "graph @g {" + numbered("%x# = input \"x#\" : f32[]\n", 20'000) + "%y = scan %x0" +
                [] {
                  std::string s;
                  for (int i = 1; i < 20'000; ++i) s += ", %x" + std::to_string(i);
                  return s;
                }() +
                " {length = 1, num_carry = 20000} body {" +
                numbered("%c# = input \"c#\" : f32[]\n", 20'000) + "return }\nreturn }";
       },
       "error["},
      {"nested_nan",
       [] { return with_x("%c = constant " + repeated("nan(", 40'000) + " : f32[]\n"); },
       "expected"},
      {"nested_list", [] { return with_x("%c = constant " + repeated("[", Many)); },
       "nested too deeply"},
      {"nested_attribute",
       [] { return with_x("%y = reshape %x {new_shape = " + repeated("[", Many)); },
       "nested too deeply"},
      {"nested_enumerator",
       [] { return with_x("%y = reshape %x {new_shape = " + repeated("a(", Many)); },
       "nested too deeply"},
      {"nested_bodies",
       [] {
         return with_x(
             repeated("%y = scan %x {length = 1} body { %x = input \"x\" : f32[2]\n", Many));
       },
       "nested too deeply"},
      {"attributes",
       [] { return with_x("%y = neg %x {" + numbered("a# = 1, ", Many) + "b = 1}\n"); },
       "raise the limit: --limit attributes="},
      {"rank",
       [] {
         return "graph @g { %x = input \"x\" : f32[" + repeated("1, ", Many) + "1] return %x }";
       },
       "at most 64 axes"},
      {"rank_of_reshape",
       [] { return with_x("%y = reshape %x {new_shape = [" + repeated("1, ", Many) + "2]}\n"); },
       "at most 64 axes"},
      {"rank_of_list",
       [] {
         return with_x("%c = constant " + repeated("[", 65) + "1" + repeated("]", 65) +
                       " : f32[]\n");
       },
       "at most 64 levels"},
      {"long_name",
       [] { return with_x("%" + repeated("n", 4'000'000) + " = neg %x\n%y = neg %undefined\n"); },
       "--limit name_bytes="},
      {"long_number",
       [] {
         return "graph @g { %x = input \"x\" : f32[" + repeated("1", 4'000'000) + "] return }";
       },
       "--limit name_bytes="},
      {"long_name_in_quotes",
       [] { return "graph @g { %x = input \"" + repeated("n", 4'000'000) + "\" : f32[] return }"; },
       "--limit name_bytes="},
      {"undefined_among_many",
       [] {
         return with_x(numbered("%a_rather_long_name_of_a_value_# = neg %x\n", Many),
                       "%a_rather_long_name_of_a_valve_7");
       },
       "is not defined"},
      {"sum_of_symbols",
       [] {
         return "graph @g { %x = input \"x\" : f32[" + numbered("n# + ", Many) + "1] return }";
       },
       "at most 256 terms"},
      {"sum_of_one_symbol",
       [] { return "graph @g { %x = input \"x\" : f32[" + repeated("n + ", Many) + "1] return }"; },
       "at most 256 terms"},
      {"product_of_symbols",
       [] { return "graph @g { %x = input \"x\" : f32[" + repeated("n*", Many) + "1] return }"; },
       "at most 64 factors"},
      {"concat_of_symbols",
       [] {
         return "graph @g {" + numbered("%x# = input \"x#\" : f32[n#]\n", 1000) +
                "%y = concat %x0" +
                [] {
                  std::string s;
                  for (int i = 1; i < 1000; ++i) s += ", %x" + std::to_string(i);
                  return s;
                }() +
                " {axis = 0} return %y }";
       },
       "too complicated"},
      {"wrong_concat",
       [] {
         return with_x("%z = input \"z\" : f32[]\n%y = concat %z" + repeated(", %x", Many) +
                       " {axis = 0}\n");
       },
       "more operands"},
      {"unknown_bodies", [] { return with_x("%y = neg %x " + repeated("body { return } ", Many)); },
       "has no body"},
      {"unclosed_string", [] { return "graph @\"" + repeated("a", 4'000'000); },
       "this string has no end"},
  };
  return texts;
}

class TextSizes : public ::testing::TestWithParam<LargeText> {};

TEST_P(TextSizes, CostWhatTheyAreWorth) {
  const std::string text = GetParam().text();
  const std::string message = error_of(text);
  if (!GetParam().refusal.empty()) {
    EXPECT_NE(message.find(GetParam().refusal), std::string::npos) << message.substr(0, 2000);
    EXPECT_LT(message.size(), 5000U);
    return;
  }
  ASSERT_EQ(message, "no error");
  const std::vector<Graph> graphs = parse(text);
  for (const Graph& graph : graphs) verify(graph);
  EXPECT_EQ(parse(print_file(graphs)), graphs);
  for (const Graph& graph : graphs) {
    const Graph merged = common_subexpression_elimination(graph).graph;
    verify(canonicalize(constant_folding(dead_code_elimination(merged).graph).graph).graph);
  }
}

INSTANTIATE_TEST_SUITE_P(Large, TextSizes, ::testing::ValuesIn(large_texts()),
                         [](const auto& text) { return std::string(text.param.name); });

TEST(TextLimits, EveryLimitCanBeLoweredAndRaised) {
  const std::string text =
      with_x("%y = reshape %x {new_shape = [1, 2]}\n%z = concat %x, %x {axis = 0}\n", "%y");
  EXPECT_EQ(error_of(text), "no error");
  for (const LimitInfo& limit : all_limits()) {
    Limits tight;
    tight.set(limit.name, 0);
    const std::string message = error_of(text, tight);
    EXPECT_NE(message.find("--limit " + std::string(limit.name) + "="), std::string::npos)
        << message;
    tight.set(limit.name, Limits{}.*(limit.value));
    EXPECT_EQ(tight, Limits{});
  }
  const std::string long_name = with_x("%" + repeated("n", 5000) + " = neg %x\n");
  EXPECT_NE(error_of(long_name).find("this name has 5000 bytes, but may have 4096"),
            std::string::npos);
  EXPECT_EQ(error_of(long_name, {.name_bytes = 5000}), "no error");
}

TEST(TextLimits, AnUnknownLimitIsAnError) {
  Limits limits;
  try {
    limits.set("node", 1);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostic().help, "did you mean 'nodes'?");
  }
}

TEST(TextLimits, BuiltGraphsKeepToThemToo) {
  Graph g("g");
  const Value x = g.input("x", f32());
  Dims wide(MostRank, 1);
  EXPECT_EQ(reshape_to(x, wide).rank(), MostRank);
  wide.push_back(1);
  EXPECT_THROW((void)reshape_to(x, wide), UserError);
  EXPECT_THROW((void)g.input("wide", f32(wide)), UserError);
  const std::string name(2000, 'n');
  EXPECT_THROW((void)g.input("long", f32(Dims(9, Dim::symbol(name)))), UserError);
}

TEST(TextLimits, ProductsOfSumsDoNotExplode) {
  Dim product = 1;
  const auto multiply = [&] {
    for (int i = 0; i < 60; ++i) {
      product =
          product * (Dim::symbol("a" + std::to_string(i)) + Dim::symbol("b" + std::to_string(i)));
    }
  };
  EXPECT_THROW(multiply(), UserError);
  Dim power = 1;
  for (int i = 0; i < 60; ++i) power = power * (Dim("a") + Dim("b"));
  EXPECT_EQ(power.bind({{"a", 1}, {"b", 0}}), Dim(1));
}

TEST(TextLimits, TheVerifierTellsTheFirstOfManyFaults) {
  Graph g("g");
  const Value x = g.input("x", f32({2}));
  Node broken = g.node(neg(x).id().node);
  broken.types[0] = f32({3});
  for (int i = 0; i < 100'000; ++i) g.append(broken);
  const std::vector<Diagnostic> faults = find_faults(g);
  ASSERT_EQ(faults.size(), MostFaults + 1);
  EXPECT_EQ(faults.back().message, "there are 99936 more faults");
}

// A walk that recursed along the chain would leave the stack.
TEST(TextLimits, LongChainsAreWalkedInLoops) {
  const Graph g = parse_graph(chain("sin", 100'000));
  const Transformed gradient = grad(g, {"x"}, {.internal_seed = true});
  EXPECT_GT(gradient.graph.size(), 100'000U);
  EXPECT_GT(jvp(g, {"x"}).graph.size(), 100'000U);
  EXPECT_EQ(vmap(g, {"x"}, 3).graph.size(), g.size());
  const Feeds feeds = {{"x", Tensor::splat(f32({2}), 0.0)}};
  EXPECT_EQ(interpret(g, feeds)[0].numbers<double>(), (std::vector<double>{0, 0}));
  const Graph wide =
      parse_graph(with_x("%y = concat %x" + repeated(", %x", 100'000) + " {axis = 0}\n", "%y"));
  EXPECT_EQ(interpret(wide, feeds)[0].numel(), 200'002);
}

TEST(TextLimits, MessagesOfAnythingAreShort) {
  const UserError e(Diagnostic{.code = ErrorCode::Shape,
                               .detail = {},
                               .message = std::string(1'000'000, 'm'),
                               .where = {},
                               .notes = {std::string(1'000'000, 'n')},
                               .help = std::string(1'000'000, 'h')});
  EXPECT_LT(std::string_view(e.what()).size(), 30'000U);
  EXPECT_EQ(e.diagnostic().message.size(), 1'000'000U);
}

TEST(TextLimits, SuggestionsCostLittle) {
  const std::vector<std::string> giants = {std::string(4'000'000, 'x'), "axis"};
  EXPECT_EQ(nearest("axes", giants), "axis");
  EXPECT_EQ(nearest(std::string(4'000'000, 'y'), giants), std::nullopt);
}

TEST(TextLimits, TensorsOfManyAxesPrintTheirFirstElements) {
  const std::string text = Tensor::splat(f32(Dims(40, 2)), 1.0).to_string();
  EXPECT_LT(text.size(), 20'000U);
  EXPECT_TRUE(text.ends_with("…]")) << text.substr(text.size() - 40);
}

TEST(TextLimits, LongLinesAreCutAroundThePlace) {
  const std::string text = with_x(numbered("%y# = neg %x ", 1000) + "%z = tahn %x ");
  const std::string message = error_of(text);
  EXPECT_NE(message.find("…"), std::string::npos);
  EXPECT_NE(message.find("%z = tahn %x"), std::string::npos) << message;
  EXPECT_LT(message.size(), 400U);
}

}  // namespace
}  // namespace ricci::ir_limits_test
