// Running the command-line tool as users do, with what it printed and how it ended.
#pragma once

#include <string>

namespace ricci::testing {

struct ToolRun {
  int status = -1;
  std::string out;
  std::string err;
};

/// Runs `ricci ARGUMENTS` through the shell, with `input` on its standard input.
[[nodiscard]] ToolRun run_tool(const std::string& arguments, const std::string& input = {});

/// Runs a command of the shell.
[[nodiscard]] ToolRun run_shell(const std::string& command);

/// A path in the folder tests write to.
[[nodiscard]] std::string scratch(const std::string& file);
[[nodiscard]] std::string read_text(const std::string& path);

}  // namespace ricci::testing
