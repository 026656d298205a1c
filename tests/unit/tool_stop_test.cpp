// Commands that take too long: --timeout and Ctrl-C.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ricci/io/file.h"

#include "support/tool.h"
#include "test_paths.h"

namespace ricci::testing::tool_stop_test {
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

// What is waited for need not come: a pipe nobody writes, or nobody reads.
TEST(ToolStop, TimeLimitsEndTheWaitForPipes) {
  const std::string pipe = scratch("silent");
  ::unlink(pipe.c_str());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string graph = "graph @g { %x = input \"x\" : f32[2] return %x }";
  for (const std::string& command :
       {"run --timeout 0.05 " + pipe, "check --timeout 0.05 " + pipe,
        "run --timeout 0.05 - --inputs " + pipe, "run --timeout 0.05 - --input x=" + pipe,
        "run --timeout 0.05 --random 1 - --out " + pipe, "print --timeout 0.05 " + pipe,
        "opt --passes canonicalize --timeout 0.05 " + pipe, "grad --timeout 0.05 --wrt x " + pipe,
        "compile --timeout 0.05 " + pipe, "show --dot - --timeout 0.05 " + pipe,
        "inspect --timeout 0.05 " + pipe, "convert --timeout 0.05 " + pipe + " " + scratch("c.npz"),
        "train mlp --timeout 0.05 --config " + pipe}) {
    const ToolRun ran = run_tool(command, graph);
    EXPECT_EQ(ran.status, 1) << command << ran.err;
    EXPECT_NE(ran.err.find("error[stopped]: not done after 0.05 s"), std::string::npos)
        << command << ran.err;
  }
}

// The linker is waited for; it and what it has started end with the command.
TEST(ToolStop, TimeLimitsEndTheLinker) {
  const std::string linker = scratch("linker.sh");
  const std::string seen = scratch("linker.pid");
  std::filesystem::remove(seen);
  io::write_file(linker, "#!/bin/sh\nsleep 300 &\necho $! > '" + seen + "'\nwait\n");
  ASSERT_EQ(::chmod(linker.c_str(), 0700), 0);
  const auto begun = std::chrono::steady_clock::now();
  io::write_file(scratch("plain.ric"),
                 std::string_view("graph @g { %x = input \"x\" : f32[2] return %x }"));
  const ToolRun ran =
      run_shell("CXX='" + linker + "' '" RICCI_TOOL_PATH "' compile '" + scratch("plain.ric") +
                "' --emit shared --timeout 5 -o '" + scratch("linked.so") + "'");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::minutes(4));
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_NE(ran.err.find("error[stopped]: not done after 5 s"), std::string::npos) << ran.err;
  std::ifstream number(seen);
  pid_t sleeper = 0;
  ASSERT_TRUE(number >> sleeper) << "it was not linked within the time";
  // Someone has to notice that it is gone, which may take a moment.
  bool is_gone = false;
  for (int i = 0; i < 500 && !is_gone; ++i) {
    std::ifstream status("/proc/" + std::to_string(sleeper) + "/stat");
    std::string word;
    is_gone = !(status >> word >> word >> word) || word == "Z";
    if (!is_gone) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(is_gone);
}

// Whatever a command does, it may be told how long; for `serve` that is how long a request may
// take.
TEST(ToolStop, EveryCommandHasATimeLimit) {
  const std::string all = run_tool("--help").out;
  std::istringstream lines(all.substr(all.find("\nSubcommands:")));
  int commands = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ") || line.starts_with("   ")) continue;
    const std::string command = line.substr(2, line.find(' ', 2) - 2);
    EXPECT_NE(run_tool(command + " --help").out.find("--timeout SECONDS"), std::string::npos)
        << command;
    ++commands;
  }
  EXPECT_GT(commands, 15) << all;
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

// How a command ends that is interrupted once it can be, and what it has said.
struct Interrupted {
  int status = 0;
  std::string err;
};
Interrupted interrupted(std::vector<std::string> words, int number) {
  const std::string log = scratch("interrupted.txt");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const std::string program = RICCI_TOOL_PATH;
  words.insert(words.begin(), program);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  // Tests in the background ignore interrupts; the tool is to see them.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t seen;
  sigemptyset(&seen);
  sigaddset(&seen, number);
  posix_spawnattr_setsigdefault(&attributes, &seen);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, program.c_str(), &actions, &attributes, arguments.data(), environ),
            0);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  while (!handles(child, number)) {
    if (::waitpid(child, &status, WNOHANG) != 0) {
      ADD_FAILURE() << "it ended by itself";
      return {status, read_text(log)};
    }
    std::this_thread::yield();
  }
  EXPECT_EQ(::kill(child, number), 0);
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return {status, read_text(log)};
}

TEST(ToolStop, InterruptsEndCommandsCleanly) {
  io::write_file(scratch("endless.ric"), std::string_view(Endless));
  const std::string pipe = scratch("silent");
  ::unlink(pipe.c_str());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  using Words = std::vector<std::string>;
  for (const Words& words :
       {Words{"run", "--random", "1", scratch("endless.ric")}, Words{"run", pipe},
        Words{"inspect", pipe}, Words{"convert", pipe, scratch("out.npz")},
        Words{"train", "mlp", "--config", pipe}}) {
    const Interrupted ran = interrupted(words, SIGINT);
    ASSERT_TRUE(WIFEXITED(ran.status)) << words[0] << " by signal " << WTERMSIG(ran.status);
    EXPECT_EQ(WEXITSTATUS(ran.status), 130) << words[0];
    EXPECT_EQ(ran.err, "error[stopped]: interrupted\n") << words[0];
    const Interrupted ended = interrupted(words, SIGTERM);
    ASSERT_TRUE(WIFEXITED(ended.status)) << words[0] << " by signal " << WTERMSIG(ended.status);
    EXPECT_EQ(WEXITSTATUS(ended.status), 143) << words[0];
  }
}

}  // namespace
}  // namespace ricci::testing::tool_stop_test
