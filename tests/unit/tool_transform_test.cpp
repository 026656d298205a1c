// The commands that transform graphs, and `ricci check` of derivatives: what they print and write,
// exit statuses and messages.
#include <algorithm>

#include <gtest/gtest.h>

#include "ricci/io/file.h"
#include "ricci/io/npy.h"
#include "ricci/ir/text.h"
#include "ricci/transform/grad.h"

#include "support/tool.h"

namespace ricci::tool_transform_test {
namespace {

using testing::read_text;
using testing::run_tool;
using testing::scratch;

constexpr const char* Loss = R"(
graph @loss {
  %x = input "x" : f64[3]
  %w = param "w" : f64[3]
  %n = input "n" : i32[3]
  %h = mul %x, %w
  %s = sin %h
  %y = reduce %s {op = sum, axes = [0]}
  return %y, %h
}
)";
constexpr const char* Scalar = R"(graph @f { %x = input "x" : f64[] %y = sin %x return %y })";

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// What a printed graph returns, in order.
std::size_t output_count(const std::string& text) {
  const Graph graph = parse_graph(text);
  return graph.outputs().size();
}

TEST(ToolTransform, GradPrintsOutputsThenGradients) {
  const auto run = run_tool("grad - --wrt x,w", Loss);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.err, "");
  const Graph g = parse_graph(run.out);
  EXPECT_EQ(g.name(), "loss_grad");
  EXPECT_EQ(g.outputs().size(), 4U);
  EXPECT_FALSE(g.find("d_output"));
  EXPECT_EQ(run.out, run_tool("grad - --wrt x,w --with-loss", Loss).out);
  EXPECT_EQ(run.out, run_tool("grad - --wrt x --wrt w", Loss).out);
  EXPECT_EQ(run.out, run_tool("grad - --wrt x,w --internal-seed", Loss).out);
  EXPECT_EQ(g, value_and_grad(parse_graph(Loss), {"x", "w"}).graph);
  EXPECT_TRUE(contains(run.out, "as \"gradient of x\"")) << run.out;
  const Graph external = parse_graph(run_tool("grad - --wrt x,w --external-seed", Loss).out);
  EXPECT_EQ(external, grad_with_loss(parse_graph(Loss), {"x", "w"}).graph);
  EXPECT_EQ(run_tool("grad - --wrt x --external-seed --internal-seed", Loss).status, 2);
}

TEST(ToolTransform, GradCanLeaveOutTheLossAndTheSeed) {  // [FE-1c]
  EXPECT_EQ(output_count(run_tool("grad - --wrt x --only-grads", Loss).out), 1U);
  const auto seeded = run_tool("grad - --wrt x --internal-seed", Loss);
  EXPECT_EQ(output_count(seeded.out), 3U);
  EXPECT_FALSE(contains(seeded.out, "d_output"));
  const auto only = run_tool("grad - --wrt x,w --internal-seed --only-grads", Loss);
  EXPECT_EQ(output_count(only.out), 2U);
  EXPECT_FALSE(contains(only.out, "= sin %"));  // only its derivative is left
}

TEST(ToolTransform, GradientsOfComputedValuesAreAskedForByName) {
  const auto run = run_tool("grad - --wrt %h,x --only-grads", Loss);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(output_count(run.out), 2U);
}

TEST(ToolTransform, ZeroMissingGivesZeros) {
  EXPECT_EQ(run_tool("grad - --wrt n", Loss).status, 1);
  const auto run = run_tool("grad - --wrt n --only-grads --zero-missing", Loss);
  EXPECT_TRUE(contains(run.out, "constant splat 0 : i32[3]")) << run.out << run.err;
}

TEST(ToolTransform, GradIsToldWhatToKeepOfScans) {  // [scan-save-policy]
  constexpr const char* Loop = R"(graph @loop {
    %h = input "h" : f64[2]
    %y = scan %h {length = 9} body {
      %c = input "c" : f64[2]
      %a = sin %c
      %b = cos %a
      return %b
    }
    return %y
  })";
  const auto says = [&](const std::string& options, std::string_view part) {
    const auto run = run_tool("grad - --wrt h " + options, Loop);
    EXPECT_EQ(run.status, 0) << run.err;
    return contains(run.out, part);
  };
  EXPECT_FALSE(says("", "num_saved"));
  EXPECT_TRUE(says("--save all", "num_saved = 1"));
  EXPECT_TRUE(says("--save named --save-names a", "num_saved = 1"));
  EXPECT_TRUE(says("--save recompute", "num_checkpoints = 3"));
  EXPECT_TRUE(says("--save-budget 1000", "num_saved = 1"));
  EXPECT_TRUE(says("--save-budget 112", "num_checkpoints = 5"));
  EXPECT_NE(run_tool("grad - --wrt h --save everything", Loop).status, 0);
  EXPECT_NE(run_tool("grad - --wrt h --save-budget -1", Loop).status, 0);
}

