// Bodies that are built by functions use whatever values are in sight.
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/transform/check.h"
#include "ricci/transform/grad.h"

#include "support/compare.h"
#include "support/every_device.h"

namespace ricci::testing::control_captures_test {
namespace {

Tensor numbers(Dims dims, std::vector<double> values) {
  return Tensor::from_numbers<double>(f64(std::move(dims)), values);
}

// Runs by the interpreter and on every device, whose answers agree.
Outputs run_everywhere(const Graph& graph, const Feeds& feeds) {
  verify(graph);
  EXPECT_EQ(parse_graph(print(graph)), graph);
  Outputs expected = interpret(graph, feeds);
  for (const std::string& device : usable_devices()) {
    const Outputs out = compile(graph, Device::named(device)).run(feeds);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(close(out[i], expected[i])) << device;
    }
  }
  return expected;
}

TEST(BodyCaptures, OfAScanAreSeenWhole) {  // [FE-2b]
  Graph g("rnn");
  const Value x = g.input("x", f64({4, 2}));
  const Value h = g.input("h", f64({2}));
  const Value w = g.param("w", f64({2}));
  const Value twice = w * 2.0;
  const auto out =
      scan(std::array{h}, {.bcasts = {w}, .xs = {x}}, [&](Graph&, std::span<const Value> in) {
        const Value next = tanh(twice * in[0] + in[2] * in[1] + w);
        return std::vector{next, next * x.graph().value(h.id())};
      });
  g.set_outputs(out);
  const Feeds feeds{{"x", random_tensor(1, f64({4, 2}))},
                    {"h", random_tensor(2, f64({2}))},
                    {"w", random_tensor(3, f64({2}))}};
  const Outputs got = run_everywhere(g, feeds);
  std::vector<double> c = feeds.at("h").numbers<double>();
  const auto first = c;
  const auto weight = feeds.at("w").numbers<double>();
  const auto rows = feeds.at("x").numbers<double>();
  std::vector<double> ys;
  for (std::size_t t = 0; t < 4; ++t) {
    for (std::size_t i = 0; i < 2; ++i) {
      c[i] = std::tanh(2 * weight[i] * c[i] + rows[2 * t + i] * weight[i] + weight[i]);
      ys.push_back(c[i] * first[i]);
    }
  }
  EXPECT_TRUE(close(got[0], numbers({2}, c)));
  EXPECT_TRUE(close(got[1], numbers({4, 2}, ys)));
  const DerivativeReport report = check_derivatives(g, {}, feeds, {.order = 2});
  EXPECT_TRUE(report.ok()) << report.to_string();
}

TEST(BodyCaptures, OfBranchesMayDiffer) {
  for (const bool yes : {false, true}) {
    Graph g("branch");
    const Value p = g.input("p", boolean());
    const Value a = g.input("a", f64({2}));
    const Value b = g.input("b", f64({2}));
    const Value c = g.input("c", f64({2}));
    g.set_outputs(cond(
        p, std::array{a}, [&](Graph&, std::span<const Value> in) { return std::vector{in[0] * b}; },
        [&](Graph&, std::span<const Value> in) { return std::vector{in[0] + c * b}; }));
    const Feeds feeds{{"p", Tensor::splat(boolean(), yes)},
                      {"a", numbers({2}, {1, 2})},
                      {"b", numbers({2}, {3, 4})},
                      {"c", numbers({2}, {5, 6})}};
    const Outputs out = run_everywhere(g, feeds);
    EXPECT_TRUE(close(out[0], yes ? numbers({2}, {3, 8}) : numbers({2}, {16, 26})));
    const DerivativeReport report = check_derivatives(g, {"a", "b", "c"}, feeds);
    EXPECT_TRUE(report.ok()) << report.to_string();
  }
}

TEST(BodyCaptures, AndBroadcastOperandsOfAWhileAreHandedOn) {  // [FE-2c]
  Graph g("newton");
  const Value a = g.input("a", f64({2}));
  const Value limit = g.input("limit", f64());
  const Value half = a * 0.5;
  const WhileResult r = while_loop(
      std::array{a},
      [&](Graph&, std::span<const Value> in) {
        EXPECT_EQ(in.size(), 2U);
        return std::vector{gt(sum(abs(in[0] * in[0] - a)), in[1])};
      },
      [&](Graph&, std::span<const Value> in) { return std::vector{in[0] * 0.5 + half / in[0]}; },
      {.bcasts = {limit}, .max_iterations = 20, .trip_count = true, .tapes = true});
  ASSERT_EQ(r.carries.size(), 1U);
  ASSERT_EQ(r.tapes.size(), 1U);
  EXPECT_EQ(r.tapes[0].dims(), (Dims{20, 2}));
  g.set_outputs({r.carries[0], r.trip_count});
  const Feeds feeds{{"a", numbers({2}, {4, 9})}, {"limit", numbers({}, {1e-9})}};
  const Outputs out = run_everywhere(g, feeds);
  EXPECT_TRUE(close(out[0], numbers({2}, {2, 3})));
  EXPECT_GT(out[1].item(), 3);
  const auto slope = interpret(grad(g, {"a"}).graph, feeds);
  EXPECT_TRUE(close(slope[0], numbers({2}, {0.25, 1.0 / 6})));
}

TEST(BodyCaptures, ReachOutOfNestedBodies) {
  Graph g("nested");
  const Value x = g.input("x", f64({2}));
  const Value w = g.param("w", f64({2}));
  g.set_outputs({scan(
      x,
      [&](Graph&, std::span<const Value> outer) {
        const Value scaled = outer[0] * w;
        const Value inner = scan(
            outer[0],
            [&](Graph&, std::span<const Value> in) {
              const Value kept =
                  checkpoint(std::array{in[0]}, [&](Graph&, std::span<const Value> i) {
                    return std::vector{sin(w * i[0]) + scaled + x};
                  })[0];
              return std::vector{kept};
            },
            3);
        return std::vector{inner};
      },
      2)});
  const Feeds feeds{{"x", numbers({2}, {0.3, -0.2})}, {"w", numbers({2}, {0.5, 1.5})}};
  const Outputs out = run_everywhere(g, feeds);
  std::vector<double> expected;
  for (const auto& [x0, w0] : {std::pair{0.3, 0.5}, {-0.2, 1.5}}) {
    double c = x0;
    for (int i = 0; i < 2; ++i) {
      const double scaled = c * w0;
      for (int k = 0; k < 3; ++k) c = std::sin(w0 * c) + scaled + x0;
    }
    expected.push_back(c);
  }
  EXPECT_TRUE(close(out[0], numbers({2}, expected)));
  const DerivativeReport report = check_derivatives(g, {}, feeds);
  EXPECT_TRUE(report.ok()) << report.to_string();
}

TEST(BodyCaptures, OfAnotherGraphAreRefused) {
  Graph other("other");
  const Value stranger = other.input("s", f64({2}));
  Graph g("g");
  const Value x = g.input("x", f64({2}));
  try {
    (void)scan(
        x, [&](Graph&, std::span<const Value> in) { return std::vector{in[0] + stranger}; }, 3);
    FAIL() << "accepted";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("belongs to the graph 'other'"), std::string::npos)
        << e.what();
  }
  // A value of a body that is finished belongs nowhere any more.
  Value escaped;
  g.set_outputs({scan(
      x,
      [&](Graph&, std::span<const Value> in) {
        escaped = in[0] + 1.0;
        return std::vector{escaped};
      },
      3)});
  EXPECT_THROW((void)(x + escaped), UserError);
}

// What a gradient keeps never changes what a scan gives.
TEST(BodyCaptures, CheckpointsDoNotChangeATrajectory) {  // [FE-5d]
  const auto build = [](std::int64_t checkpoints) {
    Graph g("walk");
    const Value x = g.input("x", f64({2}));
    g.set_outputs(scan(std::array{x}, {.length = 7, .trajectory = true, .checkpoints = checkpoints},
                       [](Graph&, std::span<const Value> in) { return std::vector{sin(in[0])}; }));
    return g;
  };
  const Feeds feeds{{"x", numbers({2}, {1, 2})}};
  const Outputs all = run_everywhere(build(0), feeds);
  EXPECT_EQ(all[0].dims(), (StaticDims{7, 2}));
  for (const std::int64_t k : {1, 3, 7}) {
    EXPECT_TRUE(same(run_everywhere(build(k), feeds)[0], all[0]));
    EXPECT_TRUE(check_derivatives(build(k), {}, feeds).ok());
  }
}

}  // namespace
}  // namespace ricci::testing::control_captures_test
