// Ops that walk along an axis in pieces: lengths around the borders of these pieces, room that does
// not grow with the square of a length nor with length times state, and bits that no number of
// threads changes.
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/build/select.h"
#include "ricci/compat/sequence.h"
#include "ricci/interp/interpreter.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/transform/grad.h"

#include "backend/agreement.h"
#include "backend/cpu/kernels/vector_kernels.h"
#include "support/compare.h"

namespace ricci::testing::sequences_test {
namespace {

// What one thread gives is what the reference gives, and what eight give is that to the bit.
void expect_reference(const Graph& graph, const Feeds& feeds, bool exact) {
  const std::vector<Tensor> expected = interpret(graph, feeds);
  const std::vector<Tensor> one = compile(graph, Device::cpu(1)).run(feeds);
  const std::vector<Tensor> eight = compile(graph, Device::cpu(8)).run(feeds);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(exact ? same(one[i], expected[i]) : close(one[i], expected[i])) << "output " << i;
    EXPECT_TRUE(same(eight[i], one[i])) << "output " << i << " on eight threads";
  }
}

struct Recurrence {
  Graph graph;
  Feeds feeds;
};

Recurrence state_space(DType dtype, std::int64_t length, std::int64_t channels,
                       std::int64_t states) {
  Graph g(fmt::format("state_space_{}", length));
  const Value x = g.input("x", {dtype, {2, length, channels}});
  const Value delta = g.input("delta", {dtype, {2, length, channels}});
  const Value a = g.input("a", {dtype, {channels, states}});
  const Value b = g.input("b", {dtype, {2, length, states}});
  const Value c = g.input("c", {dtype, {2, length, states}});
  const Value h0 = g.input("h0", {dtype, {2, channels, states}});
  const auto [y, h] = selective_scan_with_state(x, delta, a, b, c, {.state_size = states}, h0);
  g.set_outputs({sum(y) + sum(h * h)});
  Feeds feeds = {
      {"x", random_tensor(1, x.type())},        {"delta", random_tensor(2, delta.type(), 0, 0.5)},
      {"a", random_tensor(3, a.type(), -2, 0)}, {"b", random_tensor(4, b.type(), -1, 1)},
      {"c", random_tensor(5, c.type(), -1, 1)}, {"h0", random_tensor(6, h0.type(), -1, 1)}};
  return {value_and_grad(g, {"x", "delta", "a", "b", "c", "h0"}).graph, std::move(feeds)};
}

Recurrence gated_delta(DType dtype, std::int64_t length, std::int64_t keys, std::int64_t values) {
  Graph g(fmt::format("gated_delta_{}", length));
  const Value q = g.input("q", {dtype, {1, length, 2, keys}});
  const Value k = g.input("k", {dtype, {1, length, 2, keys}});
  const Value v = g.input("v", {dtype, {1, length, 4, values}});
  const Value gate = g.input("g", {dtype, {1, length, 4}});
  const Value beta = g.input("beta", {dtype, {1, length, 4}});
  const Value state = g.input("state", {dtype, {1, 4, keys, values}});
  const auto [o, last] = gated_delta_net_carry(q, k, v, gate, beta, state, keys);
  g.set_outputs({sum(o) + sum(last * last)});
  Feeds feeds = {{"q", random_tensor(1, q.type(), -1, 1)},
                 {"k", random_tensor(2, k.type(), -0.5, 0.5)},
                 {"v", random_tensor(3, v.type())},
                 {"g", random_tensor(4, gate.type(), -0.5, 0)},
                 {"beta", random_tensor(5, beta.type(), 0, 1)},
                 {"state", random_tensor(6, state.type(), -1, 1)}};
  return {value_and_grad(g, {"q", "k", "v", "g", "beta", "state"}).graph, std::move(feeds)};
}

// [ssm-parallel] Their steps are cut into segments that run side by side, by length alone; what
// comes out is what one step after the other gives.
TEST(BackendSequences, LongScansOfFewChannelsRunInSegments) {
  for (const std::int64_t length : {511, 1023, 1024, 1037, 4097}) {
    for (const DType dtype : {DType::F32, DType::F64}) {
      Graph g(fmt::format("long_{}", length));
      const Value x = g.input("x", {dtype, {1, length, 3}});
      const Value delta = g.input("delta", {dtype, {1, length, 3}});
      const Value a = g.input("a", {dtype, {3, 5}});
      const Value b = g.input("b", {dtype, {1, length, 5}});
      const Value c = g.input("c", {dtype, {1, length, 5}});
      const Value h0 = g.input("h0", {dtype, {1, 3, 5}});
      const auto [y, h] = selective_scan_with_state(x, delta, a, b, c, {.state_size = 5}, h0);
      g.set_outputs({y, h});
      // Slow decays: what a segment starts from is seen to its end.
      const Feeds feeds = {{"x", random_tensor(1, x.type())},
                           {"delta", random_tensor(2, delta.type(), 0, 0.01)},
                           {"a", random_tensor(3, a.type(), -0.2, 0)},
                           {"b", random_tensor(4, b.type(), -1, 1)},
                           {"c", random_tensor(5, c.type(), -1, 1)},
                           {"h0", random_tensor(6, h0.type(), -1, 1)}};
      if (dtype == DType::F64) {
        expect_reference(g, feeds, false);
        continue;
      }
      const std::vector<Tensor> expected = interpret(g, feeds);
      const std::vector<Tensor> one = compile(g, Device::cpu(1)).run(feeds);
      const std::vector<Tensor> three = compile(g, Device::cpu(3)).run(feeds);
      for (std::size_t i = 0; i < expected.size(); ++i) {  // sums of thousands of terms of size 1
        EXPECT_TRUE(close(one[i], expected[i], {.relative = 1e-5, .absolute = 1e-5}));
        EXPECT_TRUE(same(three[i], one[i]));
      }
    }
  }
}

// Chunks have the square root of the length, outputs are written every 64 steps.
TEST(BackendSequences, RecurrencesHoldAroundTheBordersOfChunks) {
  for (const std::int64_t length : {0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 130}) {
    for (const std::int64_t columns : {1, 33}) {
      const auto [scan, scan_feeds] = state_space(DType::F64, length, columns, 3);
      expect_reference(scan, scan_feeds, false);
      const auto [net, net_feeds] = gated_delta(DType::F64, length, 5, columns);
      expect_reference(net, net_feeds, false);
    }
  }
}

// Blocks of columns with and without a rest, and states around the width of a vector.
TEST(BackendSequences, RecurrencesHoldAroundTheWidthsOfVectors) {
  for (const std::int64_t columns : {0, 1, 31, 32, 64, 70}) {
    for (const std::int64_t states : {1, 7, 8, 9, 16, 17}) {
      const auto [scan, scan_feeds] = state_space(DType::F64, 5, columns, states);
      expect_reference(scan, scan_feeds, false);
      const auto [net, net_feeds] = gated_delta(DType::F64, 5, states, columns);
      expect_reference(net, net_feeds, false);
    }
  }
}

// Columns that fill up a block have zeros for what is theirs, and nothing of them reaches a sum
// over columns: not even of what an infinity in a factor of all columns makes of these zeros.
TEST(BackendSequences, RecurrencesOfFewColumnsKeepInfinitiesToThem) {
  for (const std::int64_t columns : {3, 33}) {
    for (const auto& [graph, feeds] :
         {state_space(DType::F64, 5, columns, 3), gated_delta(DType::F64, 5, 3, columns)}) {
      for (const auto& [name, value] : feeds) {
        SCOPED_TRACE(fmt::format("{} of {}", name, graph.name()));
        auto numbers = value.numbers<double>();
        numbers[numbers.size() / 2] = std::numeric_limits<double>::infinity();
        Feeds odd = feeds;
        odd[name] = Tensor::from_numbers<double>(value.type(), numbers);
        EXPECT_EQ(disagreement(graph, odd, compiled_outcome(graph, odd, true),
                               reference_outcome(graph, odd)),
                  "");
      }
    }
  }
}

// More blocks than there are parts with sums of their own.
TEST(BackendSequences, ManyBlocksShareTheirSums) {
  const auto [scan, scan_feeds] = state_space(DType::F64, 9, 32 * 35 + 1, 2);
  expect_reference(scan, scan_feeds, false);
  const auto [net, net_feeds] = gated_delta(DType::F64, 9, 3, 32 * 19);
  expect_reference(net, net_feeds, false);
}

// The table every machine can run gives what this machine's gives.
TEST(BackendSequences, EveryInstructionSetTakesTheSameSteps) {
  constexpr std::int64_t Steps = 6;
  constexpr std::int64_t States = 11;
  constexpr std::int64_t Width = 29;
  constexpr std::int64_t Room = States * cpu::RecurrenceColumns;
  const auto numbers = [](std::uint64_t seed, std::int64_t count, double low, double high) {
    return random_numbers(seed, static_cast<std::size_t>(count), low, high);
  };
  const auto x = numbers(1, Steps * Width, -1, 1);
  const auto delta = numbers(2, Steps * Width, 0, 1);
  const auto b = numbers(3, Steps * States, -1, 1);
  const auto c = numbers(4, Steps * States, -1, 1);
  const auto a = numbers(5, Room, -800, 1);  // decays down to zero
  std::vector<std::vector<double>> found;
  for (const cpu::VectorKernels* k : {&cpu::vector_base::kernels, &cpu::vector_kernels()}) {
    std::vector<double> h = numbers(6, Room * (Steps + 1), -1, 1);
    std::vector<double> decays(static_cast<std::size_t>(Room * Steps));
    std::vector<double> later = numbers(7, Room, -1, 1);
    std::vector<double> out(static_cast<std::size_t>(3 * Steps * cpu::RecurrenceColumns));
    std::vector<double> sums(static_cast<std::size_t>(2 * Steps * States + Room));
    cpu::ScanSteps<double> s{.steps = Steps, .states = States, .channels = Width, .width = Width};
    s.x = x.data(), s.delta = delta.data(), s.b = b.data(), s.c = c.data(), s.a = a.data();
    s.h = h.data(), s.h_step = Room, s.decays = decays.data(), s.y = out.data();
    k->recurrence_f64.scan(s);
    s.dy = x.data(), s.later = later.data();
    s.dx = out.data() + Steps * cpu::RecurrenceColumns;
    s.ddelta = s.dx + Steps * cpu::RecurrenceColumns;
    s.db = sums.data(), s.dc = s.db + Steps * States, s.da = s.dc + Steps * States;
    k->recurrence_f64.scan_backward(s);
    for (std::vector<double>* part : {&decays, &later, &out, &sums}) {
      h.insert(h.end(), part->begin(), part->end());
    }
    found.push_back(std::move(h));
  }
  for (std::size_t i = 0; i < found[0].size(); ++i) {
    EXPECT_NEAR(found[1][i], found[0][i], 1e-12 * (1 + std::abs(found[0][i]))) << i;
  }
}

// All states of all steps would be more than eight times as much.
TEST(BackendSequences, RoomOfARecurrenceDoesNotGrowWithStepsTimesStates) {
  constexpr std::int64_t Length = 8192;
  const Recurrence scan = state_space(DType::F32, Length, 1024, 64);
  EXPECT_LT(compile(scan.graph).workspace_bytes(), 2 * Length * 1024 * 64 * 4 / 8);
  const Recurrence net = gated_delta(DType::F32, Length, 64, 64);
  EXPECT_LT(compile(net.graph).workspace_bytes(), 4 * Length * 64 * 64 * 4 / 8);
}

TEST(BackendSequences, RoomOfAttentionGrowsWithLengthAlone) {
  const auto workspace = [](std::int64_t length) {
    Graph g("attention");
    const Type type = f32({1, 2, length, 64});
    const Value y = attention(g.input("q", type), g.input("k", type), g.input("v", type),
                              {.num_heads = 2,
                               .head_dim = 64,
                               .mask_kind = MaskKind::causal(),
                               .layout = AttentionLayout::Bhsd});
    g.set_outputs({sum(y * y)});
    return compile(value_and_grad(g, {"q", "k", "v"}).graph).workspace_bytes();
  };
  constexpr std::int64_t Length = 8192;
  EXPECT_LE(workspace(Length), 2 * workspace(Length / 2) + 4096);
  EXPECT_LT(workspace(Length), Length * Length * 4 / 8);  // of one head's scores
}

// Few different numbers, so that most are equal: zeros of both signs, infinities, NaN.
Tensor ties(std::uint64_t seed, const Type& type) {
  constexpr double Inf = std::numeric_limits<double>::infinity();
  constexpr double NaN = std::numeric_limits<double>::quiet_NaN();
  constexpr std::array Some = {0.0, -0.0, 1.5, -1.5, Inf, -Inf, NaN, 1e-30, -3.0, 7.0};
  const auto count = static_cast<std::size_t>(type.numel().value());
  std::vector<double> numbers = random_numbers(seed, count, 0, static_cast<double>(Some.size()));
  for (double& n : numbers) {
    n = is_float(type.dtype) ? Some[static_cast<std::size_t>(n)] : std::floor(n) - 4;
  }
  return Tensor::from_numbers<double>(type, numbers);
}

// Long enough that one row is sorted by all threads.
TEST(BackendSequences, LongRowsAreSortedStablyByAllThreads) {
  for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::I32, DType::I64}) {
    for (const Dims& dims : {Dims{65535}, Dims{65536}, Dims{100003}, Dims{70001, 3}}) {
      for (const bool descending : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {}", name(dtype), descending));
        Graph g("sort");
        const Value x = g.input("x", {dtype, dims});
        const auto [values, order] = sort(x, {.axis = 0, .descending = descending});
        g.set_outputs({values, order});
        expect_reference(g, {{"x", ties(7, x.type())}}, true);
      }
    }
  }
}

