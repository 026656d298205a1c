// `ricci print`, `opt`, `show` and `doc`.
#include <filesystem>
#include <regex>

#include <gtest/gtest.h>

#include "ricci/ir/alias.h"
#include "ricci/ir/text.h"
#include "ricci/op/table.h"

#include "support/tool.h"
#include "test_paths.h"

namespace ricci::tool_text_test {
namespace {

using testing::run_tool;
using testing::scratch;

std::string program(const std::string& name) {
  return std::string(RICCI_SOURCE_DIR) + "/examples/programs/" + name + ".ric";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ToolPrint, PrintsTheCanonicalFormOfWhatItRead) {
  for (const char* name : {"mlp_loss", "attention", "recurrent", "clip", "layer_norm"}) {
    const auto once = run_tool("print " + program(name));
    EXPECT_EQ(once.status, 0) << once.err;
    EXPECT_EQ(run_tool("print -", once.out).out, once.out);
    EXPECT_EQ(parse(once.out), parse(testing::read_text(program(name))));
  }
  EXPECT_TRUE(contains(run_tool("print --locations " + program("clip")).out, "clip.ric:3:3"));
}

TEST(ToolOpt, RunsPassesAndReportsOnThem) {
  const std::string text =
      "graph @g { %x = input \"x\" : f32[2] %d = neg %x %y = exp %x return %y }";
  const auto run = run_tool("opt - --passes dead_code_elimination", text);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_FALSE(contains(run.out, "neg")) << run.out;
  EXPECT_TRUE(run.out.starts_with("ricci 1\n")) << run.out;
  EXPECT_EQ(run_tool("print -", run.out).out, run.out) << "the form `print` writes";
  const auto wordy =
      run_tool("opt - --passes dead_code_elimination --print-after-all --time-passes", text);
  EXPECT_TRUE(contains(wordy.err, "// after dead_code_elimination")) << wordy.err;
  EXPECT_TRUE(contains(wordy.err, "3 -> 2 nodes")) << wordy.err;
  EXPECT_EQ(wordy.out, run.out);
  const auto unknown = run_tool("opt - --passes dead_code_eliminatoin", text);
  EXPECT_EQ(unknown.status, 1);
  EXPECT_TRUE(contains(unknown.err, "dead_code_elimination")) << unknown.err;
  EXPECT_TRUE(contains(run_tool("opt --help").out, "dead_code_elimination"));
}

TEST(ToolShow, DrawsNodesEdgesAndBodies) {
  const auto run = run_tool("show " + program("clip") + " --svg " + scratch("g.svg") + " --html " +
                            scratch("g.html") + " --dot " + scratch("g.dot"));
  EXPECT_EQ(run.status, 0) << run.err;
  const std::string svg = testing::read_text(scratch("g.svg"));
  EXPECT_TRUE(svg.starts_with("<?xml"));
  EXPECT_TRUE(contains(svg, "id=\"n6.then.4\"")) << "a node of a body";
  EXPECT_TRUE(contains(svg, "data-from=\"n0\" data-to=\"n2\""));
  EXPECT_TRUE(contains(svg, "%clipped : f32[6]"));
  const std::string html = testing::read_text(scratch("g.html"));
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  EXPECT_FALSE(contains(html, "http://")) << "the page needs no network";
  EXPECT_FALSE(contains(html, "https://"));
  EXPECT_TRUE(contains(testing::read_text(scratch("g.dot")), "subgraph \"cluster_n6.then.\""));
}

TEST(ToolShow, WritesAllFilesOrNone) {
  std::filesystem::remove(scratch("none.svg"));
  const auto run = run_tool("show " + program("clip") + " --svg " + scratch("none.svg") +
                            " --html /nonexistent/g.html");
  EXPECT_EQ(run.status, 1);
  EXPECT_FALSE(std::filesystem::exists(scratch("none.svg")));
}

TEST(ToolHelp, SaysWhichGraphsACommandTakes) {
  for (const char* command : {"opt", "check", "print"}) {
    EXPECT_TRUE(contains(run_tool(std::string(command) + " --help").out, "(default: all)"));
  }
  for (const char* command : {"run", "show"}) {
    EXPECT_TRUE(contains(run_tool(std::string(command) + " --help").out, "(default: the first)"));
  }
}

TEST(ToolShow, TextFromTheGraphIsEscaped) {
  const std::string text = "graph @\"<b>&\" { %x = input \"<script>'\\\"\" : f32[] return %x }";
  const auto svg = run_tool("show - --svg -", text);
  EXPECT_EQ(svg.status, 0) << svg.err;
  EXPECT_FALSE(contains(svg.out, "<script>"));
  EXPECT_FALSE(contains(svg.out, "<b>"));
  const auto html = run_tool("show - --html -", text);
  EXPECT_FALSE(contains(html.out, "<script>'"));
  EXPECT_EQ(run_tool("show - --dot -", text).status, 0);
}

TEST(ToolShow, AHandfulOfHundredNodesIsDrawnQuickly) {
  std::string text = "graph @deep { %v0 = input \"x\" : f32[4] ";
  for (int i = 0; i < 600; ++i) {
    text += "%v" + std::to_string(i + 1) + " = add %v" + std::to_string(i) + ", %v" +
            std::to_string(i / 2) + "\n";
  }
  const auto run = run_tool("show - --svg " + scratch("deep.svg"), text + " return %v600 }");
  EXPECT_EQ(run.status, 0) << run.err;
}

TEST(ToolShow, BoxesNameParamsAndOutputs) {
  constexpr const char* Net = R"(graph @net {
    %x = input "x" : f32[2]
    %0 = param "c1.w" : f32[2]
    %y = mul %x, %0
    %z = tanh %y
    return %z as "prediction", %y, %x
  })";
  const std::string svg = run_tool("show - --svg -", Net).out;
  for (const char* title :
       {">input x<", ">param c1.w<", ">out0 prediction<", ">out1 y<", ">out2 x<", ">mul<"}) {
    EXPECT_TRUE(contains(svg, title)) << title << svg;
  }
  const std::string dot = run_tool("show - --dot -", Net).out;
  EXPECT_TRUE(contains(dot, "param c1.w\\n")) << dot;
  EXPECT_TRUE(contains(dot, "label=\"out0 prediction\"")) << dot;
}