TEST(ToolTransform, ForwardModeAndHessianProductsAddTangents) {
  const auto forward = run_tool("jvp - --wrt x,w", Loss);
  EXPECT_EQ(output_count(forward.out), 4U) << forward.err;
  EXPECT_TRUE(contains(forward.out, "input \"tangent_w\" : f64[3]"));
  const auto product = run_tool("hvp - --wrt x", Loss);
  EXPECT_EQ(output_count(product.out), 6U) << product.err;
  EXPECT_FALSE(contains(product.out, "d_output"));
  EXPECT_TRUE(contains(run_tool("hvp - --wrt x --external-seed", Loss).out, "d_output"));
}

TEST(ToolTransform, NthGradDifferentiatesRepeatedly) {
  const auto third = run_tool("nth-grad - --wrt x --order 3", Scalar);
  EXPECT_TRUE(third.out.find("@f_d3") != std::string::npos) << third.out << third.err;
  io::write_npy(scratch("x.npy"), Tensor::of<double>({}, {0.0}));
  const std::string run = "run - --input x=" + scratch("x.npy");
  EXPECT_TRUE(run_tool(run, third.out).out.ends_with("= -1.0\n")) << run_tool(run, third.out).out;
  const auto along = run_tool("nth-grad - --wrt x --order 2 --directional", Scalar);
  EXPECT_TRUE(contains(along.out, "input \"dir_2\"")) << along.err;
}

TEST(ToolTransform, MatricesOfDerivatives) {
  for (const char* command : {"jacfwd", "jacrev"}) {
    const Graph g = parse_graph(run_tool(std::string(command) + " - --wrt x,w", Loss).out);
    ASSERT_EQ(g.outputs().size(), 4U);
    EXPECT_EQ(g.type(g.outputs()[0]).to_string(), "f64[1, 3]");
    EXPECT_EQ(g.type(g.outputs()[3]).to_string(), "f64[3, 3]");
  }
  const Graph h = parse_graph(run_tool("hessian - --wrt x", Loss).out);
  EXPECT_EQ(h.type(h.outputs()[0]).to_string(), "f64[3, 3]");
}

TEST(ToolTransform, VmapPlacesTheBatch) {
  const auto run = run_tool("vmap - --batch x,w:-1 --size 8 --out-axes 0,1", Loss);
  ASSERT_EQ(run.status, 0) << run.err;
  const Graph g = parse_graph(run.out);
  EXPECT_EQ(g.type({g.find_or_throw("x"), 0}).to_string(), "f64[8, 3]");
  EXPECT_EQ(g.type({g.find_or_throw("w"), 0}).to_string(), "f64[3, 8]");
  EXPECT_EQ(g.type(g.outputs()[0]).to_string(), "f64[8]");
  EXPECT_EQ(g.type(g.outputs()[1]).to_string(), "f64[3, 8]");
  EXPECT_TRUE(contains(run_tool("vmap - --batch x --size batch", Loss).out, "f64[batch, 3]"));
}

TEST(ToolTransform, CommandsChain) {
  const auto gradient = run_tool("grad - --wrt x --only-grads --external-seed", Scalar);
  const auto twice = run_tool("grad - --wrt x --only-grads --external-seed", gradient.out);
  EXPECT_EQ(twice.status, 0) << twice.err;
  EXPECT_EQ(twice.err, "note: 'd_output' was taken; it is 'd_output_2' here\n");
  EXPECT_TRUE(contains(twice.out, "input \"d_output_2\""));
}

TEST(ToolTransform, FilesAreWrittenWholeOrNotAtAll) {
  const std::string file = scratch("grad.ric");
  io::write_file(file, "old");
  EXPECT_EQ(run_tool("grad - --wrt missing -o " + file, Loss).status, 1);
  EXPECT_EQ(read_text(file), "old");
  const auto run = run_tool("grad - --wrt x -o " + file, Loss);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(read_text(file), run_tool("grad - --wrt x", Loss).out);
}