// All keys differ, over their whole range.
TEST(BackendSequences, LongRowsOfDifferentNumbersAreSorted) {
  for (const DType dtype : {DType::F32, DType::F64, DType::I32}) {
    Graph g("sort");
    const Value x = g.input("x", {dtype, {200000}});
    const auto [values, order] = sort(x);
    g.set_outputs({values, order});
    expect_reference(g, {{"x", random_tensor(3, x.type(), -2e9, 2e9)}}, true);
  }
}

TEST(BackendSequences, TopKOfRowsWithTiesAndNaNs) {
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::I32}) {
    for (const std::int64_t k : {1, 5, 50, 400}) {
      SCOPED_TRACE(fmt::format("{} of {}", k, name(dtype)));
      Graph g("top_k");
      const Value x = g.input("x", {dtype, {9, 2003}});
      const auto [values, order] = top_k(x, {.k = k});
      g.set_outputs({values, order});
      expect_reference(g, {{"x", ties(11, x.type())}}, true);
      expect_reference(g, {{"x", random_tensor(12, x.type(), -1000, 1000)}}, true);
    }
  }
}

// The worst orders for a limit that rises: every element passes it, or none does.
TEST(BackendSequences, TopKOfRisingAndFallingRows) {
  std::vector<double> numbers(3 * 4001);
  for (std::size_t i = 0; i < 4001; ++i) {
    numbers[i] = static_cast<double>(i);
    numbers[4001 + i] = -static_cast<double>(i);
    numbers[2 * 4001 + i] = 5;
  }
  Graph g("top_k");
  const Value x = g.input("x", f32({3, 4001}));
  const auto [values, order] = top_k(x, {.k = 20});
  g.set_outputs({values, order});
  expect_reference(g, {{"x", Tensor::from_numbers<double>(x.type(), numbers)}}, true);
}

// Rows are taken several at a time, with a rest.
TEST(BackendSequences, RunningTotalsOfAnyNumberOfRows) {
  for (const Dims& dims : {Dims{257}, Dims{1, 9}, Dims{3, 65}, Dims{4, 1}, Dims{5, 64}, Dims{9, 3},
                           Dims{301, 257}, Dims{3, 0}, Dims{0, 3}}) {
    for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::I32, DType::I8}) {
      Graph g("totals");
      const Value x = g.input("x", {dtype, dims});
      std::vector<Value> out;
      for (const bool exclusive : {false, true}) {
        for (const CumulativeKind kind : {CumulativeKind::Cumsum, CumulativeKind::Cumprod,
                                          CumulativeKind::Cummax, CumulativeKind::Cummin}) {
          out.push_back(cumulative(kind, x, {.axis = -1, .exclusive = exclusive}));
        }
        if (is_float(dtype))
          out.push_back(cumsum_backward(x, {.axis = -1, .exclusive = exclusive}));
      }
      g.set_outputs(out);
      expect_reference(g, {{"x", random_tensor(3, x.type(), 0.9, 1.1)}}, true);
    }
  }
}

}  // namespace
}  // namespace ricci::testing::sequences_test
