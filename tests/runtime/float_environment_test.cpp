// Numbers do not depend on the floating-point environment of the caller, who finds it as it was.
#include "support/float_environment.h"

#include <cfenv>

#include <gtest/gtest.h>

#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/data/files.h"
#include "ricci/io/csv.h"
#include "ricci/ir/text.h"
#include "ricci/quant/format.h"
#include "ricci/quant/scheme.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/serve/sampling.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/higher_order.h"

#include "io/json_value.h"
#include "runtime/models.h"
#include "support/c_program.h"
#include "support/compare.h"
#include "support/float_environments.h"

namespace ricci::testing {
namespace {

constexpr const char* Programs = R"(
graph @rows {
  %x = input "x" : f32[64, 700]
  %tiny = constant 1e-38 : f32[]
  %s = mul %x, %tiny
  %e = exp %x
  %t = reduce %e {op = sum, axes = [1], keep_dim = true}
  %y = div %e, %t
  %third = constant 0.3 : f64[]
  %k = exp %third
  return %y, %s, %k
}
graph @product {
  %x = input "x" : f32[120, 90]
  %w = param "w" : f32[90, 70]
  %y = matmul %x, %w
  %g = gelu %y
  return %g
}
graph @half {
  %x = input "x" : f32[40, 40]
  %h = cast %x {to = bf16}
  %t = tanh %h
  return %t
}
graph @system {
  %a = input "a" : f64[3, 20, 20]
  %b = input "b" : f64[3, 20, 2]
  %x = batched_dense_solve %a, %b
  return %x
}
graph @loop {
  %x = input "x" : f32[4]
  %y = scan %x {length = 90} body {
    %c = input "c" : f32[4]
    %n = sin %c
    return %n
  }
  return %y
}
graph @sums {
  %x = input "x" : f32[300, 500]
  %y = cumsum %x {axis = 1}
  %z = reduce %y {op = mean, axes = [0]}
  return %y, %z
}
)";

TEST(RuntimeFloatEnvironment, BitsAreThoseOfTheDefaultOne) {
  for (const Graph& g : parse(Programs)) {
    const Feeds feeds = random_feeds(g);
    const std::vector<Tensor> expected = compile(g, Device::cpu(1)).run(feeds);
    for (const Environment& e : environments()) {
      for (const int threads : {1, 2, 3}) {
        std::vector<Tensor> actual;
        std::vector<Tensor> again;
        const bool kept = is_kept(e, [&] {
          // Threads begin with the environment of their maker.
          const CompiledGraph f = compile(g, Device::cpu(threads));
          actual = f.run(feeds);
          again = f.run(feeds, {.check_finite = true});
        });
        EXPECT_TRUE(kept) << g.name() << ", " << e.name;
        EXPECT_TRUE(identical(actual, expected)) << g.name() << ", " << e.name << ", " << threads;
        EXPECT_TRUE(identical(again, expected)) << g.name() << ", " << e.name << ", " << threads;
      }
    }
  }
}

TEST(RuntimeFloatEnvironment, SoAreThoseOfTheInterpreter) {
  for (const Graph& g : parse(Programs)) {
    if (g.name() == "sums" || g.name() == "product") continue;  // slow, and no different
    const Feeds feeds = random_feeds(g);
    const std::vector<Tensor> expected = interpret(g, feeds);
    for (const Environment& e : environments()) {
      std::vector<Tensor> actual;
      EXPECT_TRUE(is_kept(e, [&] { actual = interpret(g, feeds); })) << e.name;
      EXPECT_TRUE(identical(actual, expected)) << g.name() << ", " << e.name;
    }
  }
}

TEST(RuntimeFloatEnvironment, SoAreTextConstantsAndDerivatives) {
  const auto all = [] {
    const Graph g = parse_graph(R"(
graph @numbers {
  %x = input "x" : f32[3, 7]
  %a = constant 0.1 : f32[]
  %b = constant [0.3, 1e-40, 123456789.123, 3.4028234e38] : f32[4]
  %c = constant 2.2250738585072011e-308 : f64[]
  %d = exp %b
  %e = log %c
  %f = cast %b {to = bf16}
  %m = reduce %x {op = mean, axes = [0, 1]}
  %y = mul %m, %a
  return %y, %d, %e, %f
}
)");
    Graph scalar = parse_graph(R"(
graph @g {
  %x = input "x" : f64[]
  %y = gelu %x
  %z = tanh %y
  return %z
}
)");
    Graph splats("splats");
    splats.set_outputs({splats.constant(Tensor::splat(f32({2}), 1.0 / 3 + 1e-9))});
    return print(g) + print(constant_folding(g).graph) +
           print(nth_order_grad(scalar, "x", 3).graph) +
           print(grad(scalar, {std::string("x")}).graph) + print(splats);
  };
  const std::string expected = all();
  for (const Environment& e : environments()) {
    std::string actual;
    EXPECT_TRUE(is_kept(e, [&] { actual = all(); })) << e.name;
    EXPECT_TRUE(actual == expected) << e.name << "\n" << actual;
  }
}

// What is read, encoded, resized and drawn on the way to a program and behind it.
TEST(RuntimeFloatEnvironment, SoAreThoseOfFilesCodesPicturesAndDraws) {
  constexpr std::size_t Count = 512;
  std::vector<float> weights;
  for (const double v : random_numbers(3, Count, -1, 1)) weights.push_back(static_cast<float>(v));
  std::vector<std::uint8_t> pixels;
  for (std::size_t i = 0; i < 17 * 13 * 3; ++i) pixels.push_back(static_cast<std::uint8_t>(i * 37));
  const Tensor image = Tensor::of<std::uint8_t>({17, 13, 3}, pixels);
  const auto all = [&] {
    std::vector<Tensor> out;
    const io::Csv table = io::parse_csv("a,b\n0.1,1e-310\n0.3,123456789.123456789\n0.7,1e-40\n");
    out.push_back(table.column("a"));
    out.push_back(table.column("b"));
    out.push_back(table.matrix());
    for (const quant::FormatInfo& f : quant::all_formats()) {
      std::vector<std::byte> codes(static_cast<std::size_t>(quant::packed_bytes(f.format, Count)));
      std::vector<float> again(Count);
      quant::encode(f.format, weights, codes);
      quant::decode(f.format, codes, again);
      out.push_back(
          Tensor::from_bytes({DType::U8, {static_cast<std::int64_t>(codes.size())}}, codes));
      out.push_back(Tensor::of<float>({Count}, again));
    }
    for (const char* name : {"int4_block_32", "int8_block_asym_32", "nvfp4_block", "q4_k"}) {
      const quant::Scheme scheme = quant::scheme_from_name(name).value();
      const quant::Matrix m = quant::encode_matrix(scheme, 256, 2, weights);
      std::vector<float> again(Count);
      quant::decode_matrix(scheme, 256, 2, m.parts(), again);
      out.push_back(Tensor::of<float>({Count}, again));
    }
    out.push_back(resized(image, 7, 9));
    Sampler draw(
        {.temperature = 0.7, .top_k = 100, .top_p = 0.9, .repetition_penalty = 1.1, .seed = 5});
    std::vector<std::int32_t> tokens;
    for (int i = 0; i < 50; ++i) tokens.push_back(draw(weights, tokens));
    out.push_back(Tensor::of<std::int32_t>({50}, tokens));
    out.push_back(Tensor::splat(f64({}), io::parse_json("0.12345678901234567e-3").number()));
    return out;
  };
  const std::vector<Tensor> expected = all();
  for (const Environment& e : environments()) {
    std::vector<Tensor> actual;
    EXPECT_TRUE(is_kept(e, [&] { actual = all(); })) << e.name;
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      EXPECT_TRUE(same(actual[i], expected[i])) << e.name << ", result " << i;
    }
  }
}

