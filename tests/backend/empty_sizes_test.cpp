// Next to a size of zero another may be as large as it likes: there is nothing to compute, so
// nothing is looped over or made room for. A loop over the large one would not end in a day.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/build/select.h"
#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/op/table.h"

#include "backend/agreement.h"
#include "ops/cases.h"
#include "property/extreme_graphs.h"

namespace ricci::testing::empty_sizes_test {
namespace {

constexpr std::int64_t Far = std::int64_t{1} << 40;
constexpr std::int64_t Little = 10000;  // elements

std::set<std::int64_t> sizes_of(const Case& c) {
  std::set<std::int64_t> out;
  for (const In& in : c.in) {
    for (const Dim& d : in.dims) {
      if (const auto n = d.try_value(); n && *n > 0) out.insert(*n);
    }
  }
  return out;
}

bool operands_are_small(const Case& c) {
  return std::ranges::all_of(c.in, [](const In& in) {
    std::int64_t elements = 1;
    for (const Dim& d : in.dims) {
      if (!d.is_static()) return false;
      elements = std::min(elements * std::min(d.value(), Little + 1), Little + 1);
    }
    return std::ranges::any_of(in.dims, [](const Dim& d) { return d.is(0); }) || elements <= Little;
  });
}

// Runs a case if what it gives is small; says whether it was.
bool runs(const Case& c, DType dtype) {
  BuiltCase built;
  try {
    built = build_case(c, dtype);
  } catch (const UserError&) {
    return false;  // sizes that no longer go together
  }
  if (!built.graph.symbols().empty()) return false;
  if (counted_work(built.graph, Little) >= Little) return false;
  const Feeds feeds(built.feeds.begin(), built.feeds.end());
  const Outcome expected = reference_outcome(built.graph, feeds);
  const Outcome actual = compiled_outcome(built.graph, feeds, true);
  EXPECT_EQ(device_disagreement(built.graph, feeds, actual, expected), "");
  return true;
}

TEST(BackendEmptySizes, EveryOp) {
  std::size_t ran = 0;
  std::set<std::string_view> ops;
  for (const OpDescriptor& d : all_ops()) {
    for (const Case& c : cases_for(d.kind)) {
      if (!c.rejects.empty() || c.dtypes == DTypeSet{}) continue;
      const DType dtype = c.dtypes.has(DType::F32) ? DType::F32 : DType::I32;
      if (!c.dtypes.has(dtype)) continue;
      const std::set<std::int64_t> sizes = sizes_of(c);
      for (const std::int64_t zero : sizes) {
        for (const std::int64_t large : sizes) {
          if (zero == large) continue;
          Case now = c;
          replace_size(now, large, Far);
          replace_size(now, zero, 0);
          if (!operands_are_small(now)) continue;
          SCOPED_TRACE(fmt::format("{} case '{}', 2^40 for {}, 0 for {}", d.info->name, c.name,
                                   large, zero));
          if (!runs(now, dtype)) continue;
          ++ran;
          ops.insert(d.info->name);
        }
      }
    }
  }
  EXPECT_GT(ran, 100U);
  EXPECT_GT(ops.size(), 30U);
}

void expect_runs(const std::function<std::vector<Value>(Value)>& build) {
  for (const Dims& dims : {Dims{0, Far}, Dims{Far, 0}, Dims{3, 0, Far}, Dims{Far, 3, 0}}) {
    Graph g("empty");
    const Value x = g.input("x", f32(dims));
    std::vector<Value> results;
    try {
      results = build(x);
    } catch (const UserError&) {
      continue;  // an axis of size 0 has no largest element
    }
    g.set_outputs(results);
    if (counted_work(g, Little) >= Little) continue;
    const Feeds feeds = {{"x", Tensor::zeros(f32(dims))}};
    const Outcome expected = reference_outcome(g, feeds);
    const Outcome actual = compiled_outcome(g, feeds, true);
    EXPECT_EQ(device_disagreement(g, feeds, actual, expected), "") << to_string(dims);
  }
}

TEST(BackendEmptySizes, AlongEveryAxis) {
  for (const int axis : {0, 1, -1}) {
    SCOPED_TRACE(axis);
    expect_runs([&](Value x) { return std::vector{sort(x, {.axis = axis})[0]}; });
    expect_runs([&](Value x) { return std::vector{cumsum(x, {.axis = axis})}; });
    expect_runs([&](Value x) { return std::vector{softmax(x, {.axis = axis})}; });
    expect_runs([&](Value x) { return std::vector{reverse(x, {.axes = {axis}})}; });
    expect_runs([&](Value x) { return std::vector{tanh(x) + 1.0}; });
    expect_runs([&](Value x) { return std::vector{arg_max(x, {.axis = axis})}; });
    for (const ReduceKind kind : {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Mean}) {
      expect_runs([&](Value x) { return std::vector{reduce(x, {.op = kind, .axes = {axis}})}; });
    }
  }
  expect_runs([](Value x) { return std::vector{top_k(x, {.k = 1})[0]}; });
  expect_runs([](Value x) {
    Axes all;
    for (std::size_t i = 0; i < x.rank(); ++i) all.emplace_back(static_cast<std::int64_t>(i));
    return std::vector{sum(x), reduce(x, {.op = ReduceKind::Max, .axes = all})};
  });
}

// Indices are looked at even where the rows they name have no elements; the rows are not counted.
TEST(BackendEmptySizes, RowsWithoutElementsTakeNoRoom) {
  const Graph g = parse_graph(R"(
graph @rows {
  %x = input "x" : f16[3, 0]
  %i = input "i" : i32[3]
  %y = gather_backward %x, %i {axis = 0, axis_size = 1099511627776}
  return %y
}
)");
  for (const bool fuse : {true, false}) {
    for (const int index : {2, -1}) {
      const Feeds feeds = {{"x", Tensor::zeros(Type{DType::F16, {3, 0}})},
                           {"i", Tensor::of<std::int32_t>({3}, {0, 1, index})}};
      const Outcome expected = reference_outcome(g, feeds);
      EXPECT_EQ(std::holds_alternative<ErrorCode>(expected), index < 0);
      EXPECT_EQ(device_disagreement(g, feeds, compiled_outcome(g, feeds, fuse), expected), "");
    }
  }
}

}  // namespace
}  // namespace ricci::testing::empty_sizes_test
