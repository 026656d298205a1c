// Programs at the edges of what control flow, shapes, aliases and dtypes allow, on every device:
// they compute what the reference does and report what it reports, fused and op by op, in half the
// memory, and in the buffers of their inputs.
#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/transform/grad.h"

#include "backend/agreement.h"
#include "runtime/models.h"
#include "support/every_device.h"
#include "support/run_in_place.h"

namespace ricci::testing::odd_programs_test {
namespace {

using Values = std::span<const Value>;
using Made = std::vector<Value>;

class BackendOddPrograms : public OnEveryDevice {
 protected:
  [[nodiscard]] Outcome run(const Graph& g, const Feeds& feeds,
                            const CompileOptions& options) const {
    try {
      return compile(g, device(), options).run(feeds);
    } catch (const UserError& e) {
      return e.code();
    }
  }

  void expect_agreement(const Graph& whole, const Feeds& feeds) const {
    const Graph g = dead_code_elimination(whole).graph;
    const Outcome expected = reference_outcome(g, feeds);
    for (const bool fuse : {true, false}) {
      const Outcome actual = run(g, feeds, {.fuse = fuse});
      EXPECT_EQ(device_disagreement(g, feeds, actual, expected), "")
          << g.name() << (fuse ? "" : ", op by op");
    }
    expect_same_in_less_memory(g, feeds);
  }

  void expect_same_in_less_memory(const Graph& g, const Feeds& feeds) const {
    const CompiledGraph freely = compile(g, device());
    const std::int64_t arena = freely.program().arena_bytes;
    for (const std::int64_t part : {4, 2}) {
      const std::int64_t budget = freely.workspace_bytes() - arena / part;
      const Outcome there = run(g, feeds, {});
      const Outcome tight = run(g, feeds, {.memory_budget = std::max<std::int64_t>(1, budget)});
      const auto* code = std::get_if<ErrorCode>(&tight);
      if (code != nullptr && *code == ErrorCode::OutOfMemory) continue;
      ASSERT_EQ(tight.index(), there.index()) << g.name();
      if (code != nullptr) {
        EXPECT_EQ(*code, std::get<ErrorCode>(there)) << g.name();
      } else {
        EXPECT_TRUE(identical(std::get<0>(tight), std::get<0>(there))) << g.name();
      }
    }
  }

