// `ricci serve` with clients of every kind, in short (tests/load/serve_load.py), and of a program.
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "ricci/io/gguf.h"

#include "support/tool.h"
#include "test_paths.h"

namespace ricci::testing::tool_serve_test {
namespace {

const std::string Root = RICCI_SOURCE_DIR;

TEST(ToolServe, LosesNothingUnderLoad) {
  const ToolRun run =
      run_shell("python3 " + Root + "/tests/load/serve_load.py " + RICCI_TOOL_PATH + " " + Root +
                "/tests/data/models/gpt2 --connections 60 --slow 10 --pause 0.001 "
                "--rounds 2 --leaving 20 --most-mib 4000");
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_NE(run.out.find("failures: 0"), std::string::npos) << run.out << run.err;
}

TEST(ToolServe, CallsAProgram) {
  const ToolRun run =
      run_shell("python3 " + Root + "/tests/load/serve_program.py " + RICCI_TOOL_PATH);
  EXPECT_EQ(run.status, 0) << run.out << run.err;
}

TEST(ToolServe, CompletesTextsWithWhatWasTrained) {
  const ToolRun run = run_shell("python3 " + Root + "/tests/load/serve_run.py " + RICCI_TOOL_PATH +
                                " " + Root + "/tests/data/models/gpt2");
  EXPECT_EQ(run.status, 0) << run.out << run.err;
}

TEST(ToolServe, SaysWhatIsWrong) {
  EXPECT_NE(run_tool("serve /no/such/folder.safetensors").err.find("error[file"),
            std::string::npos);
  EXPECT_EQ(run_tool("serve").status, 2);
  const std::string gguf = scratch("model.gguf");
  io::write_gguf(gguf, {});
  const ToolRun packed = run_tool("serve " + gguf);
  EXPECT_EQ(packed.status, 1);
  EXPECT_NE(packed.err.find("is a file of weights (GGUF), and no program"), std::string::npos)
      << packed.err;
  const std::string model = Root + "/tests/data/models/gpt2";
  EXPECT_NE(run_tool("serve " + model + " --host nowhere").err.find("\"nowhere\" is no address"),
            std::string::npos);
  EXPECT_EQ(run_tool("serve " + model + " --batch 0").status, 2);
  EXPECT_NE(run_tool("serve " + model + " --weights-in q9").err.find("'q9'"), std::string::npos);
}

}  // namespace
}  // namespace ricci::testing::tool_serve_test
