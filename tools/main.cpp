// The command-line tool. Each command is one file in commands/; this one reads the arguments, runs
// the command and turns failures into exit statuses: 1 for an error in the input or a time limit, 2
// for wrong usage, 128 and the number of the signal for one that ended it.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <source_location>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "ricci/runtime/device.h"
#include "ricci/support/error.h"
#include "ricci/support/text.h"

#include "commands/commands.h"
#include "stopping.h"

namespace {

constexpr int InputError = 1;
constexpr int UsageError = 2;

int report(const char* text) {
  std::fprintf(stderr, "%s\n", text);
  return InputError;
}

// What was printed may still be on its way: a full disk shows only now.
int finished(int status) {
  std::cout.flush();
  if (std::cout && std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  const std::string reason = errno != 0 ? fmt::format(": {}", std::strerror(errno)) : "";
  report(fmt::format("error[file.write]: cannot write to standard output{}", reason).c_str());
  return InputError;
}

// What is wrong when the first word is no command; CLI11 would only say that one is required.
std::string unknown_command(CLI::App& app, std::string_view word) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
  for (const std::string& c : commands) {
    if (c == word) return {};
  }
  const auto close = ricci::nearest(word, commands);
  return fmt::format("there is no command '{}'\n  help: {}the commands are {}", word,
                     close ? fmt::format("did you mean '{}'? ", *close) : "",
                     ricci::join(commands, ", "));
}

std::string version() {
  return fmt::format("ricci {}\nback ends: {}", RICCI_VERSION,
                     ricci::join(ricci::Device::names(), ", "));
}

int run(int argc, char** argv) {
  CLI::App app("Ricci: a tensor compiler for differentiable programs", "ricci");
  app.set_version_flag("--version", version);
  app.require_subcommand(1);
  app.footer("A file named '-' is standard input. 'ricci COMMAND --help' explains a command.");
  ricci::tool::Action action;
  ricci::tool::add_commands(app, action);
  double timeout = 0;
  ricci::tool::declare_timeout(app, timeout);
  if (argc > 1 && argv[1][0] != '-') {
    const std::string fault = unknown_command(app, argv[1]);
    if (!fault.empty()) {
      report(fault.c_str());
      return UsageError;
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    errno = 0;  // of what it prints, see above
    return app.exit(e) == 0 ? 0 : UsageError;
  }
  const ricci::tool::StopOnSignals stoppable;
  const ricci::tool::Deadline deadline(timeout);
  try {
    action();
    return 0;
  } catch (const ricci::UserError& e) {
    if (e.code() != ricci::ErrorCode::Stopped) throw;
    const ricci::tool::Stopped stopped = ricci::tool::how_stopped();
    report(stopped.message.c_str());
    return stopped.status;
  }
}

// Where the library was called from is a place in the caller's source, which for a tool says
// nothing to its users. Places in files they gave have the line that is meant.
bool is_of_the_tool(const ricci::SourcePosition& where) {
  std::string_view ours = std::source_location::current().file_name();
  ours.remove_suffix(std::string_view("main.cpp").size());
  return where.known() && where.text.empty() && std::string_view(where.file).starts_with(ours);
}

int report_error(const ricci::Error& e) {
  std::string text;
  for (ricci::Diagnostic d : e.diagnostics()) {
    if (d.code != ricci::ErrorCode::Internal && is_of_the_tool(d.where)) d.where = {};
    text += (text.empty() ? "" : "\n") + d.to_string();
  }
  return report(text.c_str());
}

int report_unexpected(const std::exception& e) {
  return report(fmt::format("error[internal]: something unexpected went wrong: {}\n  help: this "
                            "is a fault of Ricci; please report it with the command and its input",
                            e.what())
                    .c_str());
}

// Whatever is thrown, users get an error line of ours.
int run_reporting(int argc, char** argv) {
  constexpr const char* NoMemory =
      "error[out_of_memory]: the program needs more memory than there is";
  try {
    return run(argc, argv);
  } catch (const ricci::Error& e) {
    return report_error(e);
  } catch (const std::bad_alloc&) {
    return report(NoMemory);
  } catch (const std::length_error&) {  // more than any memory has
    return report(NoMemory);
  } catch (const std::system_error& e) {
    // What could not be printed is said by `finished`.
    return std::ferror(stdout) != 0 ? InputError : report_unexpected(e);
  } catch (const std::exception& e) {
    return report_unexpected(e);
  }
}

// The next file to be opened would have the descriptor of a stream that is closed, and what is
// printed would be in that file. These cannot be read and written, as if they were closed.
void hold_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    (void)::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
  errno = 0;
}

}  // namespace

int main(int argc, char** argv) {
  hold_standard_streams();
  // Output that nobody reads any more is an error, like a full disk, and no end without a word.
  std::signal(SIGPIPE, SIG_IGN);
  return finished(run_reporting(argc, argv));
}