TEST(ToolTransform, FaultsInTheInputExitWithOne) {
  const struct {
    const char* arguments;
    const char* message;
  } faults[] = {
      {"grad - --wrt y", "has no input or param 'y'"},
      {"grad - --wrt %z", "has no value '%z'"},
      {"grad - --wrt n", "'n' gets no gradient: its dtype i32 has no derivative"},
      {"grad - --wrt x --graph other", "its graphs are loss"},
      {"jvp - --wrt n", "error[no_gradient]"},
      {"jvp - --wrt %h", "is computed"},
      {"jvp - --wrt x,x", "'x' is listed twice"},
      {"hvp - --wrt %h", "is computed"},
      {"nth-grad - --wrt x --order 2", "error[shape]"},
      {"vmap - --batch y --size 2", "has no input or param 'y'"},
      {"vmap - --batch x,x:1 --size 2", "'x' is listed twice"},
      {"vmap - --batch x:2 --size 2", "batch axis 2 is outside of 'x'"},
      {"vmap - --batch x --size 2 --out-axes 0,0,0", "3 out_axes are given for 2 outputs"},
      {"check - --wrt x", "no value is given for 'x'"},
      {"check - --wrt y --random 1", "has no input or param 'y'"},
  };
  for (const auto& f : faults) {
    const auto run = run_tool(f.arguments, Loss);
    EXPECT_EQ(run.status, 1) << f.arguments;
    EXPECT_EQ(run.out, "") << f.arguments;
    EXPECT_TRUE(contains(run.err, f.message)) << f.arguments << "\n" << run.err;
  }
}

TEST(ToolTransform, WrongUsageExitsWithTwo) {
  for (const char* arguments :
       {"grad -", "grad - --wrt", "grad - --wrt x --with-loss --only-grads", "jvp -", "hvp -",
        "nth-grad - --wrt x", "nth-grad - --wrt x --order -1", "nth-grad - --wrt x --order many",
        "vmap - --batch x", "vmap - --batch x --size -1", "vmap - --batch x --size 2*n",
        "vmap - --batch x --size 2 --out-axes a", "check - --wrt x --order 3"}) {
    const auto run = run_tool(arguments, Loss);
    EXPECT_EQ(run.status, 2) << arguments << run.out;
    EXPECT_EQ(run.out, "") << arguments;
    EXPECT_NE(run.err, "") << arguments;
  }
}

TEST(ToolTransform, CheckComparesDerivatives) {
  const auto all = run_tool("check - --random 1 --order 2", Loss);
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_TRUE(contains(all.out, "all")) << all.out;
  EXPECT_FALSE(contains(all.out, "WRONG")) << all.out;
  const auto one = run_tool("check - --random 1 --wrt x --directions 1", Loss);
  EXPECT_EQ(std::ranges::count(one.out, '\n'), 2) << one.out;
}

TEST(ToolTransform, CheckBlamesTheRuleThatIsWrong) {
  const auto run = run_tool("check - --random 1", R"(graph @square {
    %x = input "x" : f64[3]
    %y = custom_fn %x fwd {
      %a = input "a" : f64[3]
      %b = mul %a, %a
      return %b
    } vjp {
      %a = input "a" : f64[3]
      %o = input "primal_output_0" {role = primal_output} : f64[3]
      %d = input "d_output_0" {role = d_output} : f64[3]
      return %d
    }
    return %y
  })");
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(contains(run.out, "WRONG")) << run.out;
  EXPECT_TRUE(contains(run.err, "error[no_gradient]: the derivatives of 'square' are wrong"))
      << run.err;
  EXPECT_FALSE(contains(run.err, "fault of Ricci")) << run.err;
}

TEST(ToolTransform, CheckTakesValuesFromFiles) {
  io::write_npz(scratch("in.npz"), {{"x", Tensor::of<double>({3}, {1, 2, 3})},
                                    {"w", Tensor::of<double>({3}, {1, 0, -1})},
                                    {"n", Tensor::of<std::int32_t>({3}, {0, 0, 0})}});
  const auto run = run_tool("check - --wrt x,w --inputs " + scratch("in.npz"), Loss);
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  const std::string sized = R"(graph @g { %x = input "x" : f64[n] %y = exp %x return %y })";
  EXPECT_EQ(run_tool("check - --random 3 --size n=2", sized).status, 0);
}

