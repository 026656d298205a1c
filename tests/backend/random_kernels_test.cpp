// Random numbers drawn inside loop kernels: the reference's words wherever an element lies,
// whatever is fused with it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/control.h"
#include "ricci/build/reduce.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/interp/interpreter.h"
#include "ricci/runtime/compiled_graph.h"

#include "backend/agreement.h"
#include "support/compare.h"
#include "support/every_device.h"

namespace ricci::testing::random_kernels_test {
namespace {

class BackendRandomKernels : public OnEveryDevice {
 protected:
  // Run with a seed by the device and by the reference.
  struct Both {
    std::vector<Tensor> actual;
    std::vector<Tensor> expected;
  };
  [[nodiscard]] Both run(const Graph& g, std::uint64_t seed, const Feeds& feeds = {}) const {
    const auto compiled = compile(g, device());
    return {compiled.run(feeds, {.seed = seed}), interpret(g, feeds, {.seed = seed})};
  }
  void expect_same_bits(const Graph& g, const Feeds& feeds = {}) const {
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{12345678901234567}}) {
      const Both both = run(g, seed, feeds);
      ASSERT_EQ(both.actual.size(), both.expected.size());
      for (std::size_t i = 0; i < both.actual.size(); ++i) {
        EXPECT_TRUE(std::ranges::equal(both.actual[i].contiguous().bytes(),
                                       both.expected[i].contiguous().bytes()))
            << "output " << i;
      }
    }
  }
};

TEST_P(BackendRandomKernels, UniformNumbersAndBitsAreTheReferences) {
  for (const Dims& shape :
       {Dims{}, Dims{1}, Dims{3}, Dims{64}, Dims{1003}, Dims{7, 5}, Dims{3, 4, 6}, Dims{5, 33}}) {
    Graph g("draws");
    std::vector<Value> out;
    for (const DType dtype : {DType::F64, DType::F32, DType::F16, DType::BF16}) {
      out.push_back(rng_uniform(g, {.shape = shape, .dtype = dtype}));
      out.push_back(rng_uniform(g, {.low = -3.1, .high = 2.7, .shape = shape, .dtype = dtype}));
      out.push_back(rng_uniform(g, {.low = 0, .high = 0.3, .shape = shape, .dtype = dtype}));
      out.push_back(
          rng_uniform(g, {.low = 0, .high = 0.5, .shape = shape, .dtype = dtype, .key = -1}));
    }
    out.push_back(rng_bits(g, {.shape = shape}));
    g.set_outputs(out);
    expect_same_bits(g);
  }
}

TEST_P(BackendRandomKernels, NormalNumbersAgree) {
  for (const DType dtype : {DType::F64, DType::F32, DType::F16, DType::BF16}) {
    Graph g("normals");
    std::vector<Value> out;
    out.push_back(rng_normal(g, {.shape = Dims{5, 203}, .dtype = dtype}));
    out.push_back(rng_normal(g, {.mean = 3, .scale = 0.1, .shape = Dims{1003}, .dtype = dtype}));
    g.set_outputs(out);
    const Both both = run(g, 99);
    for (std::size_t i = 0; i < both.actual.size(); ++i) {
      EXPECT_TRUE(close(both.actual[i], both.expected[i])) << name(dtype);
    }
  }
}

TEST_P(BackendRandomKernels, KeyOperandsMoveTheStream) {
  Graph g("keys");
  std::vector<Value> out;
  const Value key = g.input("key", {DType::I32, {}});
  const Value like = g.input("like", {DType::F32, {9, 11}});
  out.push_back(rng_uniform(like, key, {.op_seed = 5}));
  out.push_back(rng_bits(key, {.shape = Dims{17}}));
  out.push_back(rng_uniform(add(key, key), {.shape = Dims{}}));
  g.set_outputs(out);
  const Feeds feeds{{"key", Tensor::splat({DType::I32, {}}, std::int64_t{-3}).contiguous()},
                    {"like", random_tensor(1, {DType::F32, {9, 11}})}};
  expect_same_bits(g, feeds);
}

// Elements have the numbers they have in their array, however it is looked at.
TEST_P(BackendRandomKernels, ViewsOfDrawsDrawTheSame) {
  Graph g("views");
  std::vector<Value> out;
  const Value x = g.input("x", {DType::F32, {6, 21}});
  const Value u = rng_uniform(g, {.shape = Dims{6, 21}});
  out.push_back(add(transpose(u, {.perm = {1, 0}}), transpose(x, {.perm = {1, 0}})));
  const Value v = rng_uniform(g, {.shape = Dims{6, 21}});
  out.push_back(add(v, reduce_max(x, {1}, true)));
  const Value w = rng_uniform(g, {.shape = Dims{6}});
  out.push_back(mul(reduce_max(x, {1}), w));
  g.set_outputs(out);
  expect_same_bits(g, {{"x", random_tensor(3, {DType::F32, {6, 21}})}});
}

TEST_P(BackendRandomKernels, BodiesOfLoopsDraw) {
  Graph g("loop");
  std::vector<Value> out;
  const Value keys = iota(g, {.shape = {4}, .dtype = DType::I32});
  const auto rows =
      scan({}, {.xs = {keys}, .length = 4}, [](Graph& body, std::span<const Value> in) {
        (void)body;
        return std::vector{rng_bits(in[0], {.shape = Dims{5}, .key = 7})};
      });
  out.push_back(rows.at(0));
  g.set_outputs(out);
  expect_same_bits(g);
}

RICCI_ON_EVERY_DEVICE(BackendRandomKernels);

TEST(BackendRandomFusion, DropoutIsOneKernel) {
  Graph g("dropout");
  std::vector<Value> out;
  const Value x = g.input("x", {DType::F32, {40, 100}});
  const Value u = rng_uniform(x);
  const auto number = [&](double n) { return g.constant(Tensor::splat({DType::F32, {}}, n)); };
  out.push_back(where(lt(u, number(0.9)), mul(x, number(1 / 0.9)), number(0)));
  g.set_outputs(out);
  const Program program = make_program(g);
  EXPECT_EQ(program.kernels.size(), 1U);
  ASSERT_EQ(program.steps.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<KernelStep>(program.steps[0].what));
}

}  // namespace
}  // namespace ricci::testing::random_kernels_test
