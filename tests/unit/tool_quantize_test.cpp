// `ricci quantize`: from a program and arrays to a program of codes, its params and a report.
#include <gtest/gtest.h>

#include "ricci/io/npy.h"

#include "support/compare.h"
#include "support/scratch_folder.h"
#include "support/tool.h"

namespace ricci::tool_quantize_test {
namespace {

using testing::random_tensor;
using testing::run_tool;

const std::string Program = R"(graph @net {
  %x = input "x" : f32[n, 32]
  %w1 = param "w1" : f32[32, 16]
  %b1 = param "b1" : f32[16]
  %w2 = param "w2" : f32[16, 3]
  %m = matmul %x, %w1
  %s = add %m, %b1
  %h = relu %s
  %y = matmul %h, %w2
  return %y
}
)";

// A folder with the params of the program and two batches.
class Files {
 public:
  Files() {
    io::write_npz(file("params.npz"), {{"w1", random_tensor(1, f32({32, 16}))},
                                       {"b1", random_tensor(2, f32({16}))},
                                       {"w2", random_tensor(3, f32({16, 3}))}});
    io::write_npz(file("one.npz"), {{"x", random_tensor(4, f32({5, 32}))}});
    io::write_npz(file("two.npz"), {{"x", random_tensor(5, f32({9, 32}))}});
  }
  [[nodiscard]] std::string file(const std::string& name) const { return scratch_.file(name); }
  [[nodiscard]] std::string given() const {
    return " --params " + file("params.npz") + " --inputs " + file("one.npz") + " --inputs " +
           file("two.npz");
  }

 private:
  testing::ScratchFolder scratch_;
};

TEST(ToolQuantize, MakesAProgramOfCodesThatRuns) {
  const Files files;
  const auto run = run_tool("quantize -" + files.given() + " --weights " + files.file("codes.npz") +
                                " --report -o " + files.file("out.ric"),
                            Program);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("layer")) << run.out;
  EXPECT_NE(run.out.find("q_matmul i8"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("q_matmul i32"), std::string::npos) << run.out;
  const std::string text = testing::read_text(files.file("out.ric"));
  EXPECT_NE(text.find("param \"w1_codes\" : i8[32, 16]"), std::string::npos) << text;
  const std::string one = " --inputs " + files.file("one.npz");
  const auto codes = run_tool("run " + files.file("out.ric") + one + " --inputs " +
                              files.file("codes.npz") + " --out " + files.file("q.npz"));
  ASSERT_EQ(codes.status, 0) << codes.err;
  const auto floats = run_tool(
      "run -" + one + " --inputs " + files.file("params.npz") + " --out " + files.file("f.npz"),
      Program);
  ASSERT_EQ(floats.status, 0) << floats.err;
  const auto q = io::read_npz(files.file("q.npz"))[0].second.numbers<double>();
  const auto f = io::read_npz(files.file("f.npz"))[0].second.numbers<double>();
  ASSERT_EQ(q.size(), f.size());
  double size = 0;
  double gap = 0;
  for (std::size_t i = 0; i < q.size(); ++i) {
    size = std::max(size, std::abs(f[i]));
    gap = std::max(gap, std::abs(f[i] - q[i]));
  }
  EXPECT_LT(gap, 0.03 * size);
  EXPECT_GT(gap, 0);
}

TEST(ToolQuantize, WithoutAFileForThemParamsStay) {
  const Files files;
  const auto run = run_tool("quantize -" + files.given() + " --method entropy --report", Program);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("param \"w1\" : f32[32, 16]"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("q_matmul"), std::string::npos);
  EXPECT_TRUE(run.err.starts_with("layer")) << run.err;
}

TEST(ToolQuantize, WeightsAloneNeedNoInputs) {
  const Files files;
  const std::string params = " --params " + files.file("params.npz");
  const auto run = run_tool("quantize - --weights-only q8_0 --report --weights " +
                                files.file("packed.npz") + params + " -o " + files.file("out.ric"),
                            Program);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("blocks of 32 do not divide its depth 16"), std::string::npos) << run.out;
  const std::string text = testing::read_text(files.file("out.ric"));
  EXPECT_NE(text.find("dequant_matmul"), std::string::npos) << text;
  const auto again = run_tool("run " + files.file("out.ric") + " --inputs " +
                              files.file("one.npz") + " --inputs " + files.file("packed.npz"));
  EXPECT_EQ(again.status, 0) << again.err;
}

TEST(ToolQuantize, ProductsAreChosenByName) {
  const Files files;
  const auto skipped = run_tool("quantize -" + files.given() + " --skip w2 --report", Program);
  EXPECT_NE(skipped.err.find("stays: left out by name"), std::string::npos) << skipped.err;
  EXPECT_NE(skipped.out.find(" matmul "), std::string::npos);
  const auto only = run_tool("quantize -" + files.given() + " --only 'w2' --report", Program);
  EXPECT_NE(only.err.find("%m"), std::string::npos) << only.err;
}

TEST(ToolQuantize, MistakesAreSaid) {
  const Files files;
  const std::string params = " --params " + files.file("params.npz");
  const auto said = [&](const std::string& arguments, const std::string& message) {
    const auto run = run_tool("quantize - " + arguments, Program);
    EXPECT_NE(run.status, 0) << arguments;
    EXPECT_NE(run.err.find(message), std::string::npos) << arguments << ": " << run.err;
    EXPECT_EQ(run.out, "");
  };
  said(params, "there are no inputs to calibrate on");
  said("--inputs " + files.file("one.npz"), "the param 'w1' has no value");
  said(params + " --weights-only q8_0", "weights in few bits need a file");
  said(params + " --weights-only q8_O --weights " + files.file("w.npz"), "did you mean 'q8_0'?");
  said(files.given() + " --method median", "median");
  said(files.given() + " --percentile 20", "--percentile");
  said(files.given() + " --inputs " + files.file("none.npz"), "none.npz");
  said(files.given() + " --device abacus", "abacus");
  said(" --inputs " + files.file("params.npz") + params, "is in two archives");
}

TEST(ToolQuantize, HelpSaysWhatTheReportMeans) {
  const auto run = run_tool("quantize --help");
  EXPECT_EQ(run.status, 0);
  for (const char* option : {"--inputs", "--method", "--weights-only", "--report", "--skip"}) {
    EXPECT_NE(run.out.find(option), std::string::npos) << option;
  }
  EXPECT_NE(run.out.find("signal to error"), std::string::npos);
}

TEST(ToolQuantize, PassesAreReachable) {
  const std::string pairs = R"(graph @g {
    %x = input "x" : f32[2, 4]
    %w = param "w" : i8[4, 3]
    %q = quantize %x {scales = [0.1]}
    %d = dequantize %q {scales = [0.1]}
    %t = reshape %d {new_shape = [2, 4]}
    %v = dequantize %w {scales = [0.2]}
    %y = matmul %t, %v
    %z = quantize %y {scales = [0.3]}
    return %z
  })";
  const auto run = run_tool("opt - --passes propagate_codes,convert_to_codes", pairs);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("q_matmul"), std::string::npos) << run.out;
  EXPECT_EQ(run.out.find("dequantize"), std::string::npos) << run.out;
}

}  // namespace
}  // namespace ricci::tool_quantize_test
