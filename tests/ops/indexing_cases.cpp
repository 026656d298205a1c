
#include "ops/cases.h"

namespace ricci::testing {
namespace {

// Everything that can be added.
constexpr DTypeSet Addable = dtypes::floats | dtypes::ints | dtypes::complexes;

In integers(Dims dims, std::vector<double> values, DType dtype = DType::I32) {
  return Fixed(dtype, std::move(dims)).with(std::move(values));
}

}  // namespace

Cases cases(const op::Gather*) {
  const Dim n = Dim::symbol("n");
  std::vector<CaseOf<op::Gather>> list = {
      {.name = "rows",
       .in = {T({3, 2}).with({1, 2, 3, 4, 5, 6}), integers({2}, {2, 0})},
       .op = {.axis = 0},
       .out = {{5, 6, 1, 2}}},
      // [SH-07] leading axes of the table stay in front.
      {.name = "columns",
       .in = {T({2, 3}).with({1, 2, 3, 4, 5, 6}), integers({2, 1}, {2, 1})},
       .op = {.axis = -1},
       .out = {{3, 2, 6, 5}}},
      {.name = "middle", .in = {T({2, 5, 3}), Index({4, 2}, 5)}, .op = {1}, .dtypes = dtypes::all},
      {.name = "one_index", .in = {T({4, 3}), Index({}, 4)}, .op = {.axis = 0}},
      {.name = "one_index_inside", .in = {T({2, 4, 3}), Index({}, 4)}, .op = {.axis = 1}},
      {.name = "no_index", .in = {T({4, 3}), Index({0, 2}, 4)}, .op = {.axis = 0}},
      {.name = "empty_table_and_no_index", .in = {T({0, 3}), Index({0}, 1)}, .op = {.axis = 0}},
      {.name = "empty_rows", .in = {T({4, 0}), Index({3}, 4)}, .op = {.axis = 0}},
      {.name = "repeated", .in = {T({2, 3}), Index({67}, 2)}, .op = {.axis = 0}},
      {.name = "repeated_inside",
       .in = {T({2, 3}), integers({2, 2}, {1, 1, 0, 1}, DType::F64)},
       .op = {.axis = 1}},
      {.name = "rank_six", .in = {T({1, 2, 3, 2}), Index({2, 1, 2}, 3)}, .op = {.axis = 2}},
      {.name = "nan_moves",
       .in = {T({2}).with({NaN, 1}), integers({2}, {1, 0})},
       .op = {.axis = 0},
       .out = {{1, NaN}}},
      {.name = "symbolic", .in = {T({n, 3}), Fixed(DType::I32, {n, 2})}, .op = {.axis = 0}},
      // [SH-11] nothing outside the axis is read.
      {.name = "too_large",
       .in = {T({3}), integers({1}, {3})},
       .op = {.axis = 0},
       .fails = OutOfRange},
      {.name = "negative",
       .in = {T({3}), integers({1}, {-1})},
       .op = {.axis = 0},
       .fails = OutOfRange},
      {.name = "negative_float",
       .in = {T({3}), integers({1}, {-1}, DType::F32)},
       .op = {.axis = 0},
       .fails = OutOfRange},
      {.name = "fraction",
       .in = {T({3}), integers({1}, {0.5}, DType::F32)},
       .op = {.axis = 0},
       .fails = OutOfRange},
      {.name = "nan_index",
       .in = {T({3}), integers({1}, {NaN}, DType::F64)},
       .op = {.axis = 0},
       .fails = OutOfRange},
      {.name = "empty_table",
       .in = {T({0}), integers({1}, {0})},
       .op = {.axis = 0},
       .fails = OutOfRange},
      {.name = "bool_indices",
       .in = {T({3}), Fixed(DType::Bool, {1})},
       .op = {.axis = 0},
       .rejects = "c1"},
      {.name = "half_indices",
       .in = {T({3}), Fixed(DType::F16, {1})},
       .op = {.axis = 0},
       .rejects = "c1"},
      {.name = "scalar_table", .in = {T({}), Index({1}, 1)}, .op = {.axis = 0}, .rejects = "axis"},
  };
  // [G-04] [int-indices]
  for (const DType d :
       {DType::I8, DType::I16, DType::I64, DType::U8, DType::U32, DType::F32, DType::F64}) {
    list.push_back({.name = "by_" + std::string(name(d)),
                    .in = {T({5, 2}), Index({3, 2}, 5, d)},
                    .op = {.axis = 0}});
  }
  // Random float indices would not be integers.
  for (auto& c : list) {
    if (c.name == "by_f32" || c.name == "by_f64") c.in[1].values = {4, 0, 1, 1, 3, 2};
  }
  return cases_of<op::Gather>(std::move(list));
}

Cases cases(const op::GatherBackward*) {
  const Dim n = Dim::symbol("n");
  return cases_of<op::GatherBackward>({
      {.name = "rows",
       .in = {T({3, 2}).with({1, 2, 3, 4, 5, 6}), integers({3}, {2, 0, 2})},
       .op = {.axis = 0, .axis_size = 3},
       .out = {{3, 4, 0, 0, 6, 8}}},
      // [SH-09] rank-1 indices along a later axis.
      {.name = "columns",
       .in = {T({2, 3}).with({1, 2, 3, 4, 5, 6}), integers({3}, {1, 1, 0})},
       .op = {.axis = -1, .axis_size = 2},
       .out = {{3, 3, 6, 9}}},
      {.name = "middle",
       .in = {T({2, 4, 2, 3}), Index({4, 2}, 5)},
       .op = {.axis = 1, .axis_size = 5},
       .dtypes = Addable},
      {.name = "one_index", .in = {T({3}), Index({}, 4)}, .op = {.axis = 0, .axis_size = 4}},
      {.name = "one_index_inside",
       .in = {T({2, 3}), Index({}, 4)},
       .op = {.axis = 1, .axis_size = 4}},
      {.name = "repeated", .in = {T({67, 2}), Index({67}, 3)}, .op = {.axis = 0, .axis_size = 3}},
      {.name = "grid_at_the_end",
       .in = {T({3, 2, 4}), Index({2, 4}, 3, DType::U8)},
       .op = {.axis = 1, .axis_size = 3}},
      {.name = "float_indices",
       .in = {T({2, 3}), integers({3}, {1, 0, 1}, DType::F64)},
       .op = {.axis = 1, .axis_size = 2}},
      {.name = "empty_slices", .in = {T({3, 0}), Index({3}, 2)}, .op = {.axis = 0, .axis_size = 2}},
      {.name = "no_index", .in = {T({0, 3}), Index({0}, 1)}, .op = {.axis = 0, .axis_size = 4}},
      {.name = "wraps",
       .in = {T({2}).with({100, 100}), integers({2}, {0, 0})},
       .op = {.axis = 0, .axis_size = 1},
       .dtypes = {DType::I8},
       .out = {{-56}}},
      {.name = "symbolic",
       .in = {T({n, 3}), Fixed(DType::I32, {n})},
       .op = {.axis = 0, .axis_size = n + 1}},
      {.name = "too_large",
       .in = {T({1}), integers({1}, {2})},
       .op = {.axis = 0, .axis_size = 2},
       .fails = OutOfRange},
      {.name = "bool_indices",
       .in = {T({2}), Fixed(DType::Bool, {2})},
       .op = {.axis = 0, .axis_size = 2},
       .rejects = "c1"},
      {.name = "bool_values",
       .in = {T({2}), Index({2}, 2)},
       .op = {.axis = 0, .axis_size = 2},
       .dtypes = dtypes::booleans,
       .rejects = "c2"},
      {.name = "counts_differ",
       .in = {T({3, 2}), Index({2}, 2)},
       .op = {.axis = 0, .axis_size = 2},
       .rejects = "c3"},
      {.name = "negative_size",
       .in = {T({2}), Index({2}, 2)},
       .op = {.axis = 0, .axis_size = -1},
       .rejects = "c4"},
      {.name = "too_few_axes",
       .in = {T({2}), Index({2, 2}, 2)},
       .op = {.axis = 0, .axis_size = 2},
       .rejects = "axis"},
      {.name = "no_such_axis",
       .in = {T({2, 3}), Index({2}, 2)},
       .op = {.axis = 2, .axis_size = 2},
       .rejects = "axis"},
  });
}

Cases cases(const op::ScatterAdd*) {
  const Dim n = Dim::symbol("n");
  return cases_of<op::ScatterAdd>({
      {.name = "rows",
       .in = {T({3, 2}).with({1, 2, 3, 4, 5, 6}), integers({3}, {2, 0, 2})},
       .op = {4},
       .out = {{3, 4, 0, 0, 6, 8, 0, 0}}},
      // [SH-08] every index of every axis counts.
      {.name = "grid_of_indices",
       .in = {T({2, 2}).with({1, 2, 3, 4}), integers({2, 2}, {1, 1, 0, 1})},
       .op = {2},
       .out = {{3, 7}}},
      {.name = "slices", .in = {T({2, 3, 2, 2}), Index({2, 3}, 4)}, .op = {4}, .dtypes = Addable},
      {.name = "long", .in = {T({67}), Index({67}, 5)}, .op = {5}},
      {.name = "nothing", .in = {T({0, 2}), Index({0}, 1)}, .op = {3}},
      {.name = "nowhere", .in = {T({0, 2}), Index({0}, 1)}, .op = {0}},
      {.name = "wraps",
       .in = {T({3}).with({200, 200, 1}), integers({3}, {0, 0, 1})},
       .op = {2},
       .dtypes = {DType::U8},
       .out = {{144, 1}}},
      {.name = "float_indices", .in = {T({2}), integers({2}, {3, 0}, DType::F32)}, .op = {4}},
      {.name = "double_indices",
       .in = {T({3, 2}), integers({3}, {3, 0, 3}, DType::F64)},
       .op = {4}},
      {.name = "one_row", .in = {T({2, 3}), Index({2}, 1)}, .op = {1}},
      {.name = "symbolic", .in = {T({n, 3}), Fixed(DType::I32, {n})}, .op = {n + 1}},
      {.name = "too_large", .in = {T({1}), integers({1}, {2})}, .op = {2}, .fails = OutOfRange},
      {.name = "no_rows", .in = {T({1}), integers({1}, {0})}, .op = {0}, .fails = OutOfRange},
      {.name = "bool_indices", .in = {T({2}), Fixed(DType::Bool, {2})}, .op = {2}, .rejects = "c1"},
      {.name = "bool_values",
       .in = {T({2}), Index({2}, 2)},
       .op = {2},
       .dtypes = dtypes::booleans,
       .rejects = "c2"},
      {.name = "scalar_index", .in = {T({2}), Index({}, 2)}, .op = {2}, .rejects = "c3"},
      {.name = "counts_differ", .in = {T({3}), Index({2}, 2)}, .op = {2}, .rejects = "c3"},
      {.name = "negative_size", .in = {T({2}), Index({2}, 2)}, .op = {-1}, .rejects = "c4"},
  });
}

Cases cases(const op::Scatter*) {
  const Dim n = Dim::symbol("n");
  constexpr DTypeSet Ordered = dtypes::floats | dtypes::ints | dtypes::booleans;
  const In rows = T({3, 2}).with({1, 2, 3, 4, 5, 6});
  const In updates = T({4, 2}).with({7, -8, -9, 3, 2, 2, 4, 5});
  const In places = integers({4}, {2, 0, 2, 2});
  std::vector<CaseOf<op::Scatter>> list = {
      {.name = "set_last_stays",
       .in = {rows, updates, places},
       .op = {ScatterKind::Set},
       .out = {{-9, 3, 3, 4, 4, 5}}},
      {.name = "add_by_hand",
       .in = {rows, updates, places},
       .op = {ScatterKind::Add},
       .out = {{-8, 5, 3, 4, 18, 5}}},
      {.name = "mul_by_hand",
       .in = {rows, updates, places},
       .op = {ScatterKind::Mul},
       .out = {{-9, 6, 3, 4, 280, -480}}},
      {.name = "max_by_hand",
       .in = {rows, updates, places},
       .op = {ScatterKind::Max},
       .out = {{1, 3, 3, 4, 7, 6}}},
      {.name = "min_by_hand",
       .in = {rows, updates, places},
       .op = {ScatterKind::Min},
       .out = {{-9, 2, 3, 4, 2, -8}}},
      {.name = "max_ties",
       .in = {T({2}).with({3, 1}), T({4}).with({3, 1, 3, 0}), integers({4}, {0, 1, 0, 1})},
       .op = {ScatterKind::Max},
       .out = {{3, 1}}},
      {.name = "max_nan_stays",
       .in = {T({2}).with({NaN, 1}), T({2}).with({3, NaN}), integers({2}, {0, 1})},
       .op = {ScatterKind::Max},
       .out = {{NaN, NaN}}},
      // [mul] factors of zero, one and two to a row
      {.name = "mul_zeros",
       .in = {T({3}).with({2, 0, 5}), T({6}).with({0, 3, 0, 0, 7, 1.5}),
              integers({6}, {0, 0, 2, 2, 2, 1})},
       .op = {ScatterKind::Mul},
       .out = {{0, 0, 0}}},
      {.name = "mul_wraps",
       .in = {T({1}).with({100}), T({2}).with({2, 2}), integers({2}, {0, 0})},
       .op = {ScatterKind::Mul},
       .dtypes = {DType::U8},
       .out = {{144}}},
      {.name = "set_flags",
       .in = {T({3}), T({2}), integers({2}, {1, 1})},
       .op = {ScatterKind::Set},
       .dtypes = {DType::Bool}},
      {.name = "float_indices",
       .in = {T({4, 2}), T({2, 2}), integers({2}, {3, 0}, DType::F32)},
       .op = {ScatterKind::Set}},
      {.name = "symbolic", .in = {T({n, 3}), T({4, 3}), Index({4}, 1)}, .op = {ScatterKind::Max}},
      {.name = "too_large",
       .in = {T({2}), T({1}), integers({1}, {2})},
       .op = {ScatterKind::Set},
       .fails = OutOfRange},
      {.name = "negative",
       .in = {T({2}), T({1}), integers({1}, {-1})},
       .op = {ScatterKind::Mul},
       .fails = OutOfRange},
      {.name = "no_rows_but_an_index",
       .in = {T({0, 2}), T({1, 2}), integers({1}, {0})},
       .op = {ScatterKind::Max},
       .fails = OutOfRange},
      {.name = "bool_indices",
       .in = {T({2}), T({1}), Fixed(DType::Bool, {1})},
       .op = {ScatterKind::Set},
       .rejects = "c1"},
      {.name = "complex_max",
       .in = {T({2}), T({1}), Index({1}, 2)},
       .op = {ScatterKind::Max},
       .dtypes = dtypes::complexes,
       .rejects = "c2"},
      {.name = "dtypes_differ",
       .in = {T({2}), Fixed(DType::I32, {1}), Index({1}, 2)},
       .op = {ScatterKind::Set},
       .rejects = "c2"},
      {.name = "scalar",
       .in = {T({}), T({1}), Index({1}, 2)},
       .op = {ScatterKind::Set},
       .rejects = "c3"},
      {.name = "shapes_clash",
       .in = {T({4, 2}), T({2, 3}), Index({2}, 4)},
       .op = {ScatterKind::Set},
       .rejects = "c4"},
  };
  for (const ScatterKind kind :
       {ScatterKind::Add, ScatterKind::Mul, ScatterKind::Max, ScatterKind::Min, ScatterKind::Set}) {
    const std::string name(name_of(kind));
    const bool ordered = kind == ScatterKind::Max || kind == ScatterKind::Min;
    const DTypeSet dtypes = kind == ScatterKind::Set ? dtypes::all : (ordered ? Ordered : Addable);
    list.push_back({.name = name + "_grid",
                    .in = {T({5, 3}), T({2, 4, 3}), Index({2, 4}, 5)},
                    .op = {kind},
                    .dtypes = dtypes});
    list.push_back(
        {.name = name + "_one_index", .in = {T({4, 3}), T({3}), Index({}, 4)}, .op = {kind}});
    list.push_back(
        {.name = name + "_nothing", .in = {T({4, 3}), T({0, 3}), Index({0}, 4)}, .op = {kind}});
    list.push_back(
        {.name = name + "_empty_rows", .in = {T({4, 0}), T({3, 0}), Index({3}, 4)}, .op = {kind}});
    list.push_back(
        {.name = name + "_long", .in = {T({3, 67}), T({9, 67}), Index({9}, 3)}, .op = {kind}});
    list.push_back({.name = name + "_rank_five",
                    .in = {T({3, 1, 2, 2}), T({2, 1, 1, 2, 2}), Index({2, 1}, 3)},
                    .op = {kind}});
  }
  return cases_of<op::Scatter>(std::move(list));
}

Cases cases(const op::TakeAlongAxis*) {
  const Dim n = Dim::symbol("n");
  return cases_of<op::TakeAlongAxis>({
      {.name = "rows",
       .in = {T({2, 3}).with({1, 2, 3, 4, 5, 6}), integers({2, 2}, {2, 0, 1, 1})},
       .op = {.axis = 1},
       .out = {{3, 1, 5, 5}}},
      {.name = "columns", .in = {T({4, 3}), Index({5, 3}, 4)}, .op = {0}, .dtypes = dtypes::all},
      {.name = "last_by_default", .in = {T({2, 5}), Index({2, 67}, 5, DType::U8)}},
      {.name = "middle", .in = {T({2, 4, 3}), Index({2, 2, 3}, 4)}, .op = {.axis = 1}},
      {.name = "float_indices",
       .in = {T({2, 3}), integers({2, 2}, {2, 2, 0, 1}, DType::F64)},
       .op = {.axis = 1}},
      {.name = "no_columns", .in = {T({4, 0}), Index({2, 0}, 4)}, .op = {.axis = 0}},
      {.name = "nothing", .in = {T({2, 5}), Index({2, 0}, 5)}},
      {.name = "rank_six",
       .in = {T({1, 2, 1, 3, 2, 2}), Index({1, 2, 1, 4, 2, 2}, 3)},
       .op = {.axis = 3}},
      {.name = "symbolic", .in = {T({n, 3}), Fixed(DType::I64, {n, 2})}},
      {.name = "too_large", .in = {T({3}), integers({1}, {3})}, .fails = OutOfRange},
      {.name = "empty_table", .in = {T({0}), integers({1}, {0})}, .fails = OutOfRange},
      {.name = "bool_indices", .in = {T({2}), Fixed(DType::Bool, {2})}, .rejects = "c1"},
      {.name = "no_broadcast", .in = {T({2, 3}), Index({1, 3}, 3)}, .rejects = "c2"},
      {.name = "ranks_differ", .in = {T({2, 3}), Index({3}, 3)}, .rejects = "c2"},
      {.name = "scalar", .in = {T({}), Index({}, 1)}, .rejects = "axis"},
  });
}

Cases cases(const op::ScatterAddAlongAxis*) {
  const Dim n = Dim::symbol("n");
  return cases_of<op::ScatterAddAlongAxis>({
      {.name = "rows",
       .in = {T({2, 3}).with({1, 2, 3, 4, 5, 6}), integers({2, 3}, {1, 0, 1, 0, 0, 0})},
       .op = {.axis = 1, .axis_size = 2},
       .out = {{2, 4, 15, 0}}},
      {.name = "columns",
       .in = {T({4, 3}), Index({4, 3}, 2)},
       .op = {.axis = 0, .axis_size = 2},
       .dtypes = Addable},
      {.name = "last_by_default", .in = {T({2, 67}), Index({2, 67}, 5)}, .op = {.axis_size = 5}},
      {.name = "middle",
       .in = {T({2, 4, 3}), Index({2, 4, 3}, 3)},
       .op = {.axis = 1, .axis_size = 3}},
      {.name = "float_indices",
       .in = {T({2, 2}), integers({2, 2}, {2, 2, 0, 1}, DType::F64)},
       .op = {.axis = 1, .axis_size = 3}},
      {.name = "nothing", .in = {T({2, 0}), Index({2, 0}, 5)}, .op = {.axis_size = 5}},
      {.name = "symbolic",
       .in = {T({n, 3}), Fixed(DType::I64, {n, 3})},
       .op = {.axis = 0, .axis_size = n}},
      {.name = "too_large",
       .in = {T({1}), integers({1}, {3})},
       .op = {.axis_size = 3},
       .fails = OutOfRange},
      {.name = "bool_indices",
       .in = {T({2}), Fixed(DType::Bool, {2})},
       .op = {.axis_size = 2},
       .rejects = "c1"},
      {.name = "bool_values",
       .in = {T({2}), Index({2}, 2)},
       .op = {.axis_size = 2},
       .dtypes = dtypes::booleans,
       .rejects = "c2"},
      {.name = "shapes_differ",
       .in = {T({2, 3}), Index({2, 2}, 2)},
       .op = {.axis_size = 2},
       .rejects = "c3"},
      {.name = "negative_size",
       .in = {T({2}), Index({2}, 2)},
       .op = {.axis_size = -1},
       .rejects = "c4"},
  });
}

Cases cases(const op::DynamicNarrow*) {
  const Dim n = Dim::symbol("n");
  const In five = T({5}).with({0, 1, 2, 3, 4});
  return cases_of<op::DynamicNarrow>({
      {.name = "inside",
       .in = {five, integers({}, {1})},
       .op = {.axis = 0, .len = 3},
       .out = {{1, 2, 3}}},
      {.name = "past_the_end",
       .in = {five, integers({}, {4})},
       .op = {.axis = 0, .len = 3},
       .out = {{2, 3, 4}}},
      {.name = "before_the_start",
       .in = {five, integers({}, {-7}, DType::I8)},
       .op = {.axis = 0, .len = 2},
       .out = {{0, 1}}},
      {.name = "float_start",
       .in = {five, integers({}, {2}, DType::F32)},
       .op = {.axis = 0, .len = 2},
       .out = {{2, 3}}},
      {.name = "inner_axis",
       .in = {T({2, 5, 3}), Index({}, 4, DType::I64)},
       .op = {.axis = -2, .len = 2},
       .dtypes = dtypes::all},
      {.name = "nothing", .in = {T({2, 0}), Index({}, 4)}, .op = {.axis = 1, .len = 0}},
      {.name = "nothing_of_some", .in = {T({2, 3}), Index({}, 4)}, .op = {.axis = 1, .len = 0}},
      // Starts on both sides of the axis, so that a batch of them has some to move.
      {.name = "anywhere",
       .in = {T({4, 3}), Fixed(DType::I32, {}).between(-6, 9)},
       .op = {.axis = 0, .len = 2}},
      {.name = "anywhere_inside",
       .in = {T({2, 7, 2}), Fixed(DType::I64, {}).between(-3, 9)},
       .op = {.axis = 1, .len = 3}},
      {.name = "double_start",
       .in = {T({2, 5}), integers({}, {9}, DType::F64)},
       .op = {.axis = 1, .len = 3}},
      {.name = "all", .in = {T({67}), Index({}, 4)}, .op = {.axis = 0, .len = 67}},
      {.name = "symbolic", .in = {T({n}), Index({}, 4)}, .op = {.axis = 0, .len = n - 1}},
      {.name = "fraction",
       .in = {five, integers({}, {0.5}, DType::F64)},
       .op = {.axis = 0, .len = 2},
       .fails = OutOfRange},
      {.name = "bool_start",
       .in = {five, Fixed(DType::Bool, {})},
       .op = {.axis = 0, .len = 2},
       .rejects = "c1"},
      {.name = "start_is_no_scalar",
       .in = {five, Index({1}, 2)},
       .op = {.axis = 0, .len = 2},
       .rejects = "c2"},
      {.name = "too_long",
       .in = {five, Index({}, 2)},
       .op = {.axis = 0, .len = 6},
       .rejects = "c3"},
      {.name = "negative_len",
       .in = {five, Index({}, 2)},
       .op = {.axis = 0, .len = -1},
       .rejects = "c3"},
  });
}

Cases cases(const op::DynamicUpdate*) {
  const Dim n = Dim::symbol("n");
  const In five = T({5}).with({0, 1, 2, 3, 4});
  const In two = T({2}).with({8, 9});
  return cases_of<op::DynamicUpdate>({
      {.name = "inside",
       .in = {five, two, integers({}, {1})},
       .op = {.axis = 0},
       .out = {{0, 8, 9, 3, 4}}},
      {.name = "past_the_end",
       .in = {five, two, integers({}, {4})},
       .op = {.axis = 0},
       .out = {{0, 1, 2, 8, 9}}},
      {.name = "before_the_start",
       .in = {five, two, integers({}, {-7})},
       .op = {.axis = 0},
       .out = {{8, 9, 2, 3, 4}}},
      {.name = "inner_axis",
       .in = {T({2, 5, 3}), T({2, 2, 3}), Index({}, 4, DType::U32)},
       .op = {.axis = -2},
       .dtypes = dtypes::all},
      {.name = "nothing", .in = {T({5}), T({0}), Index({}, 4)}, .op = {.axis = 0}},
      {.name = "anywhere",
       .in = {T({4, 3}), T({2, 3}), Fixed(DType::I32, {}).between(-6, 9)},
       .op = {.axis = 0}},
      {.name = "anywhere_inside",
       .in = {T({2, 7, 2}), T({2, 3, 2}), Fixed(DType::I64, {}).between(-3, 9)},
       .op = {.axis = 1}},
      {.name = "float_start",
       .in = {five, two, integers({}, {2}, DType::F32)},
       .op = {.axis = 0},
       .out = {{0, 1, 8, 9, 4}}},
      {.name = "double_start",
       .in = {T({2, 5}), T({2, 3}), integers({}, {-1}, DType::F64)},
       .op = {.axis = 1}},
      {.name = "fraction",
       .in = {five, two, integers({}, {0.5}, DType::F64)},
       .op = {.axis = 0},
       .fails = OutOfRange},
      {.name = "all", .in = {T({67}), T({67}), Index({}, 4)}, .op = {.axis = 0}},
      {.name = "symbolic", .in = {T({n, 3}), T({1, 3}), Index({}, 4)}, .op = {.axis = 0}},
      {.name = "bool_start",
       .in = {five, two, Fixed(DType::Bool, {})},
       .op = {.axis = 0},
       .rejects = "c1"},
      {.name = "start_is_no_scalar",
       .in = {five, two, Index({1}, 2)},
       .op = {.axis = 0},
       .rejects = "c2"},
      {.name = "dtypes_differ",
       .in = {five, Fixed(DType::I8, {2}), Index({}, 2)},
       .op = {.axis = 0},
       .rejects = "c3"},
      {.name = "too_long", .in = {two, five, Index({}, 2)}, .op = {.axis = 0}, .rejects = "c4"},
      {.name = "sizes_differ",
       .in = {T({4, 3}), T({1, 2}), Index({}, 2)},
       .op = {.axis = 0},
       .rejects = "c4"},
  });
}

}  // namespace ricci::testing