TEST(ToolTransform, ResultsSayWhatTheyAre) {  // [FE-1d]
  const auto gradient = run_tool("grad - --wrt w,%h", Loss);
  const auto run = run_tool("run - --random 1 --out " + scratch("named.npz"), gradient.out);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "out1 %h : f64[3]")) << run.out;
  EXPECT_TRUE(contains(run.out, "out2 \"gradient of w\" : f64[3]")) << run.out;
  EXPECT_TRUE(contains(run.out, "out3 \"gradient of %h\" : f64[3]")) << run.out;
  const auto names = [](const std::string& file) {
    std::vector<std::string> out;
    for (const auto& [name, value] : io::read_npz(file)) out.push_back(name);
    std::ranges::sort(out);
    return out;
  };
  EXPECT_EQ(names(scratch("named.npz")),
            (std::vector<std::string>{"out0", "out1", "out2", "out3"}));
  EXPECT_EQ(
      run_tool("run - --random 1 --by-name --out " + scratch("named.npz"), gradient.out).status, 0);
  EXPECT_EQ(names(scratch("named.npz")),
            (std::vector<std::string>{"gradient of %h", "gradient of w", "h", "y"}));
}

// Blocks are lowered wherever a graph enters.
TEST(ToolTransform, BlocksAreTransformedAndRun) {
  constexpr const char* Dense = R"(graph @dense {
    %x = input "x" : f64[2, 3]
    %w = param "w" : f64[3, 4]
    %b = param "b" : f64[4]
    %y = linear %x, %w, %b {activation = tanh}
    %z = linear_fused %y, %w2, %b2
    return %z
  })";
  std::string text = Dense;
  text.replace(text.find("%y = linear"), 0,
               "%w2 = param \"w2\" : f64[4, 1] %b2 = param \"b2\" : f64[1] ");
  EXPECT_EQ(run_tool("check - --random 1", text).status, 0)
      << run_tool("check - --random 1", text).err;
  for (const char* command : {"grad - --wrt w,b2", "jvp - --wrt x", "vmap - --batch x --size 3",
                              "hvp - --wrt w", "jacrev - --wrt b"}) {
    const auto made = run_tool(command, text);
    ASSERT_EQ(made.status, 0) << command << made.err;
    for (const std::string device : {"", " --device reference"}) {
      const auto run = run_tool("run - --random 1" + device, made.out);
      EXPECT_EQ(run.status, 0) << command << run.err;
    }
  }
}

// Both modes follow the same wrong rule, and differences tell.
TEST(ToolTransform, CheckFindsARuleThatIsWrongInBothModes) {  // [FE-8]
  const auto run = run_tool("check - --random 1", R"(
graph @square {
  %x = input "x" : f64[3]
  %y = custom_fn %x fwd {
    %a = input "a" : f64[3]
    %b = mul %a, %a
    return %b
  } vjp {
    %a = input "a" : f64[3]
    %b = input "primal_output_0" : f64[3]
    %g = input "d_output_0" : f64[3]
    %three = constant splat 3.0 : f64[3]
    %d = mul %three, %a
    %da = mul %d, %g
    return %da
  } jvp {
    %a = input "a" : f64[3]
    %t = input "tangent_0" : f64[3]
    %three = constant splat 3.0 : f64[3]
    %d = mul %three, %a
    %db = mul %d, %t
    return %db
  } : f64[3]
  return %y
}
)");
  EXPECT_EQ(run.status, 1) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "WRONG")) << run.out;
}

// A function whose own rule says its derivative is 3x, where it is 2x.
TEST(ToolTransform, CheckFindsAWrongDerivative) {
  const auto run = run_tool("check - --random 1", R"(
graph @square {
  %x = input "x" : f64[3]
  %y = custom_fn %x fwd {
    %a = input "a" : f64[3]
    %b = mul %a, %a
    return %b
  } vjp {
    %a = input "a" : f64[3]
    %b = input "primal_output_0" : f64[3]
    %g = input "d_output_0" : f64[3]
    %three = constant splat 3.0 : f64[3]
    %d = mul %three, %a
    %da = mul %d, %g
    return %da
  } : f64[3]
  return %y
}
)");
  EXPECT_EQ(run.status, 1) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "WRONG")) << run.out;
  EXPECT_TRUE(contains(run.err, "derivatives of 'square' are wrong")) << run.err;
}

}  // namespace
}  // namespace ricci::tool_transform_test
