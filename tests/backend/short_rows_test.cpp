// Rows that are too short to be vectors run side by side, one in each lane, and what they read and
// write a few places apart is sorted out between registers (every buffer here lies next to a page
// nobody may touch). All arrays have more elements than kernels that are not worth it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/interp/interpreter.h"
#include "ricci/transform/grad.h"

#include "backend/agreement.h"
#include "backend/all_widths.h"
#include "support/compare.h"

namespace ricci::testing::short_rows_test {
namespace {

Axes last_axis(const Value& x) { return {static_cast<std::int64_t>(x.rank()) - 1}; }

Value number_like(const Value& x, double n) {
  return x.graph().constant(Tensor::splat({x.dtype(), {}}, n));
}

void expect_agreement(const Graph& g, std::initializer_list<Value> inputs) {
  Feeds feeds;
  std::uint64_t seed = 3;
  for (const Value& x : inputs) {
    feeds.emplace(g.node(x.id().node).op.as<op::Input>()->name, random_tensor(seed++, x.type()));
  }
  expect_agreement_everywhere(g, feeds);
}

// Sums and their relatives, and what is made of them in the same row.
std::vector<Value> combined(Value x) {
  std::vector<Value> out{sum(x, last_axis(x)), reduce_max(x, last_axis(x)),
                         reduce_min(x, last_axis(x), true)};
  if (is_float(x.dtype())) {
    const Value m = mean(x, last_axis(x), true);
    const Value centred = sub(x, m);
    const Value v = mean(square(centred), last_axis(x), true);
    out.push_back(div(centred, sqrt(add(v, number_like(x, 1)))));
    out.push_back(softmax(x, {.axis = last_axis(x)[0]}));
  }
  return out;
}

TEST(BackendShortRows, RowsOfEveryLengthAreCombined) {
  for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16, DType::I32, DType::I64,
                            DType::I8, DType::U8, DType::C64}) {
    for (const std::int64_t row : {2, 3, 4, 5, 6, 7, 8, 9}) {
      SCOPED_TRACE(fmt::format("{} rows of {}", name(dtype), row));
      Graph g("rows");
      const Value x = g.input("x", {dtype, {2205, row}});
      g.set_outputs(is_complex(dtype) ? std::vector{sum(x, last_axis(x))} : combined(x));
      expect_agreement(g, {x});
    }
  }
}

TEST(BackendShortRows, LongerOnesOfMuchWorkAreCombined) {
  for (const DType dtype : {DType::F32, DType::F64, DType::BF16}) {
    for (const std::int64_t row : {9, 10, 11, 13, 15, 16, 17}) {
      SCOPED_TRACE(fmt::format("{} rows of {}", name(dtype), row));
      Graph g("rows");
      const Value x = g.input("x", {dtype, {1203, row}});
      const Value y = g.input("y", {dtype, {1203, row}});
      g.set_outputs({log_sum_exp(x, last_axis(x)), sum(mul(y, exp(x)), last_axis(x), true),
                     reduce_max(tanh(sub(x, y)), last_axis(x))});
      expect_agreement(g, {x, y});
    }
  }
}

// Parts of a longer row that are normalised each for itself lie far from those of the next row.
TEST(BackendShortRows, RowsOfMuchWorkAreStoredFarFromEachOther) {
  for (const DType dtype : {DType::F32, DType::F64, DType::BF16}) {
    for (const std::int64_t parts : {3, 7, 9}) {
      SCOPED_TRACE(fmt::format("{} parts of {}", parts, name(dtype)));
      Graph g("parts");
      const Value x = g.input("x", {dtype, {901, 8 * parts}});
      std::vector<Value> out;
      for (std::int64_t p = 0; p < parts; ++p) {
        const Value part = tanh(narrow(x, {.axis = 1, .start = 8 * p, .len = 8}));
        out.push_back(softmax(exp(part), {.axis = 1}));
      }
      g.set_outputs({concat(out, {.axis = 1})});
      expect_agreement(g, {x});
    }
  }
}

TEST(BackendShortRows, LogicalReductionsSeeTruth) {
  Graph g("truth");
  const Value x = g.input("x", f32({3001, 5}));
  const Value above = gt(x, number_like(x, 0.3));
  g.set_outputs({reduce_any(above, last_axis(x)), reduce_all(above, last_axis(x))});
  expect_agreement(g, {x});
}

// Two axes of rows, of which the second is not a multiple of any number of lanes.
TEST(BackendShortRows, GroupsEndWithTheirAxis) {
  for (const std::int64_t middle : {4, 15, 16, 17, 37, 64}) {
    SCOPED_TRACE(middle);
    Graph g("axes");
    const Value x = g.input("x", f32({211, middle, 5}));
    const Value by_row = g.input("r", f32({211, 1, 5}));
    const Value by_column = g.input("c", f32({middle, 1}));
    const Value y = add(mul(x, by_row), by_column);
    g.set_outputs({y, sum(y, {2}), reduce_max(y, {2}, true)});
    expect_agreement(g, {x, by_row, by_column});
  }
}

