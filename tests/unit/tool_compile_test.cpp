// `ricci compile` and `ricci bench`: what they print, and how they end.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/runtime/device.h"

#include "support/tool.h"

namespace ricci::tool_compile_test {
namespace {

using testing::read_text;
using testing::run_tool;
using testing::scratch;

constexpr const char* Net = R"(
graph @net {
  %x = input "x" : f32[n, 3]
  %w = param "w" : f32[3, 8]
  %b = param "b" : f32[8]
  %h = matmul %x, %w
  %s = add %h, %b
  %y = tanh %s
  return %y
}
graph @step {
  %w = param "w" : f32[100]
  %g = input "g" : f32[100]
  %n = sub %w, %g
  return %n
}
)";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ToolCompile, ReportsStepsCostsAndMemory) {
  const auto run = run_tool("compile - --size n=4", Net);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("@net: 3 ops in 1 step: 1 matmul; ")) << run.out;
  EXPECT_TRUE(has(run.out, "memory: arena ")) << run.out;
  EXPECT_TRUE(has(run.out, "(lower bound ")) << run.out;
  EXPECT_TRUE(has(run.out, "matmul, then add+tanh")) << run.out;
  EXPECT_TRUE(has(run.out, "256 flops")) << run.out;  // 2·4·8·3 + 2·4·8
  EXPECT_EQ(run.out, run_tool("compile - --size n=4 --report", Net).out);
  EXPECT_TRUE(has(run_tool("compile - --size n=4 --no-fuse", Net).out, "in 3 steps: 2 kernels"));
}

TEST(ToolCompile, SaysWhereItsTimeGoes) {
  const auto run = run_tool("compile - --size n=4 --time-passes", Net);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, run_tool("compile - --size n=4", Net).out);
  for (const char* phase : {"// compile  ", "\n//   prepare  ", "\n//   schedule  ",
                            "\n//   machine code of kernels  ", "\n//     LLVM  "}) {
    EXPECT_TRUE(has(run.err, phase)) << phase << " in " << run.err;
  }
}

TEST(ToolCompile, ReportsBodies) {
  const auto run = run_tool("compile -", R"(
graph @loop {
  %x = input "x" : f32[4]
  %y = scan %x {length = 3} body {
    %c = input "c" : f32[4]
    %n = exp %c
    return %n
  }
  return %y
}
)");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(has(run.out, "body:")) << run.out;
  EXPECT_TRUE(has(run.out, "exp")) << run.out;
}

TEST(ToolCompile, EmitsLirAndCode) {
  const auto lir = run_tool("compile - --size n=4 --emit lir", Net);
  EXPECT_TRUE(lir.out.starts_with("program @net arena ")) << lir.out << lir.err;
  EXPECT_TRUE(has(lir.out, "kernel k0 ")) << lir.out;
  const auto llvm = run_tool("compile - --size n=4 --emit llvm", Net);
  EXPECT_TRUE(has(llvm.out, "define ")) << llvm.err;
  const auto assembly = run_tool("compile - --size n=4 --emit asm --target portable", Net);
  EXPECT_TRUE(has(assembly.out, "k0:")) << assembly.err;
  EXPECT_FALSE(has(assembly.out, "%ymm")) << assembly.out;
  EXPECT_TRUE(has(run_tool("compile - --size n=4 --emit asm --target avx2", Net).out, "%ymm"));
  const std::string file = scratch("kernels.o");
  const auto object =
      run_tool("compile - --size n=4 --emit object --target avx512 -o " + file, Net);
  EXPECT_EQ(object.status, 0) << object.err;
  EXPECT_EQ(read_text(file).substr(1, 3), "ELF");
}

TEST(ToolCompile, EmitsTheCodeOfLoopsThatRuns) {
  const auto text = [](int size) {
    return fmt::format(R"(
graph @loop {{
  %x = input "x" : f32[{0}]
  %y = scan %x {{length = 3}} body {{
    %c = input "c" : f32[{0}]
    %n = exp %c
    return %n
  }}
  return %y
}}
)",
                       size);
  };
  // A small body is written out in the loop's own function, a large one is run step by step.
  for (const char* kind : {"asm", "llvm"}) {
    const std::string command = fmt::format("compile - --emit {} --target portable", kind);
    const auto small = run_tool(command, text(4));
    EXPECT_TRUE(has(small.out, "s0_loop")) << small.out << small.err;
    EXPECT_FALSE(has(small.out, "k0")) << small.out;
    const auto large = run_tool(command, text(100000));
    EXPECT_TRUE(has(large.out, "s0_body_k0")) << large.out << large.err;
    EXPECT_FALSE(has(large.out, "s0_loop")) << large.out;
  }
}