// The tip of a line points where its last piece leads: a piece without a length leads nowhere.
TEST(ToolShow, LinesEndInPiecesWithADirection) {
  for (const char* name : {"mlp_loss", "attention", "recurrent", "newton"}) {
    const std::string svg = run_tool("show " + program(name) + " --svg -").out;
    // The tip turns with its line: a browser that is not told so draws it pointing right.
    EXPECT_TRUE(std::regex_search(svg, std::regex("<marker id=\"tip\"[^>]* orient=\"auto\"")))
        << svg;
    const std::regex line("class=\"line\"[^>]* marker-end=\"url\\(#tip\\)\" d=\"([^\"]+)\"");
    std::size_t lines = 0;
    for (std::sregex_iterator it(svg.begin(), svg.end(), line), end; it != end; ++it, ++lines) {
      const std::string path = (*it)[1];
      std::smatch last;
      ASSERT_TRUE(std::regex_search(path, last, std::regex("([-0-9.]+)(V|C[-0-9. ]+ )([-0-9.]+)$")))
          << path;
      // Lines end in boxes below where they begin: the last height is the largest.
      std::string before = path.substr(0, path.size() - last[3].str().size());
      if (before.ends_with('V')) {
        before.pop_back();
        const double from = std::stod(before.substr(before.find_last_of(" V") + 1));
        EXPECT_GT(std::stod(last[3]), from) << path;
      }
    }
    EXPECT_GT(lines, 3U);
  }
}

TEST(ToolDoc, DescribesEveryOp) {
  const auto run = run_tool("doc");
  EXPECT_EQ(run.status, 0) << run.err;
  for (const OpDescriptor& d : all_ops()) {
    EXPECT_TRUE(contains(run.out, "\n## " + std::string(d.info->name) + "\n")) << d.info->name;
    for (const std::string& member : d.family) {
      EXPECT_TRUE(contains(run.out, "| `" + member + "` |")) << member;
    }
    for (const Constraint& c : d.constraints) {
      EXPECT_TRUE(contains(run.out, "_" + c.label + "`: " + c.text)) << c.text;
    }
  }
  EXPECT_TRUE(contains(run.out, "\nout = tanh x\n")) << "families are written by member";
  EXPECT_FALSE(contains(run.out, "= unary x"));
  for (const std::string& alias : all_aliases()) {
    EXPECT_TRUE(contains(run.out, "| `" + alias + "` |")) << alias;
  }
  EXPECT_EQ(run_tool("doc -o " + scratch("ops.md")).status, 0);
  EXPECT_EQ(testing::read_text(scratch("ops.md")), run.out);
}

}  // namespace
}  // namespace ricci::tool_text_test
