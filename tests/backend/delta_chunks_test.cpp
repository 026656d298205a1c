// [gdn-chunked] Long sequences of the gated delta rule are chunks, each a few products of matrices;
// short ones are taken step by step. It is one op, and what comes out is the same.
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/compat/sequence.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/interp/interpreter.h"
#include "ricci/op/ops.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

#include "backend/cpu/kernels/vector_kernels.h"
#include "support/compare.h"

namespace ricci::testing::delta_chunks_test {
namespace {

struct Net {
  std::int64_t length = 64;
  std::int64_t keys = 8;
  std::int64_t values = 8;
  DType dtype = DType::F64;
  std::int64_t key_heads = 1;
  std::int64_t heads = 2;

  // Outputs and the final state.
  [[nodiscard]] Graph graph() const {
    Graph g("net");
    const Value q = g.input("q", {dtype, {1, length, key_heads, keys}});
    const Value k = g.input("k", {dtype, {1, length, key_heads, keys}});
    const Value v = g.input("v", {dtype, {1, length, heads, values}});
    const Value gate = g.input("g", {dtype, {1, length, heads}});
    const Value beta = g.input("beta", {dtype, {1, length, heads}});
    const Value state = g.input("state", {dtype, {1, heads, keys, values}});
    const auto [o, last] = gated_delta_net_carry(q, k, v, gate, beta, state, keys);
    g.set_outputs({o, last});
    return g;
  }
  // A number of both and its gradients.
  [[nodiscard]] Graph gradients() const {
    Graph g = graph();
    const Value o = g.value(g.outputs()[0]);
    const Value last = g.value(g.outputs()[1]);
    g.set_outputs({sum(o * o) + sum(last)});
    return value_and_grad(g, {"q", "k", "v", "g", "beta", "state"}).graph;
  }
  // Keys shorter than 1, as those who use it make them.
  [[nodiscard]] Feeds feeds() const {
    const double size = 1 / std::sqrt(static_cast<double>(keys));
    const auto tensor = [&](std::uint64_t seed, Dims dims, double low, double high) {
      return random_tensor(seed, {dtype, std::move(dims)}, low, high);
    };
    return {{"q", tensor(1, {1, length, key_heads, keys}, -size, size)},
            {"k", tensor(2, {1, length, key_heads, keys}, -size, size)},
            {"v", tensor(3, {1, length, heads, values}, -1, 1)},
            {"g", tensor(4, {1, length, heads}, -0.5, 0)},
            {"beta", tensor(5, {1, length, heads}, 0, 1)},
            {"state", tensor(6, {1, heads, keys, values}, -1, 1)}};
  }
};

// What one thread gives is what the reference gives, and what eight give is that to the bit.
void expect_reference(const Graph& graph, const Feeds& feeds) {
  const std::vector<Tensor> expected = interpret(graph, feeds);
  const std::vector<Tensor> one = compile(graph, Device::cpu(1)).run(feeds);
  const std::vector<Tensor> eight = compile(graph, Device::cpu(8)).run(feeds);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(close(one[i], expected[i])) << "output " << i;
    EXPECT_TRUE(same(eight[i], one[i])) << "output " << i << " on eight threads";
  }
}

// Chunks have 32 steps, and fewer than 16 steps are none; a block has 64 values.
TEST(BackendDeltaChunks, LengthsAndWidthsAroundTheBordersOfChunks) {
  for (const std::int64_t length : {15, 16, 17, 31, 32, 33, 63, 65}) {
    for (const std::int64_t values : {1, 16, 64, 65}) {
      SCOPED_TRACE(fmt::format("{} steps, {} values", length, values));
      const Net net{.length = length, .keys = 7, .values = values};
      expect_reference(net.graph(), net.feeds());
      expect_reference(net.gradients(), net.feeds());
    }
  }
}

TEST(BackendDeltaChunks, KeysOfAnyWidthAndGroupedHeads) {
  for (const std::int64_t keys : {1, 16, 17, 64}) {
    for (const std::int64_t key_heads : {1, 3}) {
      SCOPED_TRACE(fmt::format("{} keys, {} key heads", keys, key_heads));
      const Net net{.length = 50, .keys = keys, .values = 9, .key_heads = key_heads, .heads = 3};
      expect_reference(net.graph(), net.feeds());
      expect_reference(net.gradients(), net.feeds());
    }
  }
}

// So many chunks that the states before them are not all kept.
TEST(BackendDeltaChunks, ManyChunksAreWalkedInStretches) {
  const Net net{.length = 32 * 35 + 5, .keys = 4, .values = 3};
  expect_reference(net.graph(), net.feeds());
  expect_reference(net.gradients(), net.feeds());
}

TEST(BackendDeltaChunks, SinglePrecisionIsCloseToDouble) {
  const Net net{.length = 70, .keys = 32, .values = 40, .dtype = DType::F32};
  const Feeds feeds = net.feeds();
  for (const Graph& graph : {net.graph(), net.gradients()}) {
    const std::vector<Tensor> expected = interpret(graph, feeds);
    const std::vector<Tensor> got = compile(graph).run(feeds);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(close(got[i], expected[i], {.relative = 2e-5, .absolute = 2e-5})) << i;
    }
  }
}

