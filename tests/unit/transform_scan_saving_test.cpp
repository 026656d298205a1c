// [scan-save-policy] What a gradient keeps of a scan changes its memory, never its values.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/higher_order.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

#include "ops/control_bodies.h"
#include "support/compare.h"

namespace ricci::testing::transform_scan_saving_test {
namespace {

constexpr std::int64_t Steps = 6;

struct Shape {
  bool trajectory = false;
  bool reverse = false;
  std::int64_t checkpoints = 0;
};

// A gated cell: two carries, products with shared weights, a stacked output of its own.
Graph cell(const ScanSaving& saving, const Shape& shape = {}) {
  Graph g("cell");
  const Value h0 = g.input("h0", f64({2, 3}));
  const Value s0 = g.input("s0", f64({2, 3}));
  const Value w = g.param("w", f64({3, 3}));
  const Value u = g.param("u", f64({3, 3}));
  const Value xs = g.input("xs", f64({Steps, 2, 3}));
  const auto out = scan(std::array{h0, s0},
                        {.bcasts = {w, u},
                         .xs = {xs},
                         .trajectory = shape.trajectory,
                         .checkpoints = shape.checkpoints,
                         .reverse = shape.reverse,
                         .saving = saving},
                        [](Graph&, Inputs in) {
                          const Value pre = matmul(in[0], in[2]) + in[4];
                          const Value drive = matmul(pre, in[3]).named("drive");
                          const Value gate = sigmoid(drive).named("gate");
                          const Value s = (gate * in[1] + tanh(pre)).named("state");
                          const Value h = tanh(s) * exp(gate);
                          return Values{h, s, sin(s) * h};
                        });
  g.set_outputs({sum(out[0] * out[0]) + sum(sin(out[2])), out[1]});
  return g;
}

Feeds feeds() {
  return {{"h0", random_tensor(1, f64({2, 3}), -1, 1)},
          {"s0", random_tensor(2, f64({2, 3}), -1, 1)},
          {"w", random_tensor(3, f64({3, 3}), -1, 1)},
          {"u", random_tensor(4, f64({3, 3}), -1, 1)},
          {"xs", random_tensor(5, f64({Steps, 2, 3}), -1, 1)}};
}

const std::vector<ValueRef> All{"h0", "s0", "w", "u", "xs"};

const std::vector<ScanSaving>& every_saving() {
  static const std::vector<ScanSaving> list{
      {.policy = ScanSave::All},
      {.policy = ScanSave::Matmuls},
      {.policy = ScanSave::Named, .names = {"gate", "state"}},
      {.policy = ScanSave::Carries},
      {.policy = ScanSave::Recompute},
      {.policy = ScanSave::Recompute, .bytes = 500},
      {.bytes = 0},
      {.bytes = 500},
      {.bytes = 700},
      {.bytes = 1500},
      {.names = {"gate"}, .bytes = 1000},
      {.bytes = 100000},
  };
  return list;
}

template <class Op>
const Node* find(const Graph& graph) {
  const Node* found = nullptr;
  for (const Node& node : graph.nodes()) {
    if (node.op.is<Op>()) found = &node;
  }
  return found;
}

// What a gradient of the cell keeps: carries, stacked values, and what its steps compute again.
struct Kept {
  std::int64_t checkpoints = 0;
  std::int64_t saved = 0;
  std::size_t tanhs = 0;
  std::size_t products = 0;
  std::int64_t bytes = 0;
};

Kept kept(const Graph& gradient) {
  const Node& node = *find<op::ScanBackward>(gradient);
  const auto& op = *node.op.as<op::ScanBackward>();
  Kept out{.checkpoints = op.num_checkpoints, .saved = op.num_saved};
  for (const Node& n : node.body("body_vjp")->nodes()) {
    const auto* unary = n.op.as<op::Unary>();
    out.tanhs += unary != nullptr && unary->kind == UnaryKind::Tanh ? 1 : 0;
    out.products += n.op.is<op::Matmul>() ? 1 : 0;
  }
  for (const Type& type : find<op::Scan>(gradient)->types) {
    out.bytes += type.numel().value_or(0) * size_of(type.dtype);
  }
  return out;
}

void expect_same_gradients(const Graph& a, const Graph& b) {
  verify(a);
  const auto actual = interpret(a, feeds());
  const auto expected = interpret(b, feeds());
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(same(actual[i], expected[i])) << "output " << i;
  }
}

TEST(ScanSaving, PoliciesGiveTheSameBits) {
  for (const Shape& shape :
       {Shape{}, Shape{.trajectory = true}, Shape{.reverse = true},
        Shape{.trajectory = true, .reverse = true}, Shape{.checkpoints = 2},
        Shape{.trajectory = true, .checkpoints = 4}, Shape{.reverse = true, .checkpoints = 4}}) {
    const Graph plain = value_and_grad(cell({}, shape), All).graph;
    for (const ScanSaving& saving : every_saving()) {
      if (saving.bytes && shape.checkpoints > 0) continue;  // nothing is left to choose
      SCOPED_TRACE(std::string(name_of(saving.policy)));
      const Graph graph = cell(saving, shape);
      EXPECT_EQ(parse_graph(print(graph)), graph);
      const Graph gradient = value_and_grad(graph, All).graph;
      EXPECT_EQ(parse_graph(print(gradient)), gradient);
      expect_same_gradients(gradient, plain);
    }
  }
}

TEST(ScanSaving, TheGradientsOptionsSpeakForScansThatDoNot) {
  const Graph plain = value_and_grad(cell({}), All).graph;
  for (const ScanSaving& saving : every_saving()) {
    const Graph by_option = value_and_grad(cell({}), All, {.scan_saving = saving}).graph;
    expect_same_gradients(by_option, plain);
    const Kept own = kept(value_and_grad(cell(saving), All).graph);
    const Kept other = kept(by_option);
    EXPECT_EQ(own.checkpoints, other.checkpoints);
    EXPECT_EQ(own.saved, other.saved);
  }
  // What a scan says itself counts for more.
  const Graph said = value_and_grad(cell({.policy = ScanSave::Carries}), All,
                                    {.scan_saving = {.policy = ScanSave::All}})
                         .graph;
  EXPECT_EQ(kept(said).saved, 0);
}

TEST(ScanSaving, WhatIsSavedIsNotComputedAgain) {
  const auto of = [](const ScanSaving& saving) {
    return kept(value_and_grad(cell(saving), All).graph);
  };
  // Four products are the gradient's own.
  const Kept carries = of({.policy = ScanSave::Carries});
  EXPECT_EQ(carries.tanhs, 2U);
  EXPECT_EQ(carries.products, 4U + 2U);
  EXPECT_EQ(carries.saved, 0);
  const Kept all = of({.policy = ScanSave::All});
  EXPECT_EQ(all.tanhs, 0U);
  EXPECT_EQ(all.products, 4U);
  const Kept products = of({.policy = ScanSave::Matmuls});
  EXPECT_EQ(products.products, 4U);
  EXPECT_EQ(products.tanhs, 2U);
  EXPECT_EQ(products.saved, 2);
  const Kept named = of({.policy = ScanSave::Named, .names = {"drive"}});
  EXPECT_EQ(named.products, 4U + 1U);
  EXPECT_EQ(named.saved, 1);
  const Kept again = of({.policy = ScanSave::Recompute});
  EXPECT_EQ(again.checkpoints, 2);
  EXPECT_EQ(again.saved, 0);
}

// A value that is the next carry, or stacked anyway, is not kept twice.
TEST(ScanSaving, NothingIsKeptTwice) {
  Graph g("powers");
  const Value h0 = g.input("h0", f64({3}));
  const Value xs = g.input("xs", f64({4, 3}));
  const auto out = scan(std::array{h0}, {.xs = {xs}, .saving = {.policy = ScanSave::All}},
                        [](Graph&, Inputs in) {
                          const Value h = in[0] * in[1];
                          const Value e = h * h;
                          return Values{h, e, e * h};
                        });
  g.set_outputs({sum(out[0]) + sum(out[1]) + sum(out[2])});
  const Graph gradient = value_and_grad(g, {"h0", "xs"}).graph;
  EXPECT_EQ(kept(gradient).saved, 2);
  EXPECT_EQ(find<op::Scan>(gradient)->types.size(), 3U);
}

// Weights that every step sees whole are not stacked, nor is what is made of them alone.
TEST(ScanSaving, ValuesThatStayTheSameAreNotSaved) {
  Graph g("weights");
  const Value h0 = g.input("h0", f64({1, 3}));
  const Value w = g.param("w", f64({3, 3}));
  const auto out =
      scan(std::array{h0}, {.bcasts = {w}, .length = 4, .saving = {.policy = ScanSave::All}},
           [](Graph&, Inputs in) { return Values{matmul(in[0], sin(in[1]))}; });
  g.set_outputs({sum(out[0])});
  const Graph gradient = value_and_grad(g, {"h0", "w"}).graph;
  const Node& forward = *find<op::Scan>(gradient);
  EXPECT_EQ(forward.types.size(), 1U);
}

TEST(ScanSaving, ABudgetBuysTheLeastToComputeAgain) {
  const auto of = [](std::int64_t bytes, std::vector<std::string> names = {}) {
    return kept(value_and_grad(cell({.names = std::move(names), .bytes = bytes}), All).graph);
  };
  constexpr std::int64_t Row = 2 * 3 * 8;
  constexpr std::int64_t Ys = Steps * Row;  // stacked outputs are the scan's own
  const Kept all = kept(value_and_grad(cell({.policy = ScanSave::All}), All).graph);
  const std::int64_t enough = all.bytes - Ys;
  EXPECT_EQ(of(enough).saved, all.saved);
  EXPECT_EQ(of(enough - 1).saved, 2);  // the products
  EXPECT_EQ(of(enough - 1, {"gate"}).saved, 1);
  const std::int64_t carries = Steps * 2 * Row;
  EXPECT_EQ(of(carries + 2 * Ys).saved, 2);
  EXPECT_EQ(of(carries + 2 * Ys - 1).saved, 0);
  EXPECT_EQ(of(carries).checkpoints, 0);
  const Kept thin = of(carries - 1);
  EXPECT_EQ(thin.checkpoints, 3);  // 3 rows and a window of 2
  EXPECT_EQ(thin.saved, 0);
  EXPECT_EQ(of(0).checkpoints, 2);  // √6
}

TEST(ScanSaving, UnknownLengthsKeepCarries) {
  Graph g("symbolic");
  const Dim t = Dim::symbol("t");
  const Value h0 = g.input("h0", f64({3}));
  const Value xs = g.input("xs", f64({t, 3}));
  for (const ScanSave save : {ScanSave::Auto, ScanSave::Recompute, ScanSave::All}) {
    ScanSaving saving{.policy = save};
    if (save != ScanSave::All) saving.bytes = 1;
    const auto out = scan(std::array{h0}, {.xs = {xs}, .saving = saving},
                          [](Graph&, Inputs in) { return Values{sin(in[0] * in[1])}; });
    g.set_outputs({sum(out[0])});
    const Kept found = kept(value_and_grad(g, {"h0", "xs"}).graph);
    EXPECT_EQ(found.checkpoints, 0);
    EXPECT_EQ(found.saved, save == ScanSave::All ? 1 : 0);
  }
}

// The inner loop's carries are inner values of the outer one's steps.
TEST(ScanSaving, LoopsInsideLoopsAreSavedToo) {
  const auto nested = [](const ScanSaving& outer, const ScanSaving& inner) {
    Graph g("nested");
    const Value h0 = g.input("h0", f64({3}));
    const Value xs = g.input("xs", f64({4, 5, 3}));
    const auto out = scan(std::array{h0}, {.xs = {xs}, .saving = outer}, [&](Graph&, Inputs in) {
      const auto last = scan(std::array{in[0]}, {.xs = {in[1]}, .saving = inner},
                             [](Graph&, Inputs i) { return Values{sin(i[0] * i[1])}; });
      return Values{cos(last[0])};
    });
    g.set_outputs({sum(out[0])});
    return value_and_grad(g, {"h0", "xs"}).graph;
  };
  const Feeds values{{"h0", random_tensor(1, f64({3}), -1, 1)},
                     {"xs", random_tensor(2, f64({4, 5, 3}), -1, 1)}};
  const auto expected = interpret(nested({}, {}), values);
  for (const ScanSave outer : {ScanSave::All, ScanSave::Carries}) {
    for (const ScanSave inner : {ScanSave::All, ScanSave::Carries, ScanSave::Recompute}) {
      const Graph graph = nested({.policy = outer}, {.policy = inner});
      verify(graph);
      const auto actual = interpret(graph, values);
      for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same(actual[i], expected[i]));
      const Graph& backward = *find<op::ScanBackward>(graph)->body("body_vjp");
      EXPECT_EQ(find<op::Scan>(backward) == nullptr, outer == ScanSave::All);
    }
  }
}

