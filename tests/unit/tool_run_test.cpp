// `ricci run` and `ricci check`: exit statuses, messages, outputs and files.
#include <filesystem>

#include <gtest/gtest.h>

#include "ricci/io/file.h"
#include "ricci/io/npy.h"

#include "support/every_device.h"
#include "support/tool.h"
#include "test_paths.h"

namespace ricci::tool_run_test {
namespace {

using testing::run_tool;
using testing::scratch;

constexpr const char* Double = R"(
graph @double { %x = input "x" : f32[2] %y = add %x, %x return %y }
graph @negate { %x = input "x" : f32[n] %y = neg %x return %y }
)";

std::string program(const std::string& name) {
  return std::string(RICCI_SOURCE_DIR) + "/examples/programs/" + name + ".ric";
}

TEST(ToolRun, ExamplesRunWithRandomInputs) {
  std::size_t count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(RICCI_SOURCE_DIR) + "/examples/programs")) {
    const std::string file = entry.path().string();
    const auto checked = run_tool("check '" + file + "'");
    EXPECT_EQ(checked.status, 0) << checked.err;
    EXPECT_TRUE(checked.out.starts_with("ok: @")) << checked.out;
    const auto first = run_tool("run --random 1 '" + file + "'");
    EXPECT_EQ(first.status, 0) << file << first.err;
    EXPECT_TRUE(first.out.starts_with("out0 %")) << first.out;
    EXPECT_EQ(first.out.find("not finite"), std::string::npos) << first.out;
    EXPECT_EQ(first.out, run_tool("run --random 1 '" + file + "'").out);
    EXPECT_NE(first.out, run_tool("run --random 2 '" + file + "'").out);
    ++count;
  }
  EXPECT_GE(count, 5U);
}

TEST(ToolRun, ChecksOfDerivativesKeepToALimitOfMemory) {
  constexpr const char* Large =
      R"(graph @large { %x = input "x" : f64[4096] %y = tanh %x return %y })";
  EXPECT_EQ(run_tool("check - --random 1 --memory-limit 1000000000", Large).status, 0);
  const auto refused = run_tool("check - --random 1 --memory-limit 1000", Large);
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("error[out_of_memory"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("1000"), std::string::npos) << refused.err;
}

TEST(ToolRun, ABudgetOfMemoryIsMetOrRefused) {
  constexpr const char* Long = R"(graph @long {
    %x = input "x" : f64[64, 64]
    %a = matmul %x, %x
    %b = matmul %a, %a
    %c = matmul %b, %a
    return %c })";
  EXPECT_EQ(run_tool("run - --random 1 --memory-budget 1000000000", Long).status, 0);
  for (const std::string command : {"run", "bench", "compile"}) {
    const std::string random = command == "compile" ? "" : " --random 1";
    const auto refused = run_tool(command + " - --memory-budget 1000" + random, Long);
    EXPECT_EQ(refused.status, 1) << command;
    EXPECT_NE(refused.err.find("error[out_of_memory"), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("its budget is 1000"), std::string::npos) << refused.err;
  }
  EXPECT_EQ(run_tool("run - --random 1 --memory-budget 0", Long).status, 2);
  EXPECT_EQ(run_tool("run - --random 1 --device reference --memory-budget 1000000", Long).status,
            1);
}

TEST(ToolRun, NumbersThatDoNotFitAreRefused) {
  for (const std::string option :
       {"--seed 99999999999999999999", "--random 18446744073709551616", "--random -1",
        "--threads 4294967297", "--threads 010", "--memory-limit 9223372036854775808",
        "--limit nodes=99999999999999999999", "--limit nodes=", "--limit nodes",
        "--max-input-bytes 99999999999999999999", "--max-input-bytes 0", "--max-input-bytes 010",
        "--memory-budget 0", "--timeout nan", "--timeout 0", "--timeout 5x", "--limit node=1"}) {
    const auto run = run_tool("run - " + option, Double);
    EXPECT_EQ(run.status, 2) << option;
    EXPECT_NE(run.err.find(option.substr(0, option.find(' '))), std::string::npos) << run.err;
  }
  const auto size =
      run_tool("run - --graph negate --random 1 --size n=99999999999999999999", Double);
  EXPECT_EQ(size.status, 1);
  EXPECT_NE(size.err.find("'99999999999999999999' is not a size for 'n'"), std::string::npos);
  EXPECT_EQ(run_tool("vmap - --batch x --size 99999999999999999999", Double).status, 2);
  EXPECT_EQ(run_tool("grad - --wrt x --save-budget 99999999999999999999", Double).status, 2);
  EXPECT_EQ(run_tool("run - --random 18446744073709551615", Double).status, 0);
}

