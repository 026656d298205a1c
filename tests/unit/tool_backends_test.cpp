// What the tool says of the back ends it was built with, and of those it was not.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/runtime/device.h"
#include "ricci/support/error.h"

#include "support/every_device.h"
#include "support/tool.h"

namespace ricci::tool_backends_test {
namespace {

using testing::run_tool;

constexpr const char* Double = R"(
graph @double { %x = input "x" : f32[2] %y = add %x, %x return %y }
)";

std::string names_of_all() {
  std::string out;
  for (const DeviceListing& l : Device::all()) out += (out.empty() ? "" : ", ") + l.name;
  return out;
}

TEST(ToolBackends, AreNamedWithTheVersion) {
  EXPECT_TRUE(run_tool("--version").out.ends_with("\nback ends: " + names_of_all() + "\n"));
}

TEST(ToolBackends, TheFirstIsUsedUnlessAnotherIsNamed) {
  EXPECT_EQ(Device::standard().name(), Device::all().front().name);
  const auto help = run_tool("run --help");
  const std::string standard(Device::standard().name());
  EXPECT_NE(help.out.find("(default " + standard + ")"), std::string::npos) << help.out;
}

// What is said of a device that cannot be used.
std::string refusal(const std::string& name) {
  for (const DeviceListing& l : Device::all()) {
    if (l.name == name) return "the device '" + name + "' cannot be used here: " + l.why_not + "\n";
  }
  return "the device '" + name + "' is not part of this build\n  help: there is " + names_of_all() +
         "\n";
}

bool is_built(const std::string& name) {
  return std::ranges::any_of(Device::all(), [&](const DeviceListing& l) { return l.name == name; });
}

TEST(ToolBackends, OneThatIsNotHereIsRefused) {
  for (const std::string name : {"cpu", "lir", "cuda"}) {
    if (testing::has_device(name)) continue;
    std::vector<std::string> commands = {"run - --random 1", "bench - --random 1"};
    // What a GPU would run can be compiled where there is none.
    if (name != "cuda" || !is_built(name)) commands.emplace_back("compile -");
    for (const std::string& command : commands) {
      const auto run = run_tool(command + " --device " + name, Double);
      EXPECT_EQ(run.status, 1) << command;
      EXPECT_EQ(run.err, "error[unsupported_on_backend]: " + refusal(name)) << command;
    }
    EXPECT_THROW((void)Device::named(name), UserError) << name;
  }
}

TEST(ToolBackends, MachineCodeIsRefusedWhereThereIsNone) {
  for (const std::string form : {"llvm", "asm", "object", "shared"}) {
    const std::string file = testing::scratch("no_code_" + form);
    const auto run = run_tool("compile - --device lir --emit " + form + " -o " + file, Double);
    EXPECT_EQ(run.status, 1) << form;
    EXPECT_TRUE(run.err.starts_with("error[unsupported_on_backend]: the device 'lir' has no "))
        << run.err;
  }
  EXPECT_EQ(run_tool("compile - --device lir --emit lir", Double).status, 0);
}

}  // namespace
}  // namespace ricci::tool_backends_test
