// The command-line tool. Each command is one file in commands/; this one reads the arguments, runs
// the command and turns failures into exit statuses: 1 for an error in the input, 2 for wrong
// usage.
#include <cstdio>
#include <exception>
#include <new>

#include <CLI/CLI.hpp>

#include "ricci/support/error.h"

#include "commands/commands.h"

namespace {

constexpr int InputError = 1;
constexpr int UsageError = 2;

int report(const char* text) {
  std::fprintf(stderr, "%s\n", text);
  return InputError;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Ricci: a tensor compiler for differentiable programs", "ricci");
  app.set_version_flag("--version", "ricci " RICCI_VERSION);
  app.require_subcommand(1);
  app.footer("A file named '-' is standard input. 'ricci COMMAND --help' explains a command.");
  ricci::tool::Action action;
  ricci::tool::add_commands(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : UsageError;
  }
  try {
    action();
    return 0;
  } catch (const std::bad_alloc&) {
    return report("error[out_of_memory]: the program needs more memory than there is");
  } catch (const std::exception& e) {
    return report(e.what());
  }
}
