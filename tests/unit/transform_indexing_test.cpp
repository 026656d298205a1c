// Derivatives and batches of indexing, ordering and draws, where the cases of single ops do not
// look: what a result is by hand, what is reported, and which draws an example gets.
#include <algorithm>
#include <array>
#include <limits>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/verify.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

#include "support/compare.h"

namespace ricci::transform_indexing_test {
namespace {

using testing::random_tensor;
using testing::same;
using Inputs = std::vector<BatchedInput>;

Tensor row(const Tensor& t, std::int64_t e) {
  return t.narrowed(0, e, 1).reshaped(StaticDims(t.dims().begin() + 1, t.dims().end()));
}

std::vector<Tensor> run_batch(const Graph& g, const Inputs& batched, const Dim& size,
                              const Feeds& feeds, const VmapOptions& options = {},
                              std::uint64_t seed = 0) {
  const Transformed over = vmap(g, batched, size, options);
  verify(over.graph);
  return interpret(over.graph, feeds, {.seed = seed});
}

// Every example of the batch is what the graph gives for it alone.
void expect_loop(const Graph& g, const Inputs& batched, std::int64_t size, const Feeds& feeds) {
  const Tensor all = run_batch(g, batched, size, feeds)[0];
  for (std::int64_t e = 0; e < size; ++e) {
    Feeds alone = feeds;
    for (const BatchedInput& in : batched) alone[in.name] = row(feeds.at(in.name), e);
    EXPECT_TRUE(same(row(all, e), interpret(g, alone)[0])) << "example " << e;
  }
}

void expect_out_of_range(const Graph& g, const Inputs& batched, const Dim& size,
                         const Feeds& feeds) {
  try {
    (void)run_batch(g, batched, size, feeds);
    ADD_FAILURE() << "nothing was reported";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::IndexOutOfRange) << e.what();
  }
}

// Updates that are not chosen have no part in a derivative that is infinite.
TEST(IndexingGradient, ScatterByExtremesOfInfiniteCotangents) {
  constexpr double Inf = std::numeric_limits<double>::infinity();
  const auto numbers = [](std::initializer_list<double> v) {
    return Tensor::from_numbers<double>(f64({static_cast<std::int64_t>(v.size())}),
                                        std::vector<double>(v));
  };
  for (const ScatterKind kind : {ScatterKind::Max, ScatterKind::Min}) {
    const double sign = kind == ScatterKind::Max ? 1 : -1;
    Graph g;
    const Value x = g.input("x", f64({2}));
    const Value u = g.input("u", f64({3}));
    const Value at =
        g.constant(Tensor::from_numbers<double>({DType::I64, {3}}, std::array{0.0, 0.0, 1.0}));
    g.set_outputs({scatter(x, u, at, {.kind = kind})});
    const Feeds feeds{{"x", numbers({0, 5 * sign})},
                      {"u", numbers({1 * sign, 2 * sign, 2 * sign})}};
    Feeds pulled = feeds;
    pulled["d_output"] = numbers({Inf, -Inf});
    const auto back = interpret(grad(g, {"x", "u"}, {.external_seed = true}).graph, pulled);
    EXPECT_TRUE(same(back[0], numbers({0, -Inf})));
    EXPECT_TRUE(same(back[1], numbers({0, Inf, 0})));
    Feeds pushed = feeds;
    pushed["tangent_x"] = numbers({Inf, 3});
    pushed["tangent_u"] = numbers({-Inf, 4, Inf});
    EXPECT_TRUE(same(interpret(jvp(g, {"x", "u"}).graph, pushed)[1], numbers({4, 3})));
  }
}

// [SH-08] all ids of a [batch, seq] grid add to the gradient of the table
TEST(IndexingGradient, EmbeddingByGridOfIds) {
  Graph g;
  const Value table = g.input("table", f64({4, 2}));
  const Value ids = g.input("ids", i32({2, 3}));
  const Value weights = g.input("weights", f64({2, 3, 2}));
  g.set_outputs({sum(gather(table, ids, {.axis = 0}) * weights)});
  const Transformed gradient = value_and_grad(g, {"table"});
  const auto out = interpret(
      gradient.graph,
      {{"table", random_tensor(1, f64({4, 2}))},
       {"ids", Tensor::of<std::int32_t>({2, 3}, {3, 0, 3, 0, 3, 1})},
       {"weights", Tensor::of<double>({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})}});
  EXPECT_EQ(out[1].numbers<double>(), (std::vector<double>{10, 12, 11, 12, 0, 0, 15, 18}));
}

// [SH-10] the batch in the table, in the indices, in both; along any axis
TEST(IndexingBatch, GatherInThreeCases) {
  for (const std::int64_t axis : {0, 1, 2}) {
    for (const DType dtype : {DType::I32, DType::F64}) {
      Graph g;
      const Value table = g.input("table", f64({3, 3, 3}));
      const Value ids = g.input("ids", {dtype, {2, 2}});
      g.set_outputs({gather(table, ids, {.axis = axis})});
      const Tensor tables = random_tensor(2, f64({2, 3, 3, 3}));
      const Tensor grids = Tensor::from_numbers<double>(
          {dtype, {2, 2, 2}}, std::vector<double>{0, 2, 1, 1, 2, 2, 0, 1});
      expect_loop(g, {"table"}, 2, {{"table", tables}, {"ids", row(grids, 1)}});
      expect_loop(g, {"ids"}, 2, {{"table", row(tables, 1)}, {"ids", grids}});
      expect_loop(g, {"table", "ids"}, 2, {{"table", tables}, {"ids", grids}});
    }
  }
}

// [SH-12] the batch in the updates, in the indices, in both
TEST(IndexingBatch, ScatterAddKeepsExamplesApart) {
  Graph g;
  const Value updates = g.input("updates", f64({3}));
  const Value ids = g.input("ids", i32({3}));
  g.set_outputs({scatter_add(updates, ids, {.out_dim = 2})});
  const Tensor one = Tensor::of<double>({3}, {1, 2, 4});
  const Tensor two = Tensor::of<double>({2, 3}, {1, 2, 4, 10, 20, 40});
  const Tensor id = Tensor::of<std::int32_t>({3}, {1, 0, 1});
  const Tensor each = Tensor::of<std::int32_t>({2, 3}, {1, 0, 1, 0, 0, 0});
  const auto run = [&](const Inputs& in, const Tensor& u, const Tensor& i) {
    return run_batch(g, in, 2, {{"updates", u}, {"ids", i}})[0].numbers<double>();
  };
  EXPECT_EQ(run({"updates"}, two, id), (std::vector<double>{2, 5, 20, 50}));
  EXPECT_EQ(run({"ids"}, one, each), (std::vector<double>{2, 5, 7, 0}));
  EXPECT_EQ(run({"updates", "ids"}, two, each), (std::vector<double>{2, 5, 70, 0}));
}

// An index past its own rows must not reach the rows of the next example.
TEST(IndexingBatch, ReportsWhatASingleExampleReports) {
  for (const double bad : {2.0, -1.0, 0.5}) {
    const Tensor ids = Tensor::of<double>({2, 2}, {0, bad, 1, 0});
    const Tensor rows = random_tensor(3, f64({2, 2}));
    const auto reports = [&](auto&& build) {
      Graph g;
      const Value x = g.input("x", f64({2}));
      g.set_outputs({build(x, g.input("ids", f64({2})))});
      expect_out_of_range(g, {"x", "ids"}, 2, {{"x", rows}, {"ids", ids}});
      expect_out_of_range(g, {"ids"}, 2, {{"x", row(rows, 0)}, {"ids", ids}});
    };
    reports([](Value x, Value i) { return gather(x, i, {.axis = 0}); });
    reports([](Value x, Value i) { return take_along_axis(x, i, {.axis = 0}); });
    reports([](Value x, Value i) { return scatter_add(x, i, {.out_dim = 2}); });
    reports([](Value x, Value i) { return gather_backward(x, i, {.axis = 0, .axis_size = 2}); });
    reports(
        [](Value x, Value i) { return scatter_add_along_axis(x, i, {.axis = 0, .axis_size = 2}); });
  }
}

TEST(IndexingBatch, StartsMoveInsidePerExample) {
  Graph g;
  const Value x = g.input("x", f64({4}));
  const Value start = g.input("start", f64({}));
  const Value cut = dynamic_narrow(x, start, {.axis = 0, .len = 2});
  g.set_outputs({dynamic_update(x, reverse(cut, {.axes = {0}}), start, {.axis = 0}), cut});
  const Tensor same_x = Tensor::of<double>({4}, {0, 1, 2, 3});
  const Tensor starts = Tensor::of<double>({3}, {-5, 1, 9});
  const auto out = run_batch(g, {"start"}, 3, {{"x", same_x}, {"start", starts}});
  EXPECT_EQ(out[0].numbers<double>(), (std::vector<double>{1, 0, 2, 3, 0, 2, 1, 3, 0, 1, 3, 2}));
  EXPECT_EQ(out[1].numbers<double>(), (std::vector<double>{0, 1, 1, 2, 2, 3}));
  for (const double bad : {0.5, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    const Feeds feeds{{"x", same_x}, {"start", Tensor::of<double>({3}, {0, bad, 0})}};
    expect_out_of_range(g, {"start"}, 3, feeds);
  }
}

TEST(IndexingBatch, SizesMayBeSymbols) {
  Graph g;
  const Value table = g.input("table", f64({"v", 2}));
  const Value ids = g.input("ids", i32({"n"}));
  const Value start = g.input("start", i32({}));
  const Value picked = gather(table, ids, {.axis = 0});
  g.set_outputs({dynamic_update(table, picked, start, {.axis = 0})});
  const Transformed gradient = vjp(g, {"table"});
  const Feeds feeds{{"table", random_tensor(4, f64({2, 4, 2}))},
                    {"ids", Tensor::of<std::int32_t>({2, 3}, {3, 3, 0, 1, 2, 1})},
                    {"start", Tensor::of<std::int32_t>({2}, {0, 7})},
                    {"d_output_0", random_tensor(5, f64({2, 4, 2}))}};
  const Transformed over =
      vmap(gradient.graph, {"table", "ids", "start", "d_output_0"}, Dim::symbol("b"));
  const auto all = interpret(over.graph, feeds);
  for (std::int64_t e = 0; e < 2; ++e) {
    Feeds alone;
    for (const auto& [name, t] : feeds) alone.emplace(name, row(t, e));
    const auto one = interpret(gradient.graph, alone);
    EXPECT_TRUE(same(row(all[0], e), one[0]));
    EXPECT_TRUE(same(row(all[1], e), one[1]));
  }
}

// The first element of an exclusive extreme is infinite, where differences say nothing.
TEST(CumulativeGradient, ExclusiveExtremesByHand) {
  Graph g;
  const Value x = g.input("x", f64({5}));
  const Value weights = g.input("weights", f64({4}));
  const auto later = [&](Value v) { return narrow(v, {.axis = 0, .start = 1, .len = 4}); };
  const Value largest = later(cummax(x, {.axis = 0, .exclusive = true}));
  const Value smallest = later(cummin(x, {.axis = 0, .exclusive = true}));
  g.set_outputs({sum(largest * weights) + sum(smallest * weights) * 100});
  const Transformed gradient = value_and_grad(g, {"x"});
  const auto out = interpret(gradient.graph, {{"x", Tensor::of<double>({5}, {2, 1, 2, 5, 9})},
                                              {"weights", Tensor::of<double>({4}, {1, 2, 4, 8})}});
  // The third weight is shared by the two elements that are 2.
  EXPECT_EQ(out[1].numbers<double>(), (std::vector<double>{1 + 2 + 2 + 100, 1400, 2, 8, 0}));
}

TEST(SelectGradient, OrdersOnce) {
  Graph g;
  const Value x = g.input("x", f64({5}));
  const Value weights = g.input("weights", f64({5}));
  const NodeId id = g.add({.op = Op(op::Sort{}), .operands = {x.id()}, .wanted = {true, false}});
  g.set_outputs({sum(g.value({id, 0}) * weights)});
  const Transformed gradient = value_and_grad(g, {"x"});
  EXPECT_EQ(std::ranges::count_if(gradient.graph.nodes(),
                                  [](const Node& n) { return n.op.as<op::Sort>() != nullptr; }),
            1);
  const auto out =
      interpret(gradient.graph, {{"x", Tensor::of<double>({5}, {3, 1, 2, 1, 3})},
                                 {"weights", Tensor::of<double>({5}, {1, 2, 4, 8, 16})}});
  EXPECT_EQ(out[1].numbers<double>(), (std::vector<double>{8, 1, 4, 2, 16}));
}

// [LF-03] a draw does not depend on its template's values, in no mode
TEST(RandomBatch, TemplatesHaveNoDerivative) {
  Graph g("draw");
  const Value x = g.input("x", f64({3}));
  g.set_outputs({rng_normal(x) + x});
  const Tensor t = random_tensor(7, f64({3}));
  const auto out = interpret(jvp(g, {"x"}).graph, {{"x", t}, {"tangent_x", t}});
  EXPECT_TRUE(same(out[1], t));
  const auto pulled =
      interpret(grad(g, {"x"}, {.external_seed = true}).graph, {{"x", t}, {"d_output", t}});
  EXPECT_TRUE(same(pulled[0], t));
}

TEST(RandomBatch, SharedOrSplit) {
  Graph g;
  const Value x = g.input("x", f64({2}));
  const Value noise = rng_normal(g, {.shape = Dims{2}, .dtype = DType::F64, .key = 5});
  const Value bits = rng_bits(g, {.shape = {2}, .key = 6});
  g.set_outputs({x + noise, bits});
  Graph whole;
  whole.set_outputs({rng_normal(whole, {.shape = Dims{3, 2}, .dtype = DType::F64, .key = 5}),
                     rng_bits(whole, {.shape = {3, 2}, .key = 6})});
  const auto drawn = interpret(whole, {}, {.seed = 9});
  const Feeds zeros{{"x", Tensor::zeros(f64({3, 2}))}};
  const auto split = run_batch(g, {"x"}, 3, zeros, {.random = BatchedRandom::Split}, 9);
  const auto shared = run_batch(g, {"x"}, 3, zeros, {}, 9);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(same(split[i], drawn[i]));
    for (std::int64_t e = 0; e < 3; ++e) EXPECT_TRUE(same(row(shared[i], e), row(drawn[i], 0)));
  }
}

// A template is one operand of the batch: every example draws for itself.
TEST(RandomBatch, TemplateOfABatch) {
  Graph g;
  g.set_outputs({rng_uniform(g.input("x", f64({2})), {.key = 5})});
  Graph whole;
  whole.set_outputs({rng_uniform(whole, {.shape = Dims{3, 2}, .dtype = DType::F64, .key = 5})});
  const auto out = run_batch(g, {"x"}, 3, {{"x", Tensor::zeros(f64({3, 2}))}});
  EXPECT_TRUE(same(out[0], interpret(whole, {})[0]));
}

TEST(RandomBatch, KeyPerExampleDrawsAsAlone) {
  Graph g;
  const Value key = g.input("key", i32({}));
  const Value logits = g.input("logits", f64({4, 9}));
  const Value ids = sample(logits, key, {.index_dtype = DType::I64});
  const Value a = rng_uniform(key, {.shape = Dims{2}, .dtype = DType::F64});
  const Value b = rng_normal(a, key);
  const Value bits = rng_bits(key, {.shape = {2}});
  g.set_outputs({concat({cast_to(ids, DType::F64), a, b, cast_to(bits, DType::F64)}, {.axis = 0})});
  const Tensor keys = Tensor::of<std::int32_t>({3}, {4, 1, 4});
  const Tensor scores = random_tensor(6, f64({3, 4, 9}));
  expect_loop(g, {"key"}, 3, {{"key", keys}, {"logits", row(scores, 0)}});
  expect_loop(g, {"key", "logits"}, 3, {{"key", keys}, {"logits", scores}});
}

// Row b·rows + r of the batch is row r of example b.
TEST(RandomBatch, SampleFoldsExamplesIntoRows) {
  const Tensor scores = random_tensor(7, f64({3, 4, 9}));
  Graph whole;
  whole.set_outputs({sample(whole.input("logits", f64({12, 9})), {.key = 3})});
  const auto drawn = interpret(whole, {{"logits", scores.reshaped({12, 9})}});
  Graph g;
  g.set_outputs({sample(g.input("logits", f64({4, 9})), {.key = 3})});
  const auto out = run_batch(g, {"logits"}, 3, {{"logits", scores}});
  EXPECT_EQ(out[0].numbers<std::int64_t>(), drawn[0].numbers<std::int64_t>());
  // Shared logits, but a draw per example.
  Graph one;
  one.set_outputs({sample(one.input("logits", f64({9})), {.key = 3})});
  const auto split = run_batch(one, {}, 12, {{"logits", Tensor::zeros(f64({9}))}},
                               {.random = BatchedRandom::Split});
  const auto flat = interpret(whole, {{"logits", Tensor::zeros(f64({12, 9}))}});
  EXPECT_EQ(split[0].numbers<std::int64_t>(), flat[0].numbers<std::int64_t>());
}

}  // namespace
}  // namespace ricci::transform_indexing_test
