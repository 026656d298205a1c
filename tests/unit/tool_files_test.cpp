// What the tool says about files that cannot be read or written: always a line of its own, never of
// a library.
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ricci/io/npy.h"
#include "ricci/support/file.h"

#include "support/every_device.h"
#include "support/sanitized.h"
#include "support/scratch_folder.h"
#include "support/tool.h"
#include "test_paths.h"

namespace ricci::tool_files_test {
namespace {

using testing::run_tool;
using testing::ScratchFolder;
using testing::SpaceIsTaken;

constexpr const char* Program = "graph @g { %x = input \"x\" : f32[2] %y = add %x, %x return %y }";

// Runs the tool with a prefix of the shell's, and its output where a redirection says.
testing::ToolRun run_redirected(const std::string& prefix, const std::string& arguments,
                                const std::string& redirection) {
  const ScratchFolder scratch;
  write_file(scratch.file("in"), Program);
  const std::string command =
      fmt::format("{} '{}' {} <'{}' {} 2>'{}'", prefix, RICCI_TOOL_PATH, arguments,
                  scratch.file("in"), redirection, scratch.file("err"));
  const int status = std::system(command.c_str());
  return {
      WIFEXITED(status) ? WEXITSTATUS(status) : -1, {}, testing::read_text(scratch.file("err"))};
}

// What has no end is told by how it begins.
TEST(ToolFiles, DevicesThatNeverEndAreNotRead) {
  const ScratchFolder folder;
  for (const std::string& command :
       {"convert /dev/zero " + folder.file("x.npz"), std::string("inspect /dev/zero")}) {
    const auto ran =
        testing::run_shell(fmt::format("timeout 20 '{}' {}", RICCI_TOOL_PATH, command));
    EXPECT_EQ(ran.status, 1) << command << ran.err;
    EXPECT_NE(ran.err.find("error[file.format]: this is no file of weights"), std::string::npos)
        << ran.err;
    EXPECT_NE(ran.err.find("/dev/zero"), std::string::npos) << ran.err;
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file("x.npz")));
}

TEST(ToolFiles, OutputThatCannotBeWrittenIsAnError) {
  for (const char* arguments :
       {"--help", "--version", "run --help", "doc", "print -", "check -", "run - --random 1",
        "run - --random 1 --device reference", "compile -", "compile - --emit lir", "jvp - --wrt x",
        "opt - --passes canonicalize", "bench - --random 1 --reps 1", "show - --dot -"}) {
    const auto full = run_redirected("", arguments, ">/dev/full");
    EXPECT_EQ(full.status, 1) << arguments << "\n" << full.err;
    EXPECT_TRUE(full.err.starts_with("error[")) << arguments << "\n" << full.err;
    EXPECT_EQ(full.err.find("standard output"), full.err.rfind("standard output")) << full.err;
    EXPECT_NE(full.err.find("cannot write to standard output: No space left on device"),
              std::string::npos)
        << arguments << "\n"
        << full.err;
  }
  const auto closed = run_redirected("", "--help", ">&-");
  EXPECT_EQ(closed.status, 1) << closed.err;
  // A pipe whose reader is gone before anything is written.
  for (const char* arguments : {"--help", "doc", "print -", "run - --random 1", "compile -"}) {
    const ScratchFolder scratch;
    const std::string status = scratch.file("status");
    const auto unread = run_redirected(
        "{ sleep 0.2; ", arguments,
        "; echo $? >'" + status + "'; } | true; test \"$(cat '" + status + "')\" = 1");
    EXPECT_EQ(unread.status, 0) << arguments << testing::read_text(status);
  }
}

// The same where nothing is kept back before it is written.
TEST(ToolFiles, OutputThatIsWrittenAtOnceIsNoExceptionToThat) {
  if (!testing::has_device("cpu")) GTEST_SKIP() << "training by an interpreter takes long";
  const ScratchFolder scratch;
  const auto train = run_redirected(
      "stdbuf -o0",
      "train mlp --steps 2 --examples 60 --size 8 --out '" + scratch.file("run") + "'",
      ">/dev/full");
  EXPECT_EQ(train.status, 1);
  EXPECT_TRUE(train.err.starts_with("error[file.write]")) << train.err;
}

TEST(ToolFiles, NothingIsWrittenToFilesEither) {
  const ScratchFolder scratch;
  write_file(scratch.file("kept"), "old");
  const auto run =
      run_redirected("", "run - --random 1 --out '" + scratch.file("x.npz") + "'", ">/dev/full");
  EXPECT_EQ(run.status, 1);
  for (const auto& e : std::filesystem::directory_iterator(scratch.path())) {
    EXPECT_NE(e.path().extension(), ".tmp");
  }
}

// No file that is opened has the descriptor of a stream that was closed.
TEST(ToolFiles, WhatIsPrintedToAClosedStreamIsInNoFile) {
  if (!testing::has_device("cpu")) GTEST_SKIP() << "no device of this build trains";
  const ScratchFolder scratch;
  const auto run = run_redirected(
      "",
      "train mlp --width 8 --steps 2 --examples 60 --size 8 --out '" + scratch.file("run") + "'",
      ">&-");
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(run.err.starts_with("error[file.write]: cannot write to standard output")) << run.err;
  std::ifstream log(scratch.file("run/log.jsonl"));
  int lines = 0;
  for (std::string line; std::getline(log, line); ++lines) {
    EXPECT_TRUE(line.starts_with("{\"event\"")) << line;
  }
  EXPECT_GT(lines, 2);
}

TEST(ToolFiles, AFolderOfCodeThatOthersMayWriteToIsRefused) {
  if (!testing::has_device("cpu")) GTEST_SKIP() << "no device of this build has machine code";
  const ScratchFolder scratch;
  ASSERT_EQ(::chmod(scratch.path().c_str(), 0777), 0);
  const auto run =
      run_redirected("RICCI_CACHE_DIR='" + scratch.path() + "'", "run - --random 1", ">/dev/null");
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(run.err.starts_with("error[file.folder]: others may write")) << run.err;
}

// A group that files can be given and that this process is not run as; 0: none.
gid_t other_group() {
  if (::geteuid() == 0) return 65534;
  std::array<gid_t, 64> all{};
  const int count = ::getgroups(static_cast<int>(all.size()), all.data());
  for (int i = 0; i < count; ++i) {
    if (all[static_cast<std::size_t>(i)] != ::getegid()) return all[static_cast<std::size_t>(i)];
  }
  return 0;
}

// Who starts a program that has more rights than they have does not say where its code comes from.
TEST(ToolFiles, TheEnvironmentOfAnotherGroupIsNotObeyed) {
  if (!testing::has_device("cpu")) GTEST_SKIP() << "no device of this build has machine code";
  if (SpaceIsTaken) GTEST_SKIP() << "sanitizers want an environment of their own";
  const ScratchFolder scratch;
  ASSERT_EQ(::chmod(scratch.path().c_str(), 0777), 0);
  const std::string tool = scratch.file("ricci");
  std::filesystem::copy_file(RICCI_TOOL_PATH, tool);
  write_file(scratch.file("in"), Program);
  const auto run = [&] {
    return testing::run_shell("RICCI_CACHE_DIR='" + scratch.path() + "' '" + tool + "' run '" +
                              scratch.file("in") + "' --random 1");
  };
  const testing::ToolRun own = run();
  EXPECT_TRUE(own.err.starts_with("error[file.folder]: others may write")) << own.err;
  struct statvfs mounted{};
  const gid_t group = other_group();
  if (group == 0 || ::statvfs(tool.c_str(), &mounted) != 0 || (mounted.f_flag & ST_NOSUID) != 0 ||
      ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0 ||
      ::chown(tool.c_str(), static_cast<uid_t>(-1), group) != 0 ||
      ::chmod(tool.c_str(), 02755) != 0) {
    GTEST_SKIP() << "no program can have another group here";
  }
  const testing::ToolRun other = run();
  EXPECT_EQ(other.status, 0) << other.err;
}

TEST(ToolFiles, TheLinkersFolderIsNamedWhenItCannotBeMade) {
  if (!testing::has_device("cpu")) GTEST_SKIP() << "no device of this build has machine code";
  const auto run =
      run_redirected("TMPDIR=/nowhere", "compile - --emit shared -o /tmp/none.so", ">/dev/null");
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(run.err.starts_with("error[file]: cannot make a folder for the linker")) << run.err;
  EXPECT_NE(run.err.find("TMPDIR"), std::string::npos) << run.err;
}

// What a result is like is said a piece at a time: as doubles these bytes would be eight times as
// many as there is room for.
TEST(ToolFiles, SummariesTakeNoMemoryOfTheirOwn) {
  if (SpaceIsTaken) GTEST_SKIP() << "a sanitizer takes the space that is limited here";
  const ScratchFolder scratch;
  write_file(scratch.file("large.ric"), "graph @g { %c = constant 7 : u8[] %y = expand %c "
                                        "{target_shape = [3, 22369622]} return %y }");
  const auto run = run_redirected("ulimit -v 700000;",
                                  "run --device reference '" + scratch.file("large.ric") + "'",
                                  ">'" + scratch.file("out") + "'");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(testing::read_text(scratch.file("out")).find("min 7  max 7  mean 7"),
            std::string::npos);
}

TEST(ToolFiles, LargeFilesAreRefused) {
  const ScratchFolder scratch;
  for (const char* name : {"a.npy", "a.npz", "a.ric"}) {
    std::ofstream(scratch.file(name)) << "x";
    std::filesystem::resize_file(scratch.file(name), std::uintmax_t{1} << 42);
  }
  for (const std::string& arguments :
       {"run - --input x='" + scratch.file("a.npy") + "'",
        "run - --inputs '" + scratch.file("a.npz") + "'", "run '" + scratch.file("a.ric") + "'",
        std::string("run /dev/zero")}) {
    const auto run = run_tool(arguments, Program);
    EXPECT_EQ(run.status, 1) << arguments;
    EXPECT_TRUE(run.err.starts_with("error[file.size]")) << arguments << "\n" << run.err;
  }
}

// An array that the graph cannot take is not unpacked: there would be no room for this one.
TEST(ToolFiles, ArchivesAreReadAsFarAsTheGraphNeedsThem) {
  const ScratchFolder scratch;
  const Tensor x = Tensor::of<float>({2}, {1, 2});
  io::write_npz(scratch.file("more.npz"), {{"x", x}, {"nobody", x}});
  const auto unknown = run_tool("run - --inputs '" + scratch.file("more.npz") + "'", Program);
  EXPECT_EQ(unknown.status, 1);
  EXPECT_NE(unknown.err.find("nobody"), std::string::npos) << unknown.err;
  io::write_npz(scratch.file("other.npz"), {{"x", Tensor::zeros(f64({3}))}});
  const auto other = run_tool("run - --inputs '" + scratch.file("other.npz") + "'", Program);
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.err.find("f64[3]"), std::string::npos) << other.err;
  io::write_npz(scratch.file("x.npz"), {{"x", x}});
  const std::string good = "run - --inputs '" + scratch.file("x.npz") + "'";
  EXPECT_EQ(run_tool(good, Program).status, 0);
  const auto limited = run_tool(good + " --max-input-bytes 7", Program);
  EXPECT_EQ(limited.status, 1);
  EXPECT_NE(limited.err.find("error[file.npz_limit]"), std::string::npos) << limited.err;
}

}  // namespace
}  // namespace ricci::tool_files_test
