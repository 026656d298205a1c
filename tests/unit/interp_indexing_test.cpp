// Gathers and scatters against direct loops, and the pairs that are each other's transposes.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"

#include "support/compare.h"

namespace ricci::interp_indexing_test {
namespace {

using testing::random_tensor;
using testing::same;

Tensor run(Graph& g, Value out, const Feeds& feeds) {
  g.set_outputs({out});
  return interpret(g, feeds)[0];
}

double dot(const Tensor& a, const Tensor& b) {
  const auto x = a.numbers<double>();
  const auto y = b.numbers<double>();
  double total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) total += x[i] * y[i];
  return total;
}

// [SH-08] a batch of sentences: every repeated id adds to its row.
TEST(Indexing, ScatterAddOfRepeatedIdsIsTheDirectLoop) {
  constexpr std::int64_t Batch = 3;
  constexpr std::int64_t Length = 5;
  constexpr std::int64_t Width = 2;
  constexpr std::int64_t Rows = 4;
  const Tensor updates = random_tensor(1, f64({Batch, Length, Width}));
  const Tensor ids = random_tensor(2, i64({Batch, Length}), 0, Rows);
  Graph g;
  const Value u = g.input("u", updates.type());
  const Value i = g.input("i", ids.type());
  const Tensor out = run(g, scatter_add(u, i, {.out_dim = Rows}), {{"u", updates}, {"i", ids}});

  const auto from = updates.numbers<double>();
  const auto row = ids.numbers<std::int64_t>();
  std::vector<double> expected(Rows * Width, 0.0);
  for (std::size_t k = 0; k < row.size(); ++k) {
    for (std::size_t t = 0; t < Width; ++t) {
      expected[static_cast<std::size_t>(row[k]) * Width + t] += from[k * Width + t];
    }
  }
  EXPECT_TRUE(same(out, Tensor::from_numbers<double>(f64({Rows, Width}), expected)));
}

TEST(Indexing, GatherBackwardIsTheTransposeOfGather) {
  for (const std::int64_t axis : {0, 1, 2}) {
    const Tensor table = random_tensor(3, f64({3, 4, 2}));
    const Dim size = table.type().dims[static_cast<std::size_t>(axis)];
    const Tensor ids = random_tensor(4, i32({2, 3}), 0, 2);
    Graph g;
    const Value x = g.input("x", table.type());
    const Value i = g.input("i", ids.type());
    const Value y = gather(x, i, {.axis = axis});
    const Value dy = g.input("dy", y.type());
    const Value dx = gather_backward(dy, i, {.axis = axis, .axis_size = size});
    g.set_outputs({y, dx});
    ASSERT_EQ(dx.type(), x.type());
    const Tensor cotangent = random_tensor(5, y.type());
    const auto out = interpret(g, {{"x", table}, {"i", ids}, {"dy", cotangent}});
    EXPECT_NEAR(dot(out[0], cotangent), dot(table, out[1]), 1e-12) << "axis " << axis;
  }
}

TEST(Indexing, GatherBackwardAlongAxisZeroIsScatterAdd) {
  const Tensor dy = random_tensor(6, f32({2, 3, 4}));
  const Tensor ids = random_tensor(7, i32({2, 3}), 0, 5);
  Graph g;
  const Value d = g.input("dy", dy.type());
  const Value i = g.input("i", ids.type());
  g.set_outputs(
      {gather_backward(d, i, {.axis = 0, .axis_size = 5}), scatter_add(d, i, {.out_dim = 5})});
  const auto out = interpret(g, {{"dy", dy}, {"i", ids}});
  EXPECT_TRUE(same(out[0], out[1]));
}

TEST(Indexing, ScatterAddAlongAxisIsTheTransposeOfTakeAlongAxis) {
  const Tensor values = random_tensor(8, f64({3, 4}));
  const Tensor ids = random_tensor(9, i32({6, 4}), 0, 3);
  Graph g;
  const Value x = g.input("x", values.type());
  const Value i = g.input("i", ids.type());
  const Value y = take_along_axis(x, i, {.axis = 0});
  const Value dy = g.input("dy", y.type());
  g.set_outputs({y, scatter_add_along_axis(dy, i, {.axis = 0, .axis_size = 3})});
  const Tensor cotangent = random_tensor(10, y.type());
  const auto out = interpret(g, {{"x", values}, {"i", ids}, {"dy", cotangent}});
  EXPECT_NEAR(dot(out[0], cotangent), dot(values, out[1]), 1e-12);
}

TEST(Indexing, ABrokenIndexNamesItselfAndTheRange) {
  Graph g;
  const Value x = g.input("x", f32({3}));
  const Value i = g.input("i", i32({1}));
  g.set_outputs({gather(x, i, {.axis = 0})});
  try {
    (void)interpret(g, {{"x", Tensor::splat(f32({3}), 0)}, {"i", Tensor::splat(i32({1}), 7)}});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::IndexOutOfRange);
    EXPECT_NE(std::string(e.what()).find("index 7 is outside [0, 3)"), std::string::npos);
  }
}

TEST(Indexing, AnUpdateReadsBackAsTheSlice) {
  const Tensor cache = random_tensor(11, f32({2, 6, 3}));
  const Tensor update = random_tensor(12, f32({2, 2, 3}));
  for (const std::int64_t start : {-3, 0, 3, 4, 5, 100}) {
    Graph g;
    const Value x = g.input("x", cache.type());
    const Value u = g.input("u", update.type());
    const Value s = g.input("s", i64());
    const Value written = dynamic_update(x, u, s, {.axis = 1});
    const Tensor back = run(g, dynamic_narrow(written, s, {.axis = 1, .len = 2}),
                            {{"x", cache}, {"u", update}, {"s", Tensor::splat(i64(), start)}});
    EXPECT_TRUE(same(back, update)) << "start " << start;
  }
}

}  // namespace
}  // namespace ricci::interp_indexing_test
