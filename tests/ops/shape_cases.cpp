#include "ops/cases.h"

namespace ricci::testing {

Cases cases(const op::Reshape*) {
  const Dim n = Dim::symbol("n");
  return cases_of<op::Reshape>({
      {.name = "flatten", .in = {T({2, 3})}, .op = {{6}}, .dtypes = dtypes::all},
      {.name = "infer_one", .in = {T({2, 6})}, .op = {{-1, 4}}},
      {.name = "to_scalar", .in = {T({1, 1})}, .op = {Dims{}}},
      {.name = "empty", .in = {T({0, 3})}, .op = {{2, 0}}},
      {.name = "rank_six", .in = {T({12})}, .op = {{1, 2, 1, 3, 2, 1}}},
      {.name = "symbolic", .in = {T({n, 6})}, .op = {{2, -1, 3}}},
      // [SH-01]
      {.name = "too_few", .in = {T({2, 3})}, .op = {{5}}, .rejects = "c1"},
      {.name = "two_open", .in = {T({2, 3})}, .op = {{-1, -1}}, .rejects = "c2"},
      {.name = "uneven", .in = {T({2, 3})}, .op = {{-1, 4}}, .rejects = "c2"},
      {.name = "open_next_to_zero", .in = {T({0})}, .op = {{-1, 0}}, .rejects = "c2"},
  });
}

Cases cases(const op::Transpose*) {
  return cases_of<op::Transpose>({
      {.name = "matrix",
       .in = {T({2, 3}).with({1, 2, 3, 4, 5, 6})},
       .op = {{1, 0}},
       .out = {{1, 4, 2, 5, 3, 6}}},
      {.name = "negative_axes", .in = {T({2, 3, 4})}, .op = {{-1, 0, 1}}, .dtypes = dtypes::all},
      {.name = "scalar", .in = {T({})}, .op = {Axes{}}},
      {.name = "empty", .in = {T({0, 3})}, .op = {{1, 0}}},
      {.name = "rank_six", .in = {T({1, 2, 1, 3, 2, 2})}, .op = {{5, 3, 1, 0, 2, 4}}},
      {.name = "repeated", .in = {T({2, 3})}, .op = {{0, 0}}, .rejects = "c1"},
      {.name = "too_short", .in = {T({2, 3})}, .op = {Axes{0}}, .rejects = "c1"},
  });
}

Cases cases(const op::Expand*) {
  return cases_of<op::Expand>({
      {.name = "row", .in = {T({3})}, .op = {{2, 3}}, .dtypes = dtypes::all},
      {.name = "column", .in = {T({2, 1})}, .op = {{2, 3}}},
      {.name = "keep", .in = {T({1, 3})}, .op = {{4, -1}}},
      {.name = "scalar", .in = {T({})}, .op = {{2, 2}}},
      {.name = "to_empty", .in = {T({1})}, .op = {{0}}},
      // [SH-06]
      {.name = "clash", .in = {T({2})}, .op = {{3}}, .rejects = "c1"},
      {.name = "shrink", .in = {T({2, 3})}, .op = {{3}}, .rejects = "c1"},
      {.name = "new_axis_kept", .in = {T({2, 1})}, .op = {{-1, 2, 3}}, .rejects = "c2"},
      {.name = "negative", .in = {T({1})}, .op = {{-3}}, .rejects = "c2"},
  });
}

Cases cases(const op::Narrow*) {
  const Dim n = Dim::symbol("n");
  return cases_of<op::Narrow>({
      {.name = "middle",
       .in = {T({5}).with({0, 1, 2, 3, 4})},
       .op = {.axis = 0, .start = 1, .len = 3},
       .out = {{1, 2, 3}}},
      {.name = "inner_axis",
       .in = {T({2, 5})},
       .op = {.axis = -1, .start = 2, .len = 2},
       .dtypes = dtypes::all},
      {.name = "nothing", .in = {T({5})}, .op = {.axis = 0, .start = 5, .len = 0}},
      {.name = "symbolic", .in = {T({n})}, .op = {.axis = 0, .start = 1, .len = n - 1}},
      // [SH-02]
      {.name = "too_far", .in = {T({5})}, .op = {.axis = 0, .start = 3, .len = 3}, .rejects = "c1"},
      {.name = "negative",
       .in = {T({5})},
       .op = {.axis = 0, .start = -1, .len = 2},
       .rejects = "c1"},
      {.name = "no_such_axis",
       .in = {T({5})},
       .op = {.axis = 1, .start = 0, .len = 1},
       .rejects = "axis"},
  });
}

Cases cases(const op::TakeEvery*) {
  const Dim n = Dim::symbol("n");
  return cases_of<op::TakeEvery>({
      {.name = "second",
       .in = {T({5}).with({0, 1, 2, 3, 4})},
       .op = {.axis = 0, .stride = 2},
       .out = {{0, 2, 4}}},
      {.name = "even_size",
       .in = {T({2, 4}).with({0, 1, 2, 3, 4, 5, 6, 7})},
       .op = {.axis = -1, .stride = 2},
       .out = {{0, 2, 4, 6}}},
      {.name = "middle", .in = {T({2, 7, 3})}, .op = {1, 3}, .dtypes = dtypes::all},
      {.name = "all", .in = {T({3, 4})}, .op = {.axis = 0, .stride = 1}},
      {.name = "first_only", .in = {T({5, 2})}, .op = {.axis = 0, .stride = 9}},
      {.name = "far", .in = {T({3})}, .op = {.axis = 0, .stride = std::int64_t{1} << 40}},
      {.name = "nothing", .in = {T({0, 3})}, .op = {.axis = 0, .stride = 2}},
      {.name = "rank_six", .in = {T({1, 2, 1, 5, 2, 2})}, .op = {.axis = 3, .stride = 2}},
      {.name = "symbolic", .in = {T({n * 3, 2})}, .op = {.axis = 0, .stride = 3}},
      {.name = "stride_zero", .in = {T({3})}, .op = {.axis = 0, .stride = 0}, .rejects = "c1"},
      {.name = "symbolic_rest", .in = {T({n})}, .op = {.axis = 0, .stride = 2}, .rejects = "c2"},
  });
}

Cases cases(const op::Concat*) {
  const Dim n = Dim::symbol("n");
  return cases_of<op::Concat>({
      {.name = "columns",
       .in = {T({2, 1}).with({1, 2}), T({2, 2}).with({3, 4, 5, 6})},
       .op = {.axis = 1},
       .out = {{1, 3, 4, 2, 5, 6}}},
      {.name = "rows", .in = {T({2, 3}), T({1, 3})}, .op = {.axis = 0}, .dtypes = dtypes::all},
      {.name = "one", .in = {T({2, 3})}, .op = {.axis = -1}},
      {.name = "empty_between", .in = {T({2}), T({0}), T({3})}, .op = {.axis = 0}},
      {.name = "all_empty", .in = {T({0, 3}), T({0, 2})}, .op = {.axis = 1}},
      {.name = "long", .in = {T({2, 67}), T({2, 33})}, .op = {.axis = -1}},
      {.name = "rank_six", .in = {T({1, 2, 1, 3, 2, 2}), T({1, 2, 1, 1, 2, 2})}, .op = {.axis = 3}},
      {.name = "symbolic", .in = {T({n, 3}), T({2, 3}), T({n, 3})}, .op = {.axis = 0}},
      {.name = "nothing", .in = {}, .op = {.axis = 0}, .rejects = "c1"},
      {.name = "dtypes_differ",
       .in = {T({2}), Fixed(DType::I8, {2})},
       .op = {.axis = 0},
       .rejects = "c2"},
      // [SH-04]
      {.name = "rank_differs", .in = {T({2, 3}), T({2})}, .op = {.axis = 0}, .rejects = "c3"},
      {.name = "sizes_differ", .in = {T({2, 3}), T({2, 4})}, .op = {.axis = 0}, .rejects = "c3"},
      {.name = "symbolic_differ",
       .in = {T({2, n}), T({2, n + 1})},
       .op = {.axis = 0},
       .rejects = "c3"},
      {.name = "scalars", .in = {T({}), T({})}, .op = {.axis = 0}, .rejects = "axis"},
  });
}

Cases cases(const op::Reverse*) {
  const Dim n = Dim::symbol("n");
  return cases_of<op::Reverse>({
      {.name = "columns",
       .in = {T({2, 3}).with({1, 2, 3, 4, 5, 6})},
       .op = {{1}},
       .out = {{3, 2, 1, 6, 5, 4}}},
      {.name = "both", .in = {T({2, 3})}, .op = {{-1, 0}}, .dtypes = dtypes::all},
      {.name = "none", .in = {T({2, 3})}, .op = {Axes{}}},
      {.name = "scalar", .in = {T({})}, .op = {Axes{}}},
      {.name = "empty", .in = {T({0, 3})}, .op = {{0, 1}}},
      {.name = "long", .in = {T({67})}, .op = {Axes{0}}},
      {.name = "rank_six", .in = {T({1, 2, 1, 3, 2, 2})}, .op = {{1, 3, 5}}},
      {.name = "symbolic", .in = {T({n, 3})}, .op = {Axes{0}}},
      {.name = "twice", .in = {T({2, 3})}, .op = {{0, -2}}, .rejects = "c1"},
      {.name = "no_such_axis", .in = {T({2})}, .op = {Axes{1}}, .rejects = "axis"},
  });
}

Cases cases(const op::Pad*) {
  const Dim n = Dim::symbol("n");
  return cases_of<op::Pad>({
      {.name = "around",
       .in = {T({2}).with({1, 2}), T({}).with({7})},
       .op = {.low = {1}, .high = {2}},
       .out = {{7, 1, 2, 7, 7}}},
      {.name = "crop",
       .in = {T({4}).with({1, 2, 3, 4}), T({}).with({7})},
       .op = {.low = {-1}, .high = {-2}},
       .out = {{2}}},
      {.name = "crop_and_pad",
       .in = {T({3}).with({1, 2, 3}), T({}).with({7})},
       .op = {.low = {-2}, .high = {2}},
       .out = {{3, 7, 7}}},
      {.name = "cut_past_the_end",
       .in = {T({2}).with({1, 2}), T({}).with({7})},
       .op = {.low = {-3}, .high = {2}},
       .out = {{7}}},
      {.name = "matrix",
       .in = {T({2, 3}), T({})},
       .op = {.low = {1, 0}, .high = {0, 2}},
       .dtypes = dtypes::all},
      {.name = "empty", .in = {T({0, 2}), T({})}, .op = {.low = {1, 0}, .high = {1, 0}}},
      {.name = "to_empty", .in = {T({2}), T({})}, .op = {.low = {-1}, .high = {-1}}},
      {.name = "scalar", .in = {T({}), T({})}, .op = {.low = {}, .high = {}}},
      {.name = "long", .in = {T({67}), T({})}, .op = {.low = {3}, .high = {5}}},
      {.name = "rank_six",
       .in = {T({1, 2, 1, 3, 2, 2}), T({})},
       .op = {.low = {1, -1, 0, 1, 0, 0}, .high = {0, 0, 1, -1, 0, 2}}},
      {.name = "symbolic", .in = {T({n, 3}), T({})}, .op = {.low = {1, n}, .high = {n - 2, 0}}},
      {.name = "dtypes_differ",
       .in = {T({2}), Fixed(DType::I8, {})},
       .op = {.low = {1}, .high = {1}},
       .rejects = "c1"},
      {.name = "value_is_no_scalar",
       .in = {T({2}), T({1})},
       .op = {.low = {1}, .high = {1}},
       .rejects = "c2"},
      {.name = "too_few_amounts",
       .in = {T({2, 3}), T({})},
       .op = {.low = {1}, .high = {1, 1}},
       .rejects = "c3"},
      {.name = "cut_too_much",
       .in = {T({2}), T({})},
       .op = {.low = {-2}, .high = {-1}},
       .rejects = "c4"},
  });
}

}  // namespace ricci::testing
