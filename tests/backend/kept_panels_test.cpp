// Products in loops whose factor is the same in all trips: it is packed in the first one.
#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/control.h"
#include "ricci/build/elementwise.h"
#include "ricci/interp/interpreter.h"
#include "ricci/runtime/compiled_graph.h"

#include "backend/cpu/structured/matmul.h"
#include "support/pools.h"

namespace ricci::testing::kept_panels_test {
namespace {

// -1, 0 and 1: sums of products are exact in every dtype, in whatever order.
Tensor signs(const Type& type, unsigned seed) {
  std::mt19937 random(seed);
  const auto sign = [&] { return static_cast<double>(random() % 3) - 1; };
  const auto count = static_cast<std::size_t>(*type.numel());
  if (is_complex(type.dtype)) {
    std::vector<std::complex<double>> numbers(count);
    for (auto& x : numbers) x = {sign(), sign()};
    return Tensor::from_numbers<std::complex<double>>(type, numbers);
  }
  std::vector<double> numbers(count);
  for (double& x : numbers) x = sign();
  return Tensor::from_numbers<double>(type, numbers);
}

// Runs with other rows find the factor where the first run packed it: it may be gone by then.
TEST(BackendKeptPanels, APlanPacksOnce) {
  constexpr std::int64_t M = 40;
  constexpr std::int64_t N = 130;
  constexpr std::int64_t K = 300;
  const auto plan_for = [](bool same_a, bool same_b, std::int64_t m, std::int64_t n) {
    return cpu::MatmulPlan({.m = m,
                            .n = n,
                            .k = K,
                            .a = {{}, K, 1},
                            .b = {{}, n, 1},
                            .c = {{}, n, 1},
                            .same_a = same_a,
                            .same_b = same_b});
  };
  EXPECT_EQ(plan_for(false, false, M, N).kept_bytes(), 0);
  EXPECT_EQ(plan_for(false, true, 1, N).kept_bytes(), 0);
  EXPECT_EQ(plan_for(true, false, M, N).kept_bytes(), 0);
  EXPECT_GT(plan_for(true, false, 4 * M, M).kept_bytes(), 0);
  EXPECT_EQ(plan_for(false, true, 20, N).kept_bytes(), 0);  // b stays in a near cache
  const cpu::MatmulPlan plan = plan_for(false, true, M, N);
  ASSERT_GT(plan.kept_bytes(), 0);
  const auto room = [](std::int64_t bytes) {
    return std::vector<std::max_align_t>(
        static_cast<std::size_t>(bytes) / sizeof(std::max_align_t) + 8);
  };
  std::vector<std::max_align_t> scratch = room(plan.scratch_bytes());
  std::vector<std::max_align_t> kept = room(plan.kept_bytes());
  const std::vector<double> b = signs(f32({K, N}), 1).numbers<double>();
  std::vector<float> given(b.begin(), b.end());
  cpu::MatmulMemory memory{scratch.data(), kept.data()};
  for (unsigned run = 0; run < 3; ++run) {
    const std::vector<double> a = signs(f32({M, K}), 2 + run).numbers<double>();
    const std::vector<float> rows(a.begin(), a.end());
    std::vector<float> c(static_cast<std::size_t>(M * N), 7);
    plan.run(pools().front(), rows.data(), given.data(), c.data(), memory);
    for (std::int64_t i = 0; i < M; ++i) {
      for (std::int64_t j = 0; j < N; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < K; ++k) {
          sum += a[static_cast<std::size_t>(i * K + k)] * b[static_cast<std::size_t>(k * N + j)];
        }
        ASSERT_EQ(c[static_cast<std::size_t>(i * N + j)], sum) << "run " << run;
      }
    }
    std::ranges::fill(given, 99.0F);
    memory.is_packed = true;
  }
}

// Complex numbers grow, but not far in two steps.
Value cut(Value v) { return is_complex(v.dtype()) ? v : clamp(v, -1.0, 1.0); }

struct Sizes {
  std::int64_t rows;
  std::int64_t width;
};

enum class Factor { Right, RightTransposed, Left };

// h ← cut(h·w + x_t), or w·h where the state has its rows as columns.
Graph recurrence(DType dtype, Sizes s, Factor factor) {
  Graph g("recurrence");
  const bool left = factor == Factor::Left;
  const Dims state = left ? Dims{s.width, s.rows} : Dims{s.rows, s.width};
  const Value h = g.input("h", {dtype, state});
  const Value w = g.input("w", {dtype, {s.width, s.width}});
  const Value xs = g.input("xs", {dtype, {is_complex(dtype) ? 2 : 5, state[0], state[1]}});
  const auto out =
      scan(std::array{h}, {.bcasts = {w}, .xs = {xs}}, [&](Graph&, std::span<const Value> in) {
        const Value right =
            factor == Factor::RightTransposed ? transpose(in[1], {.perm = {1, 0}}) : in[1];
        const Value next = cut((left ? matmul(in[1], in[0]) : matmul(in[0], right)) + in[2]);
        return std::vector{next, next};
      });
  g.set_outputs({out[0], out[1]});
  return g;
}

Feeds feeds_of(const Graph& g, unsigned seed) {
  Feeds feeds;
  for (const NodeId id : g.inputs()) {
    const Node& node = g.node(id);
    feeds.emplace(node.op.as<op::Input>()->name, signs(node.types[0], seed++));
  }
  return feeds;
}

void expect_same(const Graph& g, int runs) {
  const CompiledGraph compiled = compile(g, Device::cpu(2));
  for (int run = 0; run < runs; ++run) {
    const Feeds feeds = feeds_of(g, static_cast<unsigned>(100 * run + 1));
    const std::vector<Tensor> expected = interpret(g, feeds);
    const std::vector<Tensor> found = compiled.run(feeds);
    ASSERT_EQ(expected.size(), found.size());
    for (std::size_t r = 0; r < found.size(); ++r) {
      SCOPED_TRACE(::testing::Message() << "run " << run << ", output " << r);
      if (is_complex(expected[r].dtype())) {
        EXPECT_EQ(expected[r].numbers<std::complex<double>>(),
                  found[r].numbers<std::complex<double>>());
      } else {
        EXPECT_EQ(expected[r].numbers<double>(), found[r].numbers<double>());
      }
    }
  }
}

TEST(BackendKeptPanels, StepsOfARecurrence) {
  for (const DType dtype :
       {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::I8, DType::C64}) {
    for (const Factor factor : {Factor::Right, Factor::RightTransposed, Factor::Left}) {
      for (const Sizes s :
           {Sizes{5, 64}, {7, 67}, {13, 100}, {40, 130}, {1, 70}, {0, 64}, {70, 70}}) {
        SCOPED_TRACE(::testing::Message() << name(dtype) << ' ' << s.rows << " x " << s.width
                                          << ", factor " << static_cast<int>(factor));
        expect_same(recurrence(dtype, s, factor), 2);
      }
    }
  }
}

// h·w·v, with v known to the program.
TEST(BackendKeptPanels, ConstantsOfBodies) {
  Graph g("constants");
  const Value h = g.input("h", f32({9, 64}));
  const Value w = g.input("w", f32({64, 64}));
  const auto out =
      scan(std::array{h}, {.bcasts = {w}, .length = 4}, [](Graph& body, std::span<const Value> in) {
        const Value v = body.constant(signs(f32({64, 64}), 5));
        return std::vector{cut(matmul(cut(matmul(in[0], in[1])), v))};
      });
  g.set_outputs({out[0]});
  expect_same(g, 2);
}

// What is kept in one loop is not what the next one needs: the inner loop runs once for each w.
TEST(BackendKeptPanels, LoopsInLoops) {
  Graph g("nested");
  const Value h = g.input("h", f32({9, 64}));
  const Value ws = g.input("ws", f32({4, 64, 64}));
  const Value own = g.input("own", f32({64, 64}));
  const auto out =
      scan(std::array{h}, {.bcasts = {own}, .xs = {ws}}, [](Graph&, std::span<const Value> outer) {
        const auto inner = scan(std::array{outer[0]}, {.bcasts = {outer[1], outer[2]}, .length = 3},
                                [](Graph&, std::span<const Value> in) {
                                  return std::vector{cut(matmul(cut(matmul(in[0], in[1])), in[2]))};
                                });
        return std::vector{cut(matmul(inner[0], outer[1])), inner[0]};
      });
  g.set_outputs({out[0], out[1]});
  expect_same(g, 3);
}

}  // namespace
}  // namespace ricci::testing::kept_panels_test