TEST(ScanSaving, GradientsOfGradientsAndBatchesAgree) {
  Graph plain = cell({});
  plain.set_outputs(std::vector{plain.outputs()[0]});
  const auto straight = interpret(hessian(plain, {"s0"}).graph, feeds());
  Feeds over = feeds();
  over["xs"] = random_tensor(8, f64({2, Steps, 2, 3}), -1, 1);
  const Graph plain_gradient = value_and_grad(plain, All).graph;
  const auto batched = interpret(vmap(plain_gradient, {{"xs"}}, 2).graph, over);
  for (const ScanSaving& saving : every_saving()) {
    Graph graph = cell(saving);
    graph.set_outputs(std::vector{graph.outputs()[0]});
    EXPECT_TRUE(close(interpret(hessian(graph, {"s0"}).graph, feeds())[0], straight[0]));
    const Graph gradient = value_and_grad(graph, All).graph;
    const auto each = interpret(vmap(gradient, {{"xs"}}, 2).graph, over);
    const Graph over_batch = vmap(graph, {{"xs"}}, 2).graph;
    EXPECT_EQ(find<op::Scan>(over_batch)->op.as<op::Scan>()->save, saving.policy);
    for (std::size_t i = 0; i < batched.size(); ++i) {
      EXPECT_TRUE(same(each[i], batched[i])) << "output " << i;
    }
  }
}

