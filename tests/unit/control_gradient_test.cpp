// Gradients of loops, with body derivatives written by hand, against central differences in f64.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/verify.h"

#include "ops/control_bodies.h"
#include "support/compare.h"

namespace ricci::testing::control_gradient_test {
namespace {

constexpr std::int64_t Length = 5;
constexpr Tolerance Numeric{1e-6, 1e-7};

// The same scan with a trajectory of the rows it keeps only, which no builder gives.
Values keeping(std::int64_t checkpoints, const Values& results) {
  if (checkpoints == 0) return results;
  Graph& g = results[0].graph();
  const Node node = g.node(results[0].id().node);
  op::Scan op = *node.op.as<op::Scan>();
  op.num_checkpoints = checkpoints;
  const NodeId id = g.add({.op = Op(op), .operands = node.operands, .bodies = node.bodies});
  Values out;
  for (std::uint32_t r = 0; r < results.size(); ++r) out.push_back(g.value({id, r}));
  return out;
}

struct ScanSetup {
  bool trajectory = false;
  std::int64_t checkpoints = 0;
  bool reverse = false;
};

// c' = tanh(c·A + x), stacked output c'/2.
Values cell(Graph&, Inputs in) {
  const Value next = tanh(matmul(in[0], in[1]) + in[2]);
  return {next, next * 0.5};
}

// in: c, A, x, dc', dy
Values cell_vjp(Graph&, Inputs in) {
  const Value h = tanh(matmul(in[0], in[1]) + in[2]);
  const Value d = (in[3] + in[4] * 0.5) * (1.0 - h * h);
  return {matmul(d, transpose_last(in[1])), matmul(transpose_last(in[0]), d), d};
}

const Type Carry = f64({1, 2});
const Type Weight = f64({2, 2});
const Type Rows = f64({Length, 1, 2});

Feeds random_feeds(const ScanSetup& s) {
  const std::int64_t kept = s.checkpoints > 0 ? s.checkpoints : Length;
  return {{"c", random_tensor(1, Carry, -1, 1)},
          {"a", random_tensor(2, Weight, -1, 1)},
          {"x", random_tensor(3, Rows, -1, 1)},
          {"uc", random_tensor(4, s.trajectory ? f64({kept, 1, 2}) : Carry, -1, 1)},
          {"uy", random_tensor(5, Rows, -1, 1)}};
}

struct ScanInputs {
  Value c, a, x, uc, uy;
  ScanInputs(Graph& g, const Feeds& feeds)
      : c(g.input("c", Carry)),
        a(g.input("a", Weight)),
        x(g.input("x", Rows)),
        uc(g.input("uc", feeds.at("uc").type())),
        uy(g.input("uy", Rows)) {}
};

Graph loss_graph(const ScanSetup& s, const Feeds& feeds) {
  Graph g("loss");
  const ScanInputs in(g, feeds);
  const Values out = keeping(
      s.trajectory ? s.checkpoints : 0,
      scan(std::array{in.c},
           {.bcasts = {in.a}, .xs = {in.x}, .trajectory = s.trajectory, .reverse = s.reverse},
           cell));
  g.set_outputs({sum(out[0] * in.uc) + sum(out[1] * in.uy)});
  return g;
}

Graph gradient_graph(const ScanSetup& s, const Feeds& feeds) {
  Graph g("gradient");
  const ScanInputs in(g, feeds);
  const Values kept = keeping(
      s.checkpoints,
      scan(std::array{in.c},
           {.bcasts = {in.a}, .xs = {in.x}, .trajectory = true, .reverse = s.reverse}, cell));
  const bool recompute = s.checkpoints > 0 && s.checkpoints < Length;
  const std::vector<Type> inputs{Carry, Weight, Carry};
  g.set_outputs(scan_backward(
      {.inits = {in.c},
       .trajectories = {kept[0]},
       .upstreams = {in.uc, in.uy},
       .bcasts = {in.a},
       .xs = {in.x},
       .length = Length,
       .trajectory = s.trajectory,
       .checkpoints = s.checkpoints,
       .reverse = s.reverse,
       .body_vjp =
           rule_body("body_vjp", inputs, {d_output(0, Carry), d_output(1, Carry)}, cell_vjp).graph,
       .forward_body = recompute ? body("forward_body", inputs, cell).graph : nullptr}));
  verify(g);
  return g;
}

Tensor central_difference(const Graph& loss, Feeds feeds, const std::string& name) {
  constexpr double Step = 1e-6;
  const Tensor at = feeds.at(name);
  std::vector<double> numbers = at.numbers<double>();
  std::vector<double> slope;
  for (double& v : numbers) {
    const double old = v;
    const auto value = [&](double moved) {
      v = moved;
      feeds[name] = Tensor::from_numbers<double>(at.type(), numbers);
      return interpret(loss, feeds)[0].item();
    };
    slope.push_back((value(old + Step) - value(old - Step)) / (2 * Step));
    v = old;
  }
  return Tensor::from_numbers<double>(at.type(), slope);
}

TEST(ScanBackward, AgreesWithCentralDifferences) {
  for (const bool trajectory : {false, true}) {
    for (const bool reverse : {false, true}) {
      for (const std::int64_t checkpoints : {0, 1, 2, 3, 5}) {
        SCOPED_TRACE(fmt::format("trajectory {}, reverse {}, checkpoints {}", trajectory, reverse,
                                 checkpoints));
        const ScanSetup s{trajectory, checkpoints, reverse};
        const Feeds feeds = random_feeds(s);
        const auto out = interpret(gradient_graph(s, feeds), feeds);
        const Graph loss = loss_graph(s, feeds);
        EXPECT_TRUE(close(out[0], central_difference(loss, feeds, "c"), Numeric));
        EXPECT_TRUE(close(out[1], central_difference(loss, feeds, "a"), Numeric));
        EXPECT_TRUE(close(out[2], central_difference(loss, feeds, "x"), Numeric));
      }
    }
  }
}

TEST(ScanBackward, CheckpointsDoNotChangeABit) {
  for (const bool reverse : {false, true}) {
    const ScanSetup all{false, 0, reverse};
    const Feeds feeds = random_feeds(all);
    const auto expected = interpret(gradient_graph(all, feeds), feeds);
    for (const std::int64_t checkpoints : {1, 2, 3, 4, 5}) {
      const auto out = interpret(gradient_graph({false, checkpoints, reverse}, feeds), feeds);
      for (std::size_t r = 0; r < 3; ++r) EXPECT_TRUE(same(out[r], expected[r])) << checkpoints;
    }
  }
}

TEST(ScanBackward, OneGradientBuildersKeepOneResult) {
  Graph g("one");
  const Value c = g.input("c", f64({2}));
  const Value x = g.input("x", f64({3, 2}));
  const Value traj = scan(std::array{c}, {.xs = {x}, .trajectory = true},
                          [](Graph&, Inputs in) { return Values{in[0] * in[1]}; })[0];
  const Value kept = keeping(1, scan(std::array{c}, {.xs = {x}, .trajectory = true},
                                     [](Graph&, Inputs in) { return Values{in[0] * in[1]}; }))[0];
  const Value up = g.input("up", f64({2}));
  const std::vector<Type> inputs{f64({2}), f64({2})};
  const BodyGraph vjp =
      rule_body("body_vjp", inputs, {d_output(0, f64({2}))}, [](Graph&, Inputs in) {
        return Values{in[2] * in[1], in[2] * in[0]};
      }).graph;
  const BodyGraph forward =
      body("forward_body", inputs, [](Graph&, Inputs in) { return Values{in[0] * in[1]}; }).graph;
  const std::array xs{x};
  const Values all{
      scan_backward(c, traj, up, xs, vjp, 3, false),
      scan_backward_with_checkpoints(c, kept, up, xs, vjp, 3, false, 1, forward),
      scan_backward_xs(c, traj, up, xs, vjp, 3, false, 0),
      scan_backward_xs_with_checkpoints(c, kept, up, xs, vjp, 3, false, 0, 1, forward)};
  for (const Value& v : all) {
    const auto& wanted = g.node(v.id().node).wanted;
    EXPECT_EQ(std::count(wanted.begin(), wanted.end(), true), 1);
  }
  g.set_outputs(all);
  verify(g);
  const auto out = interpret(g, {{"c", Tensor::of<double>({2}, {2, 3})},
                                 {"x", Tensor::of<double>({3, 2}, {1, 2, 3, 4, 5, 6})},
                                 {"up", Tensor::of<double>({2}, {1, 10})}});
  EXPECT_TRUE(same(out[0], Tensor::of<double>({2}, {15, 480})));
  EXPECT_TRUE(same(out[1], out[0]));
  EXPECT_TRUE(same(out[2], Tensor::of<double>({3, 2}, {30, 720, 10, 360, 6, 240})));
  EXPECT_TRUE(same(out[3], out[2]));
  EXPECT_THROW((void)scan_backward_xs(c, traj, up, xs, vjp, 3, false, 1), UserError);
}

TEST(ScanBackward, AnIntegerCarryHasNoGradient) {
  Graph g("integers");
  const Value c = g.input("c", i32({2}));
  const Value traj = g.input("t", i32({3, 2}));
  const BodyGraph vjp =
      body("body_vjp", std::vector<Type>{i32({2})}, [](Graph&, Inputs) { return Values{}; }).graph;
  try {
    (void)scan_backward(c, traj, Value(), {}, vjp, 3, false);
    FAIL() << "the carry is an integer";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::DType) << e.what();
  }
}

// x' = sin(x)·w + x/2 while fewer than `top` trips were made; w and the counters are carries too.
struct WhileSetup {
  std::int64_t trips = 0;
  std::int64_t checkpoints = 0;
};
constexpr std::int64_t Bound = 6;

Values turn(Graph&, Inputs in) {
  return {sin(in[0]) * in[1] + in[0] * 0.5, in[1], in[2] + scalar_like(in[2], 1)};
}
// in: x, w, n, dx, dw
Values turn_vjp(Graph&, Inputs in) {
  return {in[3] * (cos(in[0]) * in[1] + 0.5), in[4] + in[3] * sin(in[0])};
}

WhileResult turning(Graph& g, Inputs carries, const WhileSetup& s) {
  (void)g;
  return while_taped(
      carries,
      [&](Graph&, Inputs in) {
        return Values{lt(in[2], scalar_like(in[2], static_cast<double>(s.trips)))};
      },
      turn, Bound, s.checkpoints);
}

TEST(WhileBackward, AgreesWithCentralDifferencesOverTheTripsTaken) {
  const Type vec = f64({3});
  const Feeds feeds{{"x", random_tensor(1, vec, -1, 1)},
                    {"w", random_tensor(2, vec, -1, 1)},
                    {"n", Tensor::splat(i32(), 0)},
                    {"ux", random_tensor(3, vec, -1, 1)},
                    {"uw", random_tensor(4, vec, -1, 1)}};
  for (const std::int64_t trips : {0, 1, 4, 6, 9}) {
    std::vector<Tensor> first;
    for (const std::int64_t checkpoints : {0, 1, 2, 4, 6}) {
      SCOPED_TRACE(fmt::format("trips {}, checkpoints {}", trips, checkpoints));
      Graph g("gradient");
      Graph loss("loss");
      const auto inputs = [&](Graph& to) {
        return Values{to.input("x", vec), to.input("w", vec), to.input("n", i32()),
                      to.input("ux", vec), to.input("uw", vec)};
      };
      const Values in = inputs(g);
      const Values loss_in = inputs(loss);
      const WhileResult taped = turning(g, std::span(in).first(3), {trips, checkpoints});
      const std::vector<Type> types{vec, vec, i32()};
      const bool recompute = checkpoints > 0 && checkpoints < Bound;
      g.set_outputs(while_backward(
          {.carries = {in[0], in[1], in[2]},
           .tapes = taped.tapes,
           .trip_count = taped.trip_count,
           .upstreams = {in[3], in[4], Value()},
           .max_iterations = Bound,
           .checkpoints = checkpoints,
           .body_vjp =
               rule_body("body_vjp", types, {d_output(0, vec), d_output(1, vec)}, turn_vjp).graph,
           .forward_body = recompute ? body("forward_body", types, turn).graph : nullptr}));
      verify(g);
      const WhileResult plain = turning(loss, std::span(loss_in).first(3), {trips, 0});
      loss.set_outputs({sum(plain.carries[0] * loss_in[3]) + sum(plain.carries[1] * loss_in[4])});
      const auto out = interpret(g, feeds);
      EXPECT_TRUE(close(out[0], central_difference(loss, feeds, "x"), Numeric));
      EXPECT_TRUE(close(out[1], central_difference(loss, feeds, "w"), Numeric));
      if (first.empty()) first = out;
      for (std::size_t r = 0; r < 2; ++r) EXPECT_TRUE(same(out[r], first[r]));
    }
  }
}

}  // namespace
}  // namespace ricci::testing::control_gradient_test
