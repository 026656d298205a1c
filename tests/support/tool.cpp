#include "support/tool.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ricci/io/file.h"

#include "test_paths.h"

namespace ricci::testing {

std::string scratch(const std::string& file) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("ricci_tool_test_{}", ::getpid());
  std::filesystem::create_directories(folder);
  return (folder / file).string();
}

std::string read_text(const std::string& path) {
  const std::vector<std::byte> bytes = io::read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ToolRun run_tool(const std::string& arguments, const std::string& input) {
  const std::string in = scratch("stdin.txt");
  const std::string out = scratch("stdout.txt");
  const std::string err = scratch("stderr.txt");
  io::write_file(in, input);
  const std::string command =
      fmt::format("'{}' {} <'{}' >'{}' 2>'{}'", RICCI_TOOL_PATH, arguments, in, out, err);
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(out), read_text(err)};
}

ToolRun run_shell(const std::string& command) {
  const std::string out = scratch("shell_out.txt");
  const std::string err = scratch("shell_err.txt");
  const int status =
      std::system(fmt::format("( {} ) >'{}' 2>'{}'", command, out, err).c_str());  // NOLINT
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(out), read_text(err)};
}

}  // namespace ricci::testing