// Decays are sums of gates before they are powers: a gate that forgets everything hides nothing of
// the gates behind it.
TEST(BackendDeltaChunks, GatesThatForgetAllOrNothing) {
  constexpr double Inf = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::F32, DType::F64}) {
    const Net net{.length = 64, .keys = 8, .values = 8, .dtype = dtype};
    Feeds feeds = net.feeds();
    std::vector<double> gates = feeds.at("g").numbers<double>();
    const double some[] = {-1e4, 0, -Inf, -100, 2, -2, -88, 3, -3, -1e-30, -1e30};
    for (std::size_t i = 0; i < std::size(some); ++i) gates[11 * i + 3] = some[i];
    feeds.at("g") = Tensor::from_numbers<double>(feeds.at("g").type(), gates);
    const Tolerance near =
        dtype == DType::F64 ? tolerance(dtype) : Tolerance{.relative = 1e-4, .absolute = 1e-4};
    for (const Graph& graph : {net.graph(), net.gradients()}) {
      const std::vector<Tensor> expected = interpret(graph, feeds);
      const std::vector<Tensor> got = compile(graph).run(feeds);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(close(got[i], expected[i], near)) << "output " << i;
      }
    }
  }
}

// A number that is not finite reaches later steps and no earlier one, in the middle of a chunk too.
TEST(BackendDeltaChunks, NoNumberReachesAnEarlierStep) {
  constexpr double Inf = std::numeric_limits<double>::infinity();
  const Net net{.length = 80, .keys = 3, .values = 2};
  for (const char* name : {"q", "k", "v", "beta", "g"}) {
    for (const double odd : {std::nan(""), Inf}) {
      SCOPED_TRACE(name);
      Feeds feeds = net.feeds();
      std::vector<double> numbers = feeds.at(name).numbers<double>();
      numbers[numbers.size() * 45 / 80] = odd;
      feeds.at(name) = Tensor::from_numbers<double>(feeds.at(name).type(), numbers);
      const std::vector<double> out = compile(net.graph()).run(feeds)[0].numbers<double>();
      for (std::size_t i = 0; i < 45 * 4; ++i) EXPECT_TRUE(std::isfinite(out[i])) << i;
      expect_reference(net.graph(), feeds);
    }
  }
}

// A prompt at once and then step by step gives what all at once gives: one op, however long.
TEST(BackendDeltaChunks, DecodingGoesOnWherePrefillEnds) {
  constexpr std::int64_t Prompt = 48;
  const Net whole{.length = Prompt + 3, .keys = 6, .values = 5, .heads = 1};
  const std::vector<Tensor> expected = interpret(whole.graph(), whole.feeds());
  Net piece{.length = Prompt, .keys = 6, .values = 5, .heads = 1};
  Tensor state = whole.feeds().at("state");
  for (std::int64_t at = 0; at < whole.length; at += piece.length) {
    piece.length = at == 0 ? Prompt : 1;
    const Graph graph = piece.graph();
    EXPECT_TRUE(graph.nodes().back().op.is<op::GatedDeltaNet>());
    Feeds feeds = whole.feeds();
    for (auto& [name, value] : feeds) {
      if (name != "state") value = value.narrowed(1, at, piece.length).contiguous();
    }
    feeds.at("state") = state;
    const CompiledGraph program = compile(graph);
    EXPECT_EQ(program.program().steps.size(), 1);
    const std::vector<Tensor> got = program.run(feeds);
    EXPECT_TRUE(close(got[0], expected[0].narrowed(1, at, piece.length).contiguous())) << at;
    state = got[1];
  }
  EXPECT_TRUE(close(state, expected[1]));
}