// The row itself has two axes, and parts of it are read.
TEST(BackendShortRows, RowsMayHaveAxesAndParts) {
  Graph g("parts");
  const Value x = g.input("x", f32({1700, 3, 4}));
  const Value part =
      narrow(narrow(x, {.axis = 1, .start = 1, .len = 2}), {.axis = 2, .start = 1, .len = 3});
  const Value turned = transpose(part, {.perm = {0, 2, 1}});
  g.set_outputs({sum(part, {1, 2}), reduce_max(turned, {1, 2}), mul(turned, number_like(x, 2)),
                 reverse(part, {.axes = {0, 2}})});
  expect_agreement(g, {x});
}

TEST(BackendShortRows, PiecesAndZerosGoBetweenTheOthers) {
  for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::I16, DType::Bool}) {
    SCOPED_TRACE(name(dtype));
    Graph g("pieces");
    const Value a = g.input("a", {dtype, {2500, 2}});
    const Value b = g.input("b", {dtype, {2500, 3}});
    const Value c = g.input("c", {dtype, {2500}});
    const Value zero = g.constant(Tensor::zeros({dtype, {}}));
    const Value apart =
        pad(reshape(c, {.new_shape = {2500, 1}}), zero, {.low = {0, 1}, .high = {0, 2}});
    g.set_outputs({concat(std::vector{a, b}, {.axis = 1}), reshape(apart, {.new_shape = {10000}}),
                   expand(reshape(c, {.new_shape = {2500, 1}}), {.target_shape = {2500, 3}}),
                   transpose(b, {.perm = {1, 0}}),
                   transpose(transpose(b, {.perm = {1, 0}}), {.perm = {1, 0}}),
                   pad(b, zero, {.low = {1, 1}, .high = {0, 2}})});
    expect_agreement(g, {a, b, c});
  }
}

// Vectors shorter than the stride pass over some of the places between two rows.
TEST(BackendShortRows, PiecesMayBeFurtherApartThanAVectorIsLong) {
  for (const DType dtype : {DType::F32, DType::F64, DType::I64, DType::I16}) {
    for (const std::int64_t first : {2, 3}) {
      SCOPED_TRACE(fmt::format("{} {}", name(dtype), first));
      Graph g("apart");
      const Value a = g.input("a", {dtype, {1000, first}});
      const Value b = g.input("b", {dtype, {1000, 5}});
      g.set_outputs({concat(std::vector{neg(a), neg(b)}, {.axis = 1})});
      const Feeds feeds = {{"a", random_tensor(1, a.type())}, {"b", random_tensor(2, b.type())}};
      const std::vector<Tensor> expected = interpret(g, feeds);
      for (const cpu::TargetInfo& target : targets_of_all_widths()) {
        EXPECT_TRUE(same(run_kernels(g, feeds, target)[0], expected[0]))
            << target.name << " " << target.vector_bits;
      }
    }
  }
}

TEST(BackendShortRows, StridesOfEitherSignAreReadAsVectors) {
  for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::I8, DType::C64}) {
    for (const std::int64_t stride : {1, 2, 3, 4, 5, 7, 8, 9}) {
      SCOPED_TRACE(fmt::format("{} every {}", name(dtype), stride));
      Graph g("strides");
      const Value x = g.input("x", {dtype, {7, 700 * stride - 1}});
      const Value some = take_every(x, {.axis = 1, .stride = stride});
      g.set_outputs({some, reverse(some, {.axes = {1}}),
                     add(take_every(reverse(x, {.axes = {1}}), {.axis = 1, .stride = stride}),
                         number_like(x, 1))});
      expect_agreement(g, {x});
    }
  }
}

// Few columns are summed as long rows, which what goes through short ones beside them leaves whole.
TEST(BackendShortRows, SumsDownThemKeepTheirLongRows) {
  Graph g("beside");
  const Value x = g.input("x", f32({8000, 5}));
  const Value y = g.input("y", f32({8000, 5}));
  const Value row = g.input("r", f32({5}));
  const Value column = g.input("c", f32({8000, 1}));
  g.set_outputs({mul(x, row), sum(mul(x, y), {0}), sum(mul(add(x, y), column), {0})});
  for (const loop::Kernel& k : make_program(g).kernels) {
    const bool large = k.rows() * k.row_elements() > 4096;
    EXPECT_TRUE(!large || k.accumulators.empty() || k.extents.back() >= 32) << to_string(k);
  }
  expect_agreement(g, {x, y, row, column});
}

}  // namespace
}  // namespace ricci::testing::short_rows_test