// Differentiated again, a sweep that recomputes still has one segment's carries at a time.
TEST(ScanSaving, GradientsOfGradientsKeepFewCarriesToo) {
  const auto loss = [](const ScanSaving& saving) {
    Graph g("long");
    const Value h0 = g.input("h0", f64({3}));
    const Value w = g.param("w", f64({3}));
    const auto out = scan(std::array{h0}, {.bcasts = {w}, .length = 16, .saving = saving},
                          [](Graph&, Inputs in) { return Values{sin(in[0] * in[1]) + in[0]}; });
    g.set_outputs({sum(out[0])});
    return g;
  };
  const auto twice = [&](const ScanSaving& saving) {
    Graph first = grad(loss(saving), {"w"}, {.internal_seed = true}).graph;
    first.set_outputs({sum(first.value(first.outputs()[0]))});
    return value_and_grad(first, {"h0", "w"}).graph;
  };
  const auto rows = [](const Graph& graph) {
    std::int64_t most = 0;
    for (const Node& node : graph.nodes()) {
      for (const Type& type : node.types) {
        if (type.rank() > 1) most = std::max(most, type.dims[0].value());
      }
    }
    return most;
  };
  const Graph thin = twice({.policy = ScanSave::Recompute});
  const Graph all = twice({});
  EXPECT_EQ(rows(all), 17);  // with the initial one
  EXPECT_EQ(rows(thin), 5);
  const Feeds values{{"h0", random_tensor(1, f64({3}), -1, 1)},
                     {"w", random_tensor(2, f64({3}), -1, 1)}};
  const auto expected = interpret(all, values);
  const auto actual = interpret(thin, values);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(close(actual[i], expected[i]));
}

TEST(ScanSaving, TheBuilderKnowsItsNames) {
  EXPECT_THROW((void)cell({.policy = ScanSave::Named, .names = {"gat"}}), UserError);
  EXPECT_THROW((void)cell({.policy = ScanSave::Named}), UserError);
  EXPECT_THROW((void)cell({.policy = ScanSave::All, .bytes = 3}), UserError);
}

}  // namespace
}  // namespace ricci::testing::transform_scan_saving_test