TEST(BackendDeltaChunks, TangentsAndBatchesOfLongSequences) {
  const Net net{.length = 40, .keys = 3, .values = 2};
  const Transformed tangents = jvp(net.graph(), {"q", "k", "v", "g", "beta", "state"});
  Feeds feeds = net.feeds();
  std::uint64_t seed = 20;
  for (const auto& [name, value] : net.feeds()) {
    feeds.emplace("tangent_" + name, random_tensor(++seed, value.type(), -1, 1));
  }
  expect_reference(tangents.graph, feeds);
  const Graph batched = vmap(net.gradients(), {{"q"}, {"v"}}, 3).graph;
  Feeds rows = net.feeds();
  for (const char* name : {"q", "v"}) {
    Dims dims = rows.at(name).type().dims;
    dims.insert(dims.begin(), 3);
    rows.at(name) = random_tensor(++seed, {DType::F64, dims}, -0.5, 0.5);
  }
  expect_reference(batched, rows);
}

// Room grows with the length, and far slower than all states would.
TEST(BackendDeltaChunks, RoomGrowsWithLengthAlone) {
  const auto room = [](std::int64_t length) {
    const Net net{.length = length, .keys = 64, .values = 64, .dtype = DType::F32};
    return compile(net.gradients(), Device::cpu(1)).workspace_bytes();
  };
  constexpr std::int64_t Length = 4096;
  EXPECT_LE(room(2 * Length), 2 * room(Length));
  EXPECT_LT(room(2 * Length), 2 * 2 * Length * 64 * 64 * 4 / 16);
}

// The table every machine can run gives what this machine's gives.
TEST(BackendDeltaChunks, EveryInstructionSetMultipliesTheSame) {
  constexpr std::int64_t Steps = 27;
  constexpr std::int64_t Keys = 11;
  constexpr std::int64_t Width = 29;
  constexpr std::int64_t Columns = cpu::DeltaChunkColumns;
  const auto numbers = [](std::uint64_t seed, std::int64_t count, double low, double high) {
    return random_numbers(seed, static_cast<std::size_t>(count), low, high);
  };
  const auto rows = numbers(1, 4 * Steps * Width, -0.4, 0.4);
  const auto gates = numbers(2, Steps, -1, 0);
  std::vector<std::vector<double>> found;
  for (const cpu::VectorKernels* k : {&cpu::vector_base::kernels, &cpu::vector_kernels()}) {
    std::vector<double> state(static_cast<std::size_t>(2 * Keys * Columns));
    for (std::size_t i = 0; i < state.size(); ++i) {
      if (static_cast<std::int64_t>(i) % Columns < Width) state[i] = rows[i % rows.size()];
    }
    std::vector<double> out(static_cast<std::size_t>(2 * Steps * (Columns + Keys + 1)));
    std::vector<double> room(static_cast<std::size_t>(cpu::delta_chunk_room(Keys)));
    double* at = out.data();
    const auto next = [&](std::int64_t count) { return at += count, at - count; };
    cpu::DeltaChunk<double> c{.steps = Steps, .keys = Keys, .width = Width, .key_step = Keys};
    c.value_step = Width, c.gate_step = 1, c.kappa = 0.3;
    c.q = rows.data(), c.k = c.q + Steps * Keys, c.v = c.k + Steps * Keys;
    c.g = gates.data(), c.beta = rows.data(), c.room = room.data();
    c.s = state.data(), c.later = c.s + Keys * Columns;
    c.out = next(Steps * Columns), c.dout = c.v + Steps * Width;
    EXPECT_TRUE(k->recurrence_f64.delta_chunk(c));
    c.dv = next(Steps * Columns), c.dq = next(Steps * Keys), c.dk = next(Steps * Keys);
    c.dg = next(Steps), c.dbeta = next(Steps);
    EXPECT_TRUE(k->recurrence_f64.delta_chunk_backward(c));
    out.insert(out.end(), state.begin(), state.end());
    found.push_back(std::move(out));
  }
  for (std::size_t i = 0; i < found[0].size(); ++i) {
    EXPECT_NEAR(found[1][i], found[0][i], 1e-12 * (1 + std::abs(found[0][i]))) << i;
  }
}

}  // namespace
}  // namespace ricci::testing::delta_chunks_test