TEST(RuntimeFloatEnvironment, IsRestoredWhenARunFails) {
  const Graph g = parse_graph(R"(
graph @pick {
  %x = input "x" : f32[5]
  %i = input "i" : i32[2]
  %e = exp %x
  %y = gather %e, %i {axis = 0}
  return %y
}
)");
  const CompiledGraph f = compile(g, Device::cpu(2));
  const Feeds feeds = {{"x", Tensor::of<float>({5}, {1, 2, 3, 4, 5})},
                       {"i", Tensor::of<std::int32_t>({2}, {0, 9})}};
  for (const Environment& e : environments()) {
    EXPECT_TRUE(is_kept(e, [&] { EXPECT_THROW((void)f.run(feeds), UserError); })) << e.name;
    EXPECT_TRUE(is_kept(e, [&] { EXPECT_THROW((void)interpret(g, feeds), UserError); })) << e.name;
  }
}

TEST(RuntimeFloatEnvironment, FlagsOfOurOwnAreNotSeen) {
  const CompiledGraph f = compile(wide_graph(), Device::cpu(2));
  const Feeds feeds = random_feeds(wide_graph());
  const Graph dense = dense_graph();
  const Feeds dense_feeds = random_feeds(dense);
  std::feclearexcept(FE_ALL_EXCEPT);
  (void)f.run(feeds);
  (void)interpret(dense, dense_feeds);
  EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0);
}