TEST(ToolRun, LimitsOfTextAreRaisedAndLowered) {
  const auto refused = run_tool("print - --limit nodes=3", Double);
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("the file has 4 nodes or more, but may have 3"), std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("--limit nodes="), std::string::npos);
  EXPECT_EQ(run_tool("print - --limit nodes=3 --limit nodes=4", Double).status, 0);
}

TEST(ToolRun, WhatDoesNotFitInMemoryIsRefusedAtOnce) {
  const std::string huge =
      "graph @huge { %x = constant splat 1.0 : f32[1000000000000] %y = sin %x return %y }";
  for (const std::string command : {"run -", "run - --device reference", "bench -"}) {
    const auto run = run_tool(command, huge);
    EXPECT_EQ(run.status, 1);
    EXPECT_TRUE(run.err.starts_with("error[out_of_memory.run]: 'huge' needs ")) << run.err;
  }
  const std::string fed = "graph @fed { %x = input \"x\" : f32[n, n] %y = sin %x return %y }";
  for (const std::string command : {"run", "run --device reference", "bench", "check"}) {
    const auto run = run_tool(command + " - --random 1 --size n=1000000", fed);
    EXPECT_EQ(run.status, 1);
    EXPECT_TRUE(run.err.starts_with("error[out_of_memory.random]: ")) << run.err;
  }
  const auto folded = run_tool("opt - --passes constant_folding,canonicalize", huge);
  EXPECT_EQ(folded.status, 0) << folded.err;
  const auto small = run_tool("run - --random 1 --device reference --memory-limit 10", Double);
  EXPECT_NE(small.err.find("may take 10"), std::string::npos) << small.err;
}

TEST(ToolRun, LoopsAreNotUnrolledWithoutEnd) {
  const std::string loops = R"(graph @loops {
    %x = input "x" : f32[2]
    %y = while %x {max_iterations = 1000000000000}
      cond { %c = input "c" : f32[2] %t = constant true : bool[] return %t }
      body { %c = input "c" : f32[2] %d = sin %c return %d }
    %z = scan %x {length = 1000000000000} body { %c = input "c" : f32[2] %d = sin %c return %d }
    return %y, %z })";
  for (const std::string pass : {"unroll_while", "unroll_scans", "prepare_for_autodiff"}) {
    const auto run = run_tool("opt - --passes " + pass, loops);
    EXPECT_EQ(run.status, 1);
    EXPECT_TRUE(run.err.starts_with("error[refused.unroll]: ")) << pass << ": " << run.err;
  }
}

TEST(ToolRun, ReadsArraysAndWritesResults) {
  io::write_npy(scratch("x.npy"), Tensor::of<float>({2}, {1, -2}));
  const auto run =
      run_tool("run - --input x=" + scratch("x.npy") + " --out " + scratch("y.npz"), Double);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, "out0 %y : f32[2] = [2.0, -4.0]\n");
  const io::NamedTensors out = io::read_npz(scratch("y.npz"));
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].first, "out0");
  EXPECT_EQ(out[0].second.numbers<double>(), (std::vector<double>{2, -4}));
}

TEST(ToolRun, ArchivesFeedByNameAndSizesComeFromThem) {
  io::write_npz(scratch("in.npz"), {{"x", Tensor::of<float>({3}, {1, 2, 3})}});
  const auto run = run_tool("run - --graph negate --inputs " + scratch("in.npz"), Double);
  EXPECT_EQ(run.out, "out0 %y : f32[3] = [-1.0, -2.0, -3.0]\n") << run.err;
  EXPECT_NE(run_tool("run - --graph negate --random 1 --size n=2", Double).out.find("f32[2]"),
            std::string::npos);
}