TEST(ToolCompile, WritesProgramsWithTheirHeaders) {
  const std::string file = scratch("my_step.o");
  const auto run =
      run_tool("compile - --graph step --emit object --donate w=0 --name my_step -o " + file, Net);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, "");
  const std::string header = read_text(scratch("my_step.h"));
  EXPECT_TRUE(has(header, "int my_step_run(my_step_program* program, ")) << header;
  EXPECT_TRUE(has(header, "  float* w; /* param 'w', updated in place: f32[100] */")) << header;
  EXPECT_TRUE(has(header, "  const float* g; /* input 'g': f32[100] */")) << header;
}

TEST(ToolCompile, WritesTrainingSteps) {
  const std::string loss = R"(
graph @loss {
  %x = input "x" : f32[8, 3]
  %w = param "w" : f32[3]
  %p = mul %x, %w
  %s = square %p
  %l = reduce %s {op = mean, axes = [0, 1]}
  return %l
}
)";
  const auto run = run_tool(
      "compile - --train adam --learning-rate 0.1 --emit object -o " + scratch("train.o"), loss);
  EXPECT_EQ(run.status, 0) << run.err;
  const std::string header = read_text(scratch("train.h"));
  EXPECT_TRUE(has(header, "  float* w; /* param 'w', updated in place (trained): f32[3] */"))
      << header;
  EXPECT_TRUE(has(header, "  float* w_first; /* param 'w.first', updated in place (")) << header;
  EXPECT_TRUE(has(header, "  float* loss; /* output 0: f32[] */")) << header;
  EXPECT_TRUE(has(run_tool("compile - --train sgd", loss).out, "steps")) << "a report too";
}

TEST(ToolCompile, OutputsTakeTheBuffersOfInputs) {
  const auto plain = run_tool("compile - --graph step --emit lir", Net);
  const auto donated = run_tool("compile - --graph step --emit lir --donate w=0", Net);
  EXPECT_EQ(donated.status, 0) << donated.err;
  EXPECT_EQ(plain.out, donated.out)
      << "both write the output at once; only who hands it in differs";
}

TEST(ToolCompile, ReportsForAnotherDevice) {
  const auto report = run_tool("compile - --graph step --device lir", Net);
  EXPECT_EQ(report.status, 0) << report.err;
  EXPECT_TRUE(has(report.out, "scratch 0")) << report.out;
  EXPECT_EQ(run_tool("compile - --graph step --device lir --emit lir", Net).status, 0);
}

// CUDA C++ and reports need nothing, PTX the library that makes it.
TEST(ToolCompile, MakesCodeForGpusThatAreNotHere) {
  const std::vector<std::string> devices = Device::names();
  if (std::ranges::find(devices, "cuda") == devices.end()) {
    GTEST_SKIP() << "this build knows no NVIDIA GPUs";
  }
  const std::string compile = "compile - --size n=4 --device cuda ";
  const auto source = run_tool(compile + "--emit cuda", Net);
  EXPECT_EQ(source.status, 0) << source.err;
  EXPECT_TRUE(has(source.out, "extern \"C\" __global__ void")) << source.out;
  EXPECT_TRUE(has(source.out, "add+tanh")) << source.out;
  const auto report = run_tool(compile, Net);
  EXPECT_TRUE(report.out.starts_with("@net: 3 ops in 1 step: 1 cublaslt; ")) << report.out;
  EXPECT_TRUE(has(run_tool(compile + "--tf32", Net).out, "cublaslt tf32"));
  EXPECT_EQ(run_tool(compile + "--emit lir", Net).status, 0);
  const auto ptx = run_tool(compile + "--emit ptx --target sm_90", Net);
  const auto old = run_tool(compile + "--emit ptx --target sm_70", Net);
  const auto odd = run_tool(compile + "--emit ptx --target avx2", Net);
  if (ptx.status != 0) {
    for (const auto& run : {ptx, old, odd}) {
      EXPECT_EQ(run.status, 1);
      EXPECT_TRUE(has(run.err, "there is no NVRTC")) << run.err;
      EXPECT_TRUE(has(run.err, "RICCI_CUDA_LIBRARIES")) << run.err;
    }
    return;
  }
  EXPECT_TRUE(has(ptx.out, ".target sm_90")) << ptx.out;
  EXPECT_TRUE(has(old.err, "kernels need sm_80 or newer")) << old.err;
  EXPECT_TRUE(has(odd.err, "'avx2' is no architecture")) << odd.err;
  EXPECT_TRUE(has(run_tool(compile + "--emit ptx --target sm_81", Net).err, "sm_90"));
}