TEST(RuntimeFloatEnvironment, ProgramsCompiledAheadOfTimeHaveTheirOwn) {
  const std::string executable = build_c("environment", R"c(
#include "wide.h"
#include <fenv.h>
#include <string.h>

static float x[wide_x_elements], w[wide_w_elements];
static float a[2][wide_out0_elements], b[2][wide_out1_elements], c[2][wide_out2_elements];

static int run(int k, int threads) {
  wide_arrays arrays = {.x = x, .w = w, .out0 = a[k], .out1 = b[k], .out2 = c[k]};
  wide_program* program = NULL;
  if (wide_create(&program, threads) != wide_ok) return 1;
  if (wide_run(program, &arrays, 0) != wide_ok) return 1;
  wide_destroy(program);
  return 0;
}

int main(void) {
  static const int modes[3] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  int i, threads;
  for (i = 0; i < wide_x_elements; ++i) x[i] = (float)(i % 7) * 0.3f;
  for (i = 0; i < wide_w_elements; ++i) w[i] = (float)(i % 5) * 0.1f;
  if (run(0, 2)) return 2;
  for (i = 0; i < 3; ++i) {
    for (threads = 1; threads < 4; ++threads) {
      fesetround(modes[i]);
      feclearexcept(FE_ALL_EXCEPT);
      if (run(1, threads)) return 3;
      if (fegetround() != modes[i] || fetestexcept(FE_ALL_EXCEPT) != 0) return 4;
      fesetround(FE_TONEAREST);
      if (memcmp(a[0], a[1], sizeof a[0]) || memcmp(b[0], b[1], sizeof b[0]) ||
          memcmp(c[0], c[1], sizeof c[0])) {
        return 5;
      }
    }
  }
  return 0;
}
)c",
                                         {compile_object(wide_graph())});
  ASSERT_FALSE(executable.empty());
  const ToolRun ran = run_shell("'" + executable + "'");
  EXPECT_EQ(ran.status, 0) << ran.err;
}

TEST(RuntimeFloatEnvironment, OldFunctionsOfTheProcessorAreCoveredToo) {
  const volatile long double one = 1;
  const volatile long double three = 3;
  const long double expected = one / three;
  for (const Environment& e : environments()) {
    bool equal = false;
    EXPECT_TRUE(is_kept(e, [&] {
      const DefaultFloatEnvironment floats;
      const volatile long double actual = one / three;
      equal = actual == expected;
    })) << e.name;
    EXPECT_TRUE(equal) << e.name;
  }
}

}  // namespace
}  // namespace ricci::testing
