// Programs of examples/ that are written with the tool: a network compiled for C, and a curve that
// is fitted with the tool alone.
#include <regex>

#include <gtest/gtest.h>

#include "support/tool.h"
#include "test_paths.h"

namespace ricci::testing::tool_examples_test {
namespace {

const std::string Examples = RICCI_SOURCE_DIR "/examples/";

// Its own words for how it is compiled.
TEST(ToolExamples, TheToolMakesThatProgram) {
  const std::string object = scratch("net.o");
  const ToolRun run = run_tool("compile " + Examples +
                               "train_from_c/net.ric --train adam --learning-rate 0.01 --emit "
                               "object --name net -o " +
                               object);
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string header = read_text(scratch("net.h"));
  EXPECT_NE(header.find("static inline int net_arrays_alloc(net_arrays* arrays)"),
            std::string::npos);
}

TEST(ToolExamples, ACurveIsFittedWithTheToolAlone) {
  const ToolRun run = run_shell("RICCI='" RICCI_TOOL_PATH "' '" + Examples + "tool_only/train.sh'");
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  std::smatch loss;
  ASSERT_TRUE(std::regex_search(run.out, loss, std::regex("%loss : f32\\[\\] = ([0-9.e-]+)")))
      << run.out;
  EXPECT_LT(std::stod(loss[1]), 0.01) << run.out;
  EXPECT_NE(run.out.find("out0 \"c\" : f32[4]"), std::string::npos) << run.out;
}

}  // namespace
}  // namespace ricci::testing::tool_examples_test
