
#include "ops/cases.h"

namespace ricci::testing {
namespace {

constexpr DTypeSet Ordered = dtypes::floats | dtypes::ints | dtypes::booleans;

}  // namespace

Cases cases(const op::Sort*) {
  const Dim n = Dim::symbol("n");
  const In row = T({5}).with({3, 1, 2, 1, 3});
  const In with_nan = T({5}).with({1, NaN, -Inf, NaN, Inf});
  return cases_of<op::Sort>({
      {.name = "ascending", .in = {row}, .out = {{1, 1, 2, 3, 3}, {1, 3, 2, 0, 4}}},
      {.name = "descending",
       .in = {row},
       .op = {.descending = true},
       .out = {{3, 3, 2, 1, 1}, {0, 4, 2, 1, 3}}},
      {.name = "nan_last", .in = {with_nan}, .out = {{-Inf, 1, Inf, NaN, NaN}, {2, 0, 4, 1, 3}}},
      {.name = "nan_first",
       .in = {with_nan},
       .op = {.descending = true},
       .out = {{NaN, NaN, Inf, 1, -Inf}, {1, 3, 4, 0, 2}}},
      {.name = "zeros_are_equal", .in = {T({2}).with({0.0, -0.0})}, .out = {{0.0, -0.0}, {0, 1}}},
      {.name = "first_axis",
       .in = {T({3, 2}).with({5, 1, 4, 2, 6, 0})},
       .op = {.axis = 0, .index_dtype = DType::I64},
       .out = {{4, 0, 5, 1, 6, 2}, {1, 2, 0, 0, 2, 1}}},
      {.name = "middle", .in = {T({2, 5, 3})}, .op = {1, true, DType::U32}, .dtypes = Ordered},
      {.name = "float_indices", .in = {T({4, 33})}, .op = {.index_dtype = DType::F32}},
      {.name = "indices_only", .in = {T({7})}, .op = {}, .wanted = {false, true}},
      {.name = "values_only", .in = {T({7})}, .op = {}, .wanted = {true, false}},
      {.name = "values_only_inside",
       .in = {T({2, 4, 2})},
       .op = {.axis = 1, .descending = true},
       .wanted = {true, false}},
      {.name = "ties_inside",
       .in = {T({3, 2}).with({2, 1, 2, 1, 1, 1})},
       .op = {.axis = 0, .descending = true},
       .out = {{2, 1, 2, 1, 1, 1}, {0, 0, 1, 1, 2, 2}}},
      {.name = "empty_axis", .in = {T({2, 0})}},
      {.name = "no_rows", .in = {T({0, 2})}},
      {.name = "one", .in = {T({3, 1})}},
      {.name = "long", .in = {T({67})}, .dtypes = Ordered},
      {.name = "rank_six", .in = {T({1, 2, 1, 3, 2, 2})}, .op = {.axis = 3}},
      {.name = "symbolic", .in = {T({n, 3})}, .op = {.axis = 0, .descending = true}},
      {.name = "complex", .in = {T({2})}, .dtypes = dtypes::complexes, .rejects = "c1"},
      {.name = "half_indices", .in = {T({2})}, .op = {.index_dtype = DType::F16}, .rejects = "c2"},
      {.name = "scalar", .in = {T({})}, .rejects = "axis"},
  });
}

Cases cases(const op::ArgReduce*) {
  const Dim n = Dim::symbol("n");
  const In ties = T({2, 4}).with({1, 3, 3, 0, 5, 5, 2, 2});
  std::vector<CaseOf<op::ArgReduce>> list = {
      {.name = "max_first_tie", .in = {ties}, .op = {ArgKind::ArgMax}, .out = {{1, 0}}},
      {.name = "min_first_tie", .in = {ties}, .op = {ArgKind::ArgMin}, .out = {{3, 2}}},
      {.name = "max_first_axis",
       .in = {ties},
       .op = {ArgKind::ArgMax, 0, true, DType::I64},
       .out = {{1, 1, 0, 1}}},
      {.name = "max_nan",
       .in = {T({4}).with({1, NaN, Inf, NaN})},
       .op = {ArgKind::ArgMax},
       .out = {{1}}},
      {.name = "min_nan",
       .in = {T({4}).with({1, -Inf, NaN, NaN})},
       .op = {ArgKind::ArgMin},
       .out = {{2}}},
      {.name = "max_of_low",
       .in = {T({3}).with({-Inf, -Inf, -Inf})},
       .op = {ArgKind::ArgMax},
       .out = {{0}}},
  };
  for (const ArgKind kind : {ArgKind::ArgMax, ArgKind::ArgMin}) {
    const std::string s(name_of(kind));
    list.push_back({.name = s + "_middle",
                    .in = {T({2, 5, 3})},
                    .op = {kind, 1, false, DType::U32},
                    .dtypes = Ordered});
    list.push_back({.name = s + "_float", .in = {T({3, 67})}, .op = {kind, -1, true, DType::F32}});
    list.push_back({.name = s + "_no_rows", .in = {T({0, 2})}, .op = {kind}});
    list.push_back({.name = s + "_one", .in = {T({1})}, .op = {kind}});
    list.push_back({.name = s + "_rank_six", .in = {T({1, 2, 1, 3, 2, 2})}, .op = {kind, 3}});
    list.push_back({.name = s + "_symbolic", .in = {T({n, 3})}, .op = {kind, 0}});
    list.push_back({.name = s + "_complex",
                    .in = {T({2})},
                    .op = {kind},
                    .dtypes = dtypes::complexes,
                    .rejects = "c1"});
    list.push_back({.name = s + "_short_indices",
                    .in = {T({2})},
                    .op = {kind, 0, false, DType::I8},
                    .rejects = "c2"});
    list.push_back({.name = s + "_empty", .in = {T({2, 0})}, .op = {kind}, .rejects = "c3"});
    list.push_back({.name = s + "_scalar", .in = {T({})}, .op = {kind}, .rejects = "axis"});
  }
  return cases_of<op::ArgReduce>(std::move(list));
}

Cases cases(const op::TopK*) {
  const Dim n = Dim::symbol("n");
  return cases_of<op::TopK>({
      {.name = "ties",
       .in = {T({5}).with({3, 1, 2, 1, 3})},
       .op = {4},
       .out = {{3, 3, 2, 1}, {0, 4, 2, 1}}},
      // [RD-11] k distinct indices whatever the row holds.
      {.name = "only_low",
       .in = {T({3}).with({-Inf, -Inf, -Inf})},
       .op = {2},
       .out = {{-Inf, -Inf}, {0, 1}}},
      {.name = "nan_first",
       .in = {T({4}).with({NaN, Inf, NaN, 0})},
       .op = {3},
       .out = {{NaN, NaN, Inf}, {0, 2, 1}}},
      {.name = "rows", .in = {T({2, 3, 7})}, .op = {3, DType::I64}, .dtypes = Ordered},
      {.name = "all", .in = {T({3, 5})}, .op = {5, DType::U32}},
      {.name = "long", .in = {T({2, 67})}, .op = {9, DType::F32}},
      {.name = "indices_only", .in = {T({7})}, .op = {2}, .wanted = {false, true}},
      {.name = "values_only", .in = {T({2, 7})}, .op = {2}, .wanted = {true, false}},
      {.name = "float_indices_only",
       .in = {T({7})},
       .op = {2, DType::F32},
       .wanted = {false, true}},
      {.name = "largest_only", .in = {T({3, 4})}, .op = {1}},
      {.name = "no_rows", .in = {T({0, 4})}, .op = {2}},
      {.name = "symbolic", .in = {T({3, n})}, .op = {2}},
      {.name = "complex", .in = {T({2})}, .op = {1}, .dtypes = dtypes::complexes, .rejects = "c1"},
      {.name = "bool_indices", .in = {T({2})}, .op = {1, DType::Bool}, .rejects = "c2"},
      {.name = "scalar", .in = {T({})}, .op = {1}, .rejects = "c3"},
      {.name = "too_many", .in = {T({3})}, .op = {4}, .rejects = "c4"},
      {.name = "none", .in = {T({3})}, .op = {0}, .rejects = "c4"},
  });
}

Cases cases(const op::Sample*) {
  const Dim n = Dim::symbol("n");
  const In row = T({4}).with({0, 5, 1, 5});
  return cases_of<op::Sample>({
      // [RD-12] temperature 0 is arg_max, and one id is one id even among equals.
      {.name = "greedy", .in = {row}, .op = {.temperature = 0}, .out = {{1}}},
      {.name = "greedy_nan",
       .in = {T({3}).with({0, NaN, 1})},
       .op = {.temperature = 0},
       .out = {{1}}},
      {.name = "one_kept", .in = {row}, .op = {.top_k = 1}, .out = {{1}}},
      {.name = "little_mass", .in = {row}, .op = {.top_p = 1e-6}, .out = {{1}}},
      {.name = "certain", .in = {T({2, 3}).with({-Inf, 0, -Inf, 0, -Inf, -Inf})}, .out = {{1, 0}}},
      {.name = "infinite", .in = {T({3}).with({0, 1, Inf})}, .out = {{2}}},
      {.name = "nothing_there", .in = {T({2}).with({-Inf, -Inf})}, .out = {{0}}},
      {.name = "all_attributes",
       .in = {T({3, 67})},
       .op = {.top_k = 5,
              .top_p = 0.9,
              .temperature = 0.7,
              .seed = 42,
              .index_dtype = DType::I64,
              .key = 7}},
      {.name = "own_key", .in = {T({5, 8})}, .op = {.index_dtype = DType::F32, .key = 3}},
      {.name = "key_operand", .in = {T({5, 8}), Index({}, 9, DType::U32)}},
      {.name = "more_kept_than_there", .in = {T({3})}, .op = {.top_k = 9, .top_p = 2}},
      {.name = "no_rows", .in = {T({0, 4})}},
      {.name = "symbolic", .in = {T({n, 4})}, .op = {.index_dtype = DType::U32}},
      {.name = "ints", .in = {T({3})}, .dtypes = dtypes::ints, .rejects = "c1"},
      {.name = "short_ids", .in = {T({3})}, .op = {.index_dtype = DType::U8}, .rejects = "c2"},
      {.name = "rank_three", .in = {T({2, 3, 4})}, .rejects = "c3"},
      {.name = "scalar", .in = {T({})}, .rejects = "c3"},
      {.name = "no_ids", .in = {T({3, 0})}, .rejects = "c3"},
      {.name = "cold", .in = {T({3})}, .op = {.temperature = -1}, .rejects = "c4"},
      {.name = "hot", .in = {T({3})}, .op = {.temperature = Inf}, .rejects = "range"},
      {.name = "no_mass", .in = {T({3})}, .op = {.top_p = 0}, .rejects = "c5"},
      {.name = "negative_count", .in = {T({3})}, .op = {.top_k = -1}, .rejects = "c5"},
      {.name = "float_key", .in = {T({3}), T({})}, .rejects = "c6"},
  });
}

}  // namespace ricci::testing