TEST(ToolCompile, FaultsExitWithOne) {
  const struct {
    std::string arguments;
    std::string message;
  } faults[] = {
      {"compile -", "--size n=32"},
      {"compile - --size m=3", "no dimension is named 'm'"},
      {"compile - --graph step --emit object", "-o step.o"},
      {"compile - --graph step --emit shared", "-o libstep.so"},
      {"compile - --graph step --emit object --name a-b -o x.o", "use 'a_b'"},
      {"compile - --graph step --donate w=1", "is not the number of an output"},
      {"compile - --graph step --donate v=0", "error[name"},
      {"bench -", "no value is given"},
      {"compile - --graph step --device lir --emit llvm", "'lir' has no code in the form of llvm"},
      {"compile - --graph step --device lir --emit object -o x.o", "error[unsupported_on_backend]"},
  };
  for (const auto& f : faults) {
    const auto run = run_tool(f.arguments, Net);
    EXPECT_EQ(run.status, 1) << f.arguments;
    EXPECT_EQ(run.out, "") << f.arguments;
    EXPECT_TRUE(has(run.err, f.message)) << f.arguments << "\n" << run.err;
  }
  for (const char* arguments : {"compile", "compile - --emit c", "compile - --target avx2",
                                "compile - --name x", "compile - --emit lir --report",
                                "compile - --emit asm --target sparc", "bench - --reps 0"}) {
    EXPECT_EQ(run_tool(arguments, Net).status, 2) << arguments;
  }
}

TEST(ToolBench, MeasuresRunsAndSteps) {
  const auto text = run_tool("bench - --random 1 --reps 3 --threads 1", Net);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_TRUE(text.out.starts_with("@net on cpu, 1 thread: median ")) << text.out;
  EXPECT_TRUE(has(text.out, "add+tanh")) << text.out;
  const auto json = run_tool("bench - --random 1 --reps 3 --json", Net);
  EXPECT_TRUE(has(json.out, "\"median_ms\"")) << json.out << json.err;
  EXPECT_TRUE(has(json.out, "\"by\": \"matmul\"")) << json.out;
  const auto scaling = run_tool("bench - --random 1 --reps 2 --threads 3 --scaling", Net);
  EXPECT_EQ(scaling.status, 0) << scaling.err;
  for (const char* told : {"the same bits", "\n       1 ", "\n       2 ", "\n       3 ",
                           "efficiency", "steps that gain least:"}) {
    EXPECT_NE(scaling.out.find(told), std::string::npos) << told << "\n" << scaling.out;
  }
  const auto no_threads = run_tool("bench - --random 1 --scaling --device reference", Net);
  EXPECT_EQ(no_threads.status, 1);
  EXPECT_NE(no_threads.err.find("one thread"), std::string::npos) << no_threads.err;
  const auto reference = run_tool("bench - --random 1 --reps 2 --device reference", Net);
  EXPECT_TRUE(reference.out.starts_with("@net on reference, ")) << reference.out << reference.err;
  const auto lir = run_tool("bench - --random 1 --reps 2 --device lir", Net);
  EXPECT_TRUE(lir.out.starts_with("@net on lir, 1 thread: ")) << lir.out << lir.err;
  EXPECT_TRUE(has(lir.out, "host call")) << lir.out;
}

}  // namespace
}  // namespace ricci::tool_compile_test