  void expect_agreement_of_gradient(const Graph& g, const std::vector<ValueRef>& of) const {
    const Graph gradient = value_and_grad(g, of).graph;
    expect_agreement(gradient, random_feeds(gradient));
  }
};
RICCI_ON_EVERY_DEVICE(BackendOddPrograms);

Value all(Value x) { return sum(std::move(x)); }

Value scalar_of(const Value& like, double number) {
  return like.graph().constant(Tensor::splat({like.dtype(), {}}, number));
}

// Loops.

// What a loop of no trips gives: its carries as they came in, rows of nothing.
Graph zero_trips(std::int64_t outer, std::int64_t inner) {
  Graph g("zero_trips");
  const Value c = g.input("c", f32({3}));
  const Value xs = g.input("xs", f32({inner, 3}));
  const auto row = [](Graph& body, Values v) -> Made {
    const Value next = tanh(v[0] * v[1]);
    return {next, next + 1.0, body.constant(Tensor::of<float>({2}, {1, 2})), v[1]};
  };
  const auto trip = [&](Graph&, Values v) -> Made {
    const Made in = scan(std::array{v[0]}, {.xs = {v[1]}}, row);
    return {in[0] + all(in[1]), in[2], in[3]};
  };
  const Made out = scan(std::array{c}, {.bcasts = {xs}, .length = outer}, trip);
  g.set_outputs({out[0], out[1], out[2], all(out[0])});
  return g;
}

TEST_P(BackendOddPrograms, LoopsOfNoTrips) {
  for (const std::int64_t outer : {0, 1, 3}) {
    for (const std::int64_t inner : {0, 1, 2}) {
      SCOPED_TRACE(std::to_string(outer) + " of " + std::to_string(inner));
      const Graph g = zero_trips(outer, inner);
      expect_agreement(g, random_feeds(g));
      Graph loss = g;
      loss.set_outputs({g.outputs()[3]});
      expect_agreement_of_gradient(loss, {"c", "xs"});
    }
  }
}

// While loops in scans, that stop at once for some rows; a branch inside, whose other side faults.
Graph searching() {
  Graph g("searching");
  const Value xs = g.input("xs", f64({5}));
  const Value table = g.input("table", f64({4}));
  const Value far = g.input("far", i32({}));
  const auto smaller = [](Graph&, Values v) -> Made {
    return {lt(abs(v[0]), scalar_of(v[0], 2.0))};
  };
  const auto grow = [](Graph&, Values v) -> Made {
    const auto look = [](Graph&, Values u) -> Made { return {u[0] + gather(u[1], u[2])}; };
    const auto turn = [](Graph&, Values u) -> Made { return {u[0] * -1.5 - 0.25}; };
    const Value next =
        cond(gt(v[0], scalar_of(v[0], 100.0)), std::array{v[0], v[1], v[2]}, look, turn)[0];
    return {next, v[1], v[2]};
  };
  const auto row = [&](Graph&, Values v) -> Made {
    const auto found = while_loop(std::array{v[3], v[1], v[2]}, smaller, grow,
                                  {.max_iterations = 9, .trip_count = true});
    return {v[0] + found.carries[0], found.carries[0], found.trip_count};
  };
  const Made out = scan(std::array{g.constant(Tensor::splat({DType::F64, {}}, 0.5))},
                        {.bcasts = {table, far}, .xs = {xs}}, row);
  g.set_outputs({out[0], out[1], out[2]});
  return g;
}

TEST_P(BackendOddPrograms, BranchesNotTakenDoNotFault) {
  const Graph g = searching();
  Feeds feeds = random_feeds(g);
  feeds["far"] = Tensor::of<std::int32_t>({}, {99});
  feeds["xs"] =
      Tensor::of<double>({5}, {0, 3, -0.75, 1e6, std::numeric_limits<double>::quiet_NaN()});
  expect_agreement(g, feeds);
}

// A fault in the third trip of the second row, and in the condition.
TEST_P(BackendOddPrograms, FaultsDeepInLoops) {
  Graph g("deep_fault");
  const Value table = g.input("table", i32({2, 3}));
  const Value numbers = g.input("numbers", f32({4}));
  const auto pick = [](Graph&, Values v) -> Made { return {v[0] + gather(v[1], v[2])}; };
  const auto row = [&](Graph&, Values v) -> Made {
    return {scan(std::array{v[0]}, {.bcasts = {v[1]}, .xs = {v[2]}}, pick)[0]};
  };
  g.set_outputs(
      {scan(std::array{g.input("c", f32({}))}, {.bcasts = {numbers}, .xs = {table}}, row)[0]});
  for (const std::int32_t last : {0, 3, 4, -1}) {
    Feeds feeds = random_feeds(g);
    feeds["table"] = Tensor::of<std::int32_t>({2, 3}, {0, 1, 2, 3, 2, last});
    expect_agreement(g, feeds);
  }
  Graph h("fault_in_condition");
  const auto divides = [](Graph&, Values v) -> Made { return {gt(div(v[1], v[0]), v[0])}; };
  const auto less = [](Graph& body, Values v) -> Made {
    return {sub(v[0], body.constant(Tensor::of<std::int32_t>({}, {1}))), v[1]};
  };
  const Value n = h.input("n", i32({}));
  const Value m = h.input("m", i32({}));
  h.set_outputs({while_loop(std::array{n, m}, divides, less).carries[0]});
  for (const std::int32_t start : {2, 0, -3}) {
    expect_agreement(h, {{"n", Tensor::of<std::int32_t>({}, {start})},
                         {"m", Tensor::of<std::int32_t>({}, {100})}});
  }
}

// Results nobody wants, constants, and operands handed through, at every level.
TEST_P(BackendOddPrograms, BodiesThatPassThings) {
  Graph g("passing");
  const Value p = g.input("p", Type(DType::Bool, {}));
  const Value x = g.input("x", f32({2, 2}));
  const Value y = g.input("y", f32({2, 2}));
  const auto swap = [](Graph&, Values v) -> Made { return {v[1], v[0], v[0]}; };
  const auto still = [](Graph& body, Values v) -> Made {
    return {v[0], v[0], body.constant(Tensor::splat(f32({2, 2}), 7.0))};
  };
  const auto trip = [&](Graph&, Values v) -> Made {
    const Made b = cond(v[2], std::array{v[0], v[1]}, swap, still);
    return {b[0], b[1], b[2]};
  };
  const Made out = scan(std::array{x, y}, {.bcasts = {p}, .length = 3}, trip);
  g.set_outputs({out[1], out[2]});
  for (const bool taken : {false, true}) {
    Feeds feeds = random_feeds(g);
    feeds["p"] = Tensor::of<bool>({}, {taken});
    expect_agreement(g, feeds);
  }
  Graph only("only");
  only.set_outputs({only.input("a", f32({3}))});
  expect_agreement(only, random_feeds(only));
}

// Sizes.

Graph empty_everything() {
  Graph g("empty");
  const Value x = g.input("x", f32({2, 3}));
  const Value none = g.constant(Tensor::zeros(f32({0, 3})));
  const Value thin = g.constant(Tensor::zeros(f32({3, 0})));
  const Value ids = g.constant(Tensor::zeros(i32({0})));
  const Value joined = concat(std::vector{none, x, none}, {.axis = 0});
  const Value nothing = matmul(x, thin);                                  // [2, 0]
  const Value zeros = matmul(nothing, g.input("w", f32({0, 4})));         // [2, 4]
  const Value picked = gather(x, ids);                                    // [0, 3]
  const Value sums = reduce(none, {.op = ReduceKind::Sum, .axes = {0}});  // [3]
  const Value products = reduce(none, {.op = ReduceKind::Prod, .axes = {0}});
  const Value mean = reduce(none, {.op = ReduceKind::Mean, .axes = {0}});
  g.set_outputs({joined, nothing, zeros, exp(picked), sums, products + x, mean, all(picked)});
  return g;
}

TEST_P(BackendOddPrograms, NothingAtAll) {
  const Graph g = empty_everything();
  expect_agreement(g, random_feeds(g));
}

TEST_P(BackendOddPrograms, SizesThatCallersChoose) {
  Graph g("sized");
  const Dim n = Dim::symbol("n");
  const Value x = g.input("x", f32({n, 3}));
  const Value w = g.input("w", f32({3, n}));
  const auto row = [](Graph&, Values v) -> Made { return {tanh(v[0] + v[1]), v[0]}; };
  const Made s = scan(std::array{g.input("c", f32({3}))}, {.xs = {x}}, row);
  g.set_outputs({matmul(x, w), s[0], s[1], concat(std::vector{x, x}, {.axis = 0})});
  const CompiledGraph f = compile(g, device());
  for (const std::int64_t size : {3, 0, 1, 64}) {
    const Feeds feeds = {{"x", random_tensor(1, f32({size, 3}))},
                         {"w", random_tensor(2, f32({3, size}))},
                         {"c", random_tensor(3, f32({3}))}};
    const std::vector<Tensor> expected = interpret(g, feeds);
    const std::vector<Tensor> actual = f.run(feeds);
    for (std::size_t o = 0; o < expected.size(); ++o) {
      EXPECT_TRUE(close(actual[o], expected[o])) << size << ", output " << o;
    }
  }
}

// Aliases.

// Every output lies where an input does that others still read, moved about or handed through.
TEST_P(BackendOddPrograms, OutputsInThePlaceOfWhatIsReadElsewhere) {
  Graph g("places");
  const Value a = g.input("a", f32({4, 4}));
  const Value b = g.input("b", f32({4, 4}));
  const Value c = g.input("c", f32({4, 4}));
  const Value d = g.input("d", f32({4, 4}));
  g.set_outputs({transpose(a, {.perm = {1, 0}}), c, b, reverse(a + d, {.axes = {0}}) + b});
  const Feeds feeds = random_feeds(g);
  const std::vector<Tensor> expected = interpret(g, feeds);
  std::array<std::string, 4> inputs = {"a", "b", "c", "d"};
  do {
    CompileOptions options;
    for (std::size_t o = 0; o < inputs.size(); ++o) options.donations.push_back({o, inputs[o]});
    for (const bool fuse : {true, false}) {
      options.fuse = fuse;
      EXPECT_TRUE(identical(run_in_place(g, feeds, device(), options), expected))
          << inputs[0] << inputs[1] << inputs[2] << inputs[3] << (fuse ? "" : ", op by op");
    }
  } while (std::ranges::next_permutation(inputs).found);
}

TEST_P(BackendOddPrograms, LoopsInThePlaceOfTheirOperands) {
  Graph g("loop_places");
  const Value a = g.input("a", f32({3}));
  const Value b = g.input("b", f32({3}));
  const Value xs = g.input("xs", f32({4, 3}));
  const auto swap = [](Graph&, Values v) -> Made { return {v[1], v[0] + v[2], v[2] * v[0]}; };
  const Made out = scan(std::array{a, b}, {.xs = {xs}}, swap);
  g.set_outputs({out[0], out[1], out[2]});
  const Feeds feeds = random_feeds(g);
  const std::vector<Tensor> expected = interpret(g, feeds);
  for (const bool crossed : {false, true}) {
    const CompileOptions options{
        .donations = {{0, crossed ? "b" : "a"}, {1, crossed ? "a" : "b"}, {2, "xs"}}};
    EXPECT_TRUE(identical(run_in_place(g, feeds, device(), options), expected));
  }
}

TEST_P(BackendOddPrograms, OneInputManyTimes) {
  Graph g("again");
  const Value x = g.input("x", f32({3, 3}));
  const Value y = concat(std::vector{x, transpose(x, {.perm = {1, 0}}), x}, {.axis = 1});
  g.set_outputs({x, x, matmul(x, x), y, reverse(y, {.axes = {0, 1}}),
                 matmul(y, transpose(y, {.perm = {1, 0}}))});
  expect_agreement(g, random_feeds(g));
}

// Dtypes.

TEST_P(BackendOddPrograms, NumbersAtTheEndsOfTheirDtypes) {
  constexpr double Inf = std::numeric_limits<double>::infinity();
  Graph g("ends");
  const Value x = g.input("x", f64({8}));
  std::vector<Value> out;
  for (const DType to : AllDTypes) {
    const Value y = cast(x, {.to = to});
    out.push_back(y);
    out.push_back(cast(y, {.to = DType::F32}));
    if (!is_complex(to)) {
      out.push_back(reduce(y, {.op = ReduceKind::Max, .axes = {0}}));
      out.push_back(reduce(y, {.op = ReduceKind::Min, .axes = {0}}));
      if (to != DType::Bool) out.push_back(cumulative(CumulativeKind::Cummax, y, {.axis = 0}));
    }
    if (is_int(to)) {
      out.push_back(y + y);
      out.push_back(neg(y));
      out.push_back(reduce(y, {.op = ReduceKind::Prod, .axes = {0}}));
      out.push_back(cast(y, {.to = DType::I64}) * cast(y, {.to = DType::I64}));
    }
  }
  g.set_outputs(out);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::array<double, 8>& numbers :
       {std::array<double, 8>{0, -0.0, 1, -1, 127.5, -128.5, 255.5, 256},
        std::array<double, 8>{65504, 65520, -32769, 2147483648.0, -2147483649.0, 4294967296.0,
                              1e300, -1e300},
        std::array<double, 8>{9223372036854775807.0, -9223372036854775808.0, 1e-45, 5e-324, Inf,
                              -Inf, nan, 3}}) {
    expect_agreement(
        g, {{"x", Tensor::of<double>({8}, std::vector<double>(numbers.begin(), numbers.end()))}});
  }
}

TEST_P(BackendOddPrograms, LoopsOfSmallIntegersAndBools) {
  Graph g("wrapping");
  const Value c = g.input("c", Type(DType::U8, {}));
  const Value b = g.input("b", Type(DType::Bool, {}));
  const Value xs = g.input("xs", Type(DType::U8, {300}));
  const auto step = [](Graph&, Values v) -> Made {
    const Value odd = cast(bitwise_and(v[2], cast(v[1], {.to = DType::U8})), {.to = DType::Bool});
    return {v[0] + v[2], logical_xor(v[1], odd), v[0], cast(v[0], {.to = DType::BF16})};
  };
  const Made out = scan(std::array{c, b}, {.xs = {xs}}, step);
  g.set_outputs({out[0], out[1], out[2], out[3]});
  expect_agreement(g, random_feeds(g));
}

}  // namespace
}  // namespace ricci::testing::odd_programs_test