TEST(ToolRun, SizesBindSymbolsOfAttributesAndPolynomials) {
  const std::string size = "graph @g { %n = dim_size {dim = n} return %n }";
  EXPECT_TRUE(run_tool("run - --size n=3", size).out.ends_with("= 3\n"))
      << run_tool("run - --size n=3", size).out;
  const auto unbound = run_tool("run -", size);
  EXPECT_EQ(unbound.status, 1);
  EXPECT_NE(unbound.err.find("--size n=3"), std::string::npos) << unbound.err;
  const std::string twice = "graph @g { %x = input \"x\" : f32[2*n] return %x }";
  EXPECT_NE(run_tool("run - --random 1 --size n=3", twice).out.find("f32[6]"), std::string::npos);
  EXPECT_NE(run_tool("run - --random 1", twice).out.find("f32[8]"), std::string::npos);
  const std::string target =
      "graph @g { %x = input \"x\" : f32[] %y = expand %x {target_shape = [m]} return %y }";
  EXPECT_NE(run_tool("run - --random 1 --size m=2", target).out.find("f32[2]"), std::string::npos);
}

TEST(ToolRun, UnknownCommandsAreNamed) {
  const auto far = run_tool("frobnicate");
  EXPECT_EQ(far.status, 2);
  EXPECT_NE(far.err.find("no command 'frobnicate'"), std::string::npos) << far.err;
  EXPECT_NE(far.err.find("run, check, print"), std::string::npos) << far.err;
  EXPECT_NE(run_tool("chek").err.find("did you mean 'check'?"), std::string::npos);
}

TEST(ToolRun, Bf16IsWidenedInFilesAndTakenBack) {
  const std::string text = "graph @g { %x = input \"x\" : bf16[2] %y = neg %x return %y }";
  io::write_npy(scratch("b.npy"), Tensor::of<float>({2}, {1, 2.5}));
  const auto run =
      run_tool("run - --input x=" + scratch("b.npy") + " --out " + scratch("b.npz"), text);
  EXPECT_EQ(run.out, "out0 %y : bf16[2] = [-1.0, -2.5]\n") << run.err;
  EXPECT_EQ(io::read_npz(scratch("b.npz"))[0].second.dtype(), DType::F32);
}

TEST(ToolRun, LongOutputsAreSummarised) {
  const std::string text = "graph @g { %z = constant splat 0.0 : f32[100] %l = log %z "
                           "%o = constant splat 1.5 : f32[100] return %l, %o }";
  EXPECT_EQ(run_tool("run -", text).out, "out0 %l : f32[100] = no finite value  not finite 100\n"
                                         "out1 %o : f32[100] = min 1.5  max 1.5  mean 1.5\n");
}

TEST(ToolRun, DevicesAgree) {
  const std::string text = "graph @g { %x = input \"x\" : f64[4] %y = neg %x return %y }";
  const auto standard = run_tool("run - --random 1", text);
  EXPECT_EQ(standard.status, 0) << standard.err;
  EXPECT_EQ(standard.out, run_tool("run - --random 1 --device reference", text).out);
  for (const std::string& device : testing::usable_devices()) {
    EXPECT_EQ(standard.out, run_tool("run - --random 1 --device " + device, text).out) << device;
  }
}

TEST(ToolRun, ProfilesAndTracesARun) {
  const auto run = run_tool(
      "run - --graph double --random 1 --threads 1 --profile --trace " + scratch("t.json"), Double);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("out0 %y : f32[2] = ")) << run.out;
  EXPECT_NE(run.out.find("1 runs"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("add [kernel]"), std::string::npos) << run.out;
  const std::string trace = testing::read_text(scratch("t.json"));
  EXPECT_NE(trace.find("\"name\": \"add\""), std::string::npos) << trace;
  const auto lir = run_tool("run - --graph double --random 1 --device lir --profile", Double);
  EXPECT_NE(lir.out.find("add [kernel]"), std::string::npos) << lir.out << lir.err;
}

TEST(ToolRun, FindsTheFirstNumberThatIsNotFinite) {
  const std::string text =
      "graph @g { %x = input \"x\" : f32[2] %n = neg %x %m = sub %n, %x %y = log %m return %y }";
  io::write_npy(scratch("ones.npy"), Tensor::of<float>({2}, {1, 1}));
  const std::string command = "run - --input x=" + scratch("ones.npy");
  EXPECT_EQ(run_tool(command, text).status, 0);
  const auto checked = run_tool(command + " --check-finite", text);
  EXPECT_EQ(checked.status, 1);
  EXPECT_NE(checked.err.find("log"), std::string::npos) << checked.err;
  EXPECT_EQ(run_tool(command + " --check-finite --device lir", text).err, checked.err);
}

