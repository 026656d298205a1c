// Every fault of a text in one run: reading goes on behind a statement that has one.
#include <gtest/gtest.h>

#include "ricci/ir/text.h"

#include "support/tool.h"

namespace ricci::testing::ir_faults_test {
namespace {

std::vector<std::string> faults_of(const std::string& text, std::size_t most = 50) {
  try {
    (void)parse(text, {.file = "t", .most_faults = most});
  } catch (const UserError& e) {
    std::vector<std::string> out;
    for (const Diagnostic& d : e.diagnostics()) {
      out.push_back(std::to_string(d.where.line) + " " + d.message);
    }
    return out;
  }
  return {};
}

using Faults = std::vector<std::string>;

constexpr const char* Many = R"(graph @first {
  %x = input "x" : f32[2, 3]
  %w = param "w" : f32[4, 5]
  %h = matmul %x, %w
  %a = tanhh %h
  %b = add %a, %h
  %c = softmax %x {
    axis = [1,
    wrong
  }
  %d = relu %q
  %e = relu %q
  %f = scan %x {length = 3} body {
    %i = input "i" : f32[2, 3]
    %j = addd %i, %i
    return %j
  } : f32[2, 3]
  %g = relu %f
  %k = tanh %x
  %k = sin %x
  return %k, %nothing, %g
}
garbage
graph @second {
  %x = input "x" : f32[2]
  %y = tanh %x : f64[2]
  %z = tanh %x
}
graph @third {
  %x = input "x" : f32[2]
  return %x
}
)";

TEST(TextFaults, AreAllFound) {
  EXPECT_EQ(faults_of(Many),
            (Faults{"4 inner sizes differ: 3 in 'a' [2, 3] and 4 in 'b' [4, 5]",
                    "5 there is no op 'tanhh'", "10 expected ',' or ']' in a list",
                    "11 %q is not defined before this line", "15 there is no op 'addd'",
                    "20 %k is already defined", "21 %nothing is not defined before this line",
                    "23 expected 'graph'", "26 'tanh' gives f32[2], but f64[2] is declared",
                    "28 expected '%name = op …' or 'return'"}));
}

TEST(TextFaults, AreCountedUpToABound) {
  EXPECT_EQ(faults_of(Many, 3).size(), 3U);
  EXPECT_EQ(faults_of(Many, 1).size(), 1U);
  EXPECT_EQ(faults_of("graph @g { %x = input \"x\" : f32[2] return %x }"), Faults{});
}

TEST(TextFaults, OfWhatCannotBeReadEndTheSearch) {
  EXPECT_FALSE(faults_of("graph @g {\n %x = tanhh\n %y = $ \n return }").empty());
  EXPECT_FALSE(faults_of("graph @g {\n %x = tanhh\n").empty());
  EXPECT_FALSE(faults_of("graph @g {\n %x = tanhh {{{{\n").empty());
  EXPECT_FALSE(faults_of("} } graph").empty());
  EXPECT_FALSE(faults_of("graph graph graph @a { return %x as }").empty());
}

TEST(TextFaults, AreAllSaidByCheck) {
  const ToolRun run = run_tool("check -", Many);
  EXPECT_EQ(run.status, 1);
  for (const char* part : {"tanhh", "addd", "%nothing", "f64[2] is declared", "expected 'graph'"}) {
    EXPECT_NE(run.err.find(part), std::string::npos) << run.err;
  }
  const ToolRun once = run_tool("print -", Many);
  EXPECT_EQ(once.err.find("addd"), std::string::npos);
}

}  // namespace
}  // namespace ricci::testing::ir_faults_test
