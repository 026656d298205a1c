// Commands that take too long: --timeout and Ctrl-C.
#include <csignal>
#include <fstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ricci/io/file.h"

#include "support/tool.h"
#include "test_paths.h"

namespace ricci::testing {
namespace {

constexpr const char* Endless = R"(
graph @endless {
  %x = input "x" : f32[2]
  %y = while %x cond {
    %c = input "c" : f32[2]
    %d = eq %c, %c
    return %d
  } body {
    %c = input "c" : f32[2]
    %d = sin %c
    return %d
  }
  return %y
}
)";

TEST(ToolStop, TimeLimitsEndCommands) {
  for (const char* command :
       {"run --random 1 --timeout 0.05 -", "run --random 1 --timeout 0.05 --device reference -",
        "run --random 1 --timeout 0.05 --device lir -", "bench --random 1 --timeout 0.05 -",
        "check --random 1 --timeout 0.05 --wrt x -"}) {
    const ToolRun ran = run_tool(command, Endless);
    EXPECT_EQ(ran.status, 1) << command << ran.err;
    EXPECT_NE(ran.err.find("error[stopped]: not done after 0.05 s"), std::string::npos)
        << command << ran.err;
    EXPECT_EQ(ran.out, "") << command;
  }
  // Bodies without anything to compute, of a loop that goes on for ever.
  constexpr const char* Idle = R"(graph @idle {
    %x = input "x" : c64[0]
    %y, %trips = while %x cond {
      %c = input "c" : c64[0]
      return %c
    } body {
      %c = input "c" : c64[0]
      return %c
    }
    return %trips
  })";
  for (const char* device : {"", " --device lir"}) {
    const ToolRun idle = run_tool(std::string("run --random 1 --timeout 0.05 -") + device, Idle);
    EXPECT_NE(idle.err.find("error[stopped]"), std::string::npos) << device << idle.err;
  }
  const ToolRun quick = run_tool("run --random 1 --timeout 1000 -",
                                 "graph @g { %x = input \"x\" : f32[2] return %x }");
  EXPECT_EQ(quick.status, 0) << quick.err;
  EXPECT_EQ(run_tool("run --random 1 --timeout 0 -", Endless).status, 2);
  EXPECT_EQ(run_tool("run --random 1 --timeout soon -", Endless).status, 2);
}

// Does a process have a handler for a signal? One that is interrupted before just ends.
bool handles(pid_t process, int signal) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigCgt:")) continue;
    return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1U) != 0;
  }
  return false;
}

TEST(ToolStop, InterruptsEndCommandsCleanly) {
  io::write_file(scratch("endless.ric"), std::string_view(Endless));
  const std::string log = scratch("interrupted.txt");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  std::string program = RICCI_TOOL_PATH;
  std::string file = scratch("endless.ric");
  std::string words[] = {program, "run", "--random", "1", file};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(),
                       words[3].data(), words[4].data(), nullptr};
  // Tests in the background ignore interrupts; the tool is to see them.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t interrupts;
  sigemptyset(&interrupts);
  sigaddset(&interrupts, SIGINT);
  posix_spawnattr_setsigdefault(&attributes, &interrupts);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  ASSERT_EQ(posix_spawn(&child, program.c_str(), &actions, &attributes, arguments, environ), 0);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  while (!handles(child, SIGINT)) {
    ASSERT_EQ(::waitpid(child, &status, WNOHANG), 0) << "it ended by itself";
    std::this_thread::yield();
  }
  ASSERT_EQ(::kill(child, SIGINT), 0);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(read_text(log), "error[stopped]: interrupted\n");
}

}  // namespace
}  // namespace ricci::testing