TEST(ToolRun, RefusesWhatItHasNoRoomFor) {
  const auto run =
      run_tool("run - --graph negate --random 1 --size n=1000 --memory-limit 100", Double);
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.err.find("out_of_memory"), std::string::npos) << run.err;
}

TEST(ToolRun, OnlyProgramsAreProfiled) {
  const auto run = run_tool("run - --random 1 --device reference --profile", Double);
  EXPECT_EQ(run.status, 1);
  const std::string standard(Device::standard().name());
  EXPECT_NE(run.err.find("--device " + standard), std::string::npos) << run.err;
}

TEST(ToolRun, KeepsMachineCodeWhereTheEnvironmentSays) {
  if (!testing::has_device("cpu")) GTEST_SKIP() << "no device of this build has machine code";
  const std::string folder = scratch("code");
  ::setenv("RICCI_CACHE_DIR", folder.c_str(), 1);
  const auto run = run_tool("run - --random 1", Double);
  ::unsetenv("RICCI_CACHE_DIR");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_FALSE(std::filesystem::is_empty(folder));
}

TEST(ToolRun, FaultsInTheInputExitWithOne) {
  const struct {
    std::string arguments;
    std::string text;
    std::string message;
  } faults[] = {
      {"run /nowhere.ric", "", "error[file.open]"},
      {"run -", "", "holds no graph"},
      {"run -", "graph @g { %x = nonsense return %x }", "error[parse"},
      {"run - --graph other", Double, "its graphs are double, negate"},
      {"run -", Double, "no value is given for 'x'"},
      {"run - --input y=/nowhere.npy", Double, "error["},
      {"run - --random 1 --size m=3", Double, "no dimension is named 'm'"},
      {"run - --random 1 --size n=-3 --graph negate", Double, "is not a size"},
      {"run - --random 1 --size n=3 --size n=4 --graph negate", Double, "is given twice"},
      {"run - --random 1 --out /nowhere/out.npz", Double, "error[file.write]"},
      {"check -", "graph @g { return %x }", "<stdin>:1"},
  };
  for (const auto& f : faults) {
    const auto run = run_tool(f.arguments, f.text);
    EXPECT_EQ(run.status, 1) << f.arguments;
    EXPECT_EQ(run.out, "") << f.arguments;
    EXPECT_NE(run.err.find(f.message), std::string::npos) << f.arguments << "\n" << run.err;
  }
}

TEST(ToolRun, NothingIsWrittenWhenARunFails) {
  io::write_file(scratch("kept.npz"), "old");
  EXPECT_EQ(run_tool("run - --out " + scratch("kept.npz"), Double).status, 1);
  EXPECT_EQ(testing::read_text(scratch("kept.npz")), "old");
}

TEST(ToolRun, WrongUsageExitsWithTwo) {
  for (const char* arguments :
       {"", "fly", "run", "run - --input x", "run - --device tpu", "run - --seed many", "show -",
        "run - --no-such-option", "opt -", "doc extra"}) {
    const auto run = run_tool(arguments, Double);
    EXPECT_EQ(run.status, 2) << arguments;
    EXPECT_EQ(run.out, "") << arguments;
    EXPECT_NE(run.err, "") << arguments;
  }
  EXPECT_EQ(run_tool("--version").status, 0);
  EXPECT_TRUE(run_tool("--version").out.starts_with("ricci "));
  EXPECT_EQ(run_tool("run --help").status, 0);
}

TEST(ToolRun, CheckCountsNodesOfEveryGraph) {
  EXPECT_EQ(run_tool("check -", Double).out, "ok: @double: 2 nodes, 1 input, 0 params, 1 output\n"
                                             "ok: @negate: 2 nodes, 1 input, 0 params, 1 output\n");
  EXPECT_NE(run_tool("check " + program("clip")).out.find("15 nodes"), std::string::npos);
}

}  // namespace
}  // namespace ricci::tool_run_test
