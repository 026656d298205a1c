#include <limits>

#include "ops/cases.h"

namespace ricci::testing {
namespace {

constexpr DTypeSet Numbers = dtypes::floats | dtypes::ints | dtypes::complexes;
constexpr DTypeSet Fields = dtypes::floats | dtypes::complexes;

}  // namespace

Cases cases(const op::Matmul*) {
  return cases_of<op::Matmul>({
      {.name = "by_hand",
       .in = {T({2, 2}).with({1, 2, 3, 4}), T({2, 1}).with({5, 6})},
       .dtypes = Numbers,
       .out = {{17, 39}}},
      {.name = "plain", .in = {T({3, 4}), T({4, 5})}, .dtypes = Numbers},  // [LA-02]
      {.name = "batched", .in = {T({2, 3, 4}), T({2, 4, 5})}},
      {.name = "shared_right", .in = {T({2, 3, 4}), T({4, 5})}},
      {.name = "shared_left", .in = {T({3, 4}), T({2, 4, 5})}},
      {.name = "broadcast", .in = {T({2, 1, 3, 4}), T({5, 4, 2})}},
      {.name = "shared_by_size_one", .in = {T({3, 2, 4}), T({1, 4, 5})}},  // [LA-01]
      {.name = "long", .in = {T({2, 67}), T({67, 3})}},
      {.name = "symbolic",
       .in = {T({Dim::symbol("b"), 3, Dim::symbol("k")}), T({Dim::symbol("k"), 2})}},
      {.name = "empty_inner", .in = {T({2, 0}), T({0, 3})}, .out = {{0, 0, 0, 0, 0, 0}}},
      {.name = "empty_outer", .in = {T({0, 3}), T({3, 2})}},
      {.name = "vector", .in = {T({3}), T({3, 2})}, .rejects = "c1"},
      {.name = "inner_differs", .in = {T({2, 3}), T({4, 2})}, .rejects = "c2"},
      {.name = "batch_differs", .in = {T({2, 2, 3}), T({3, 3, 2})}, .rejects = "c3"},
      {.name = "bools", .in = {T({2, 2}), T({2, 2})}, .dtypes = dtypes::booleans, .rejects = "c4"},
  });
}

Cases cases(const op::DotGeneral*) {
  const Dim n = Dim::symbol("n");
  return cases_of<op::DotGeneral>({
      {.name = "by_hand",
       .in = {T({2, 3}).with({1, 2, 3, 4, 5, 6}), T({2, 2}).with({1, 2, 3, 4})},
       .op = {.lhs_contracting = {0}, .rhs_contracting = {1}},
       .dtypes = Numbers,
       .out = {{9, 19, 12, 26, 15, 33}}},
      {.name = "as_matmul",
       .in = {T({3, 4}), T({4, 5})},
       .op = {.lhs_contracting = {1}, .rhs_contracting = {0}},
       .dtypes = Numbers},
      {.name = "rank_three_left",  // [LA-04]
       .in = {T({2, 3, 4}), T({3, 5})},
       .op = {.lhs_contracting = {1}, .rhs_contracting = {0}}},
      {.name = "outer", .in = {T({3}), T({2, 2})}, .dtypes = Numbers},
      {.name = "inner",
       .in = {T({67}), T({67})},
       .op = {.lhs_contracting = {0}, .rhs_contracting = {0}}},
      {.name = "scalars", .in = {T({}).with({3}), T({}).with({-2})}, .out = {{-6}}},
      {.name = "crossed_pairs",
       .in = {T({2, 3, 4}), T({3, 5, 2})},
       .op = {.lhs_contracting = {0, 1}, .rhs_contracting = {2, 0}}},
      {.name = "two_batch_two_contracting",
       .in = {T({3, 2, 4, 5, 2}), T({2, 5, 6, 3, 4})},
       .op = {.lhs_contracting = {3, 2},
              .rhs_contracting = {1, 4},
              .lhs_batch = {4, 0},
              .rhs_batch = {0, 3}},
       .dtypes = Fields},
      {.name = "three_crossed_contracting",
       .in = {T({2, 3, 1, 2, 4}), T({4, 3, 2, 2})},
       .op = {.lhs_contracting = {4, 0, 1}, .rhs_contracting = {0, 3, 1}},
       .dtypes = Fields},
      {.name = "nothing_contracted",
       .in = {T({2, 3, 1}), T({3, 4, 2})},
       .op = {.lhs_batch = {0, 1}, .rhs_batch = {2, 0}},
       .dtypes = Fields},
      {.name = "nothing_free",
       .in = {T({2, 3}), T({3, 2})},
       .op = {.lhs_contracting = {0}, .rhs_contracting = {1}, .lhs_batch = {1}, .rhs_batch = {0}},
       .dtypes = Fields},
      {.name = "batch_out_of_order",
       .in = {T({2, 3, 4}), T({3, 4, 2})},
       .op = {.lhs_contracting = {2},
              .rhs_contracting = {1},
              .lhs_batch = {1, 0},
              .rhs_batch = {0, 2}}},
      {.name = "negative_axes",
       .in = {T({2, 3, 4}), T({4, 2})},
       .op = {.lhs_contracting = {-1},
              .rhs_contracting = {-2},
              .lhs_batch = {-3},
              .rhs_batch = {-1}}},
      {.name = "empty_contracting",
       .in = {T({2, 0}), T({3, 0})},
       .op = {.lhs_contracting = {1}, .rhs_contracting = {1}},
       .out = {{0, 0, 0, 0, 0, 0}}},
      {.name = "empty_batch",
       .in = {T({0, 3}), T({0, 3})},
       .op = {.lhs_contracting = {1}, .rhs_contracting = {1}, .lhs_batch = {0}, .rhs_batch = {0}}},
      {.name = "rank_six",
       .in = {T({1, 2, 1, 3, 2, 2}), T({2, 3})},
       .op = {.lhs_contracting = {3}, .rhs_contracting = {1}, .lhs_batch = {4}, .rhs_batch = {0}}},
      {.name = "symbolic",
       .in = {T({n, 3, 4}), T({n, 4})},
       .op = {.lhs_contracting = {2}, .rhs_contracting = {1}, .lhs_batch = {0}, .rhs_batch = {0}}},
      {.name = "unpaired_contracting",
       .in = {T({2, 3}), T({3, 2})},
       .op = {.lhs_contracting = {1}},
       .rejects = "c1"},
      {.name = "unpaired_batch",
       .in = {T({2, 3}), T({3, 2})},
       .op = {.rhs_batch = {1}},
       .rejects = "c1"},
      {.name = "axis_twice",
       .in = {T({3, 3}), T({3, 3})},
       .op = {.lhs_contracting = {1, -1}, .rhs_contracting = {0, 1}},
       .rejects = "c2"},
      {.name = "batch_and_contracting",
       .in = {T({3, 3}), T({3, 3})},
       .op = {.lhs_contracting = {1}, .rhs_contracting = {0}, .lhs_batch = {0}, .rhs_batch = {0}},
       .rejects = "c2"},
      {.name = "sizes_differ",
       .in = {T({2, 3}), T({4, 2})},
       .op = {.lhs_contracting = {1}, .rhs_contracting = {0}},
       .rejects = "c3"},
      {.name = "batch_sizes_differ",
       .in = {T({2, 3}), T({3, 3})},
       .op = {.lhs_batch = {0}, .rhs_batch = {0}},
       .rejects = "c3"},
      {.name = "axis_outside_rhs",
       .in = {T({2, 3, 4}), T({4, 2})},
       .op = {.lhs_contracting = {2}, .rhs_contracting = {2}},
       .rejects = "axis"},
      {.name = "bools", .in = {T({2}), T({2})}, .dtypes = dtypes::booleans, .rejects = "c4"},
      {.name = "dtypes_differ",
       .in = {Fixed(DType::F32, {2}), Fixed(DType::F64, {2})},
       .rejects = "c4"},
  });
}

namespace {

// Random numbers, so that it can be inverted; a range of its own, so that it is never just any
// value.
In Matrix(Dims dims) { return T(std::move(dims)).between(-2, 2.5); }

}  // namespace

Cases cases(const op::DenseSolve*) {
  const Dim n = Dim::symbol("n");
  return cases_of<op::DenseSolve>({
      {.name = "by_hand",
       .in = {T({2, 2}).with({2, 1, 1, 3}), T({2}).with({4, 7})},
       .dtypes = Fields,
       .out = {{1, 2}}},
      {.name = "needs_a_pivot",
       .in = {T({2, 2}).with({0, 2, 4, 0}), T({2, 2}).with({2, 4, 8, -4})},
       .dtypes = Fields,
       .out = {{2, -1, 1, 2}}},
      {.name = "columns", .in = {Matrix({5, 5}), T({5, 3})}, .dtypes = Fields},
      {.name = "vector", .in = {Matrix({3, 3}), T({3})}, .dtypes = Fields},
      {.name = "one_column", .in = {Matrix({3, 3}), T({3, 1})}, .dtypes = Fields},
      {.name = "square_right_side", .in = {Matrix({3, 3}), T({3, 3})}, .dtypes = Fields},
      {.name = "one", .in = {T({1, 1}).with({4}), T({1}).with({2})}, .out = {{0.5}}},
      {.name = "empty", .in = {T({0, 0}), T({0})}, .dtypes = Fields},
      {.name = "no_columns", .in = {Matrix({2, 2}), T({2, 0})}},
      {.name = "symbolic", .in = {T({n, n}), T({n, Dim::symbol("k")})}},
      {.name = "singular",  // [LA-05]
       .in = {T({2, 2}).with({1, 2, 2, 4}), T({2})},
       .dtypes = Fields,
       .fails = ErrorCode::SingularMatrix},
      {.name = "zero", .in = {T({1, 1}).with({0}), T({1, 2})}, .fails = ErrorCode::SingularMatrix},
      {.name = "not_square", .in = {T({2, 3}), T({2})}, .rejects = "c1"},
      {.name = "not_a_matrix", .in = {T({2}), T({2})}, .rejects = "c1"},
      {.name = "symbolic_not_square", .in = {T({n, 3}), T({n})}, .rejects = "c1"},
      {.name = "rows_differ", .in = {T({2, 2}), T({3})}, .rejects = "c2"},
      {.name = "scalar_right_side", .in = {T({2, 2}), T({})}, .rejects = "c2"},
      {.name = "ints", .in = {T({2, 2}), T({2})}, .dtypes = dtypes::ints, .rejects = "c3"},
  });
}

Cases cases(const op::BatchedDenseSolve*) {
  const Dim n = Dim::symbol("n");
  return cases_of<op::BatchedDenseSolve>({
      {.name = "by_hand",
       .in = {T({2, 2, 2}).with({2, 1, 1, 3, 0, 1, 1, 0}), T({2, 2}).with({4, 7, 5, 6})},
       .dtypes = Fields,
       .out = {{1, 2, 6, 5}}},
      {.name = "columns", .in = {Matrix({3, 4, 4}), T({3, 4, 2})}, .dtypes = Fields},
      {.name = "vectors", .in = {Matrix({2, 3, 3}), T({2, 3})}, .dtypes = Fields},
      {.name = "one_row", .in = {T({2, 1, 1}).between(1, 2), T({2, 1, 3})}},
      {.name = "as_many_systems_as_rows", .in = {Matrix({3, 3, 3}), T({3, 3})}},
      {.name = "no_systems", .in = {Matrix({0, 3, 3}), T({0, 3})}},
      {.name = "empty", .in = {Matrix({2, 0, 0}), T({2, 0, 3})}},
      {.name = "symbolic", .in = {T({Dim::symbol("b"), n, n}), T({Dim::symbol("b"), n})}},
      {.name = "second_is_singular",
       .in = {T({2, 2, 2}).with({2, 1, 1, 3, 1, 1, 1, 1}), T({2, 2})},
       .dtypes = Fields,
       .fails = ErrorCode::SingularMatrix},
      {.name = "not_batched", .in = {T({2, 2}), T({2})}, .rejects = "c1"},
      {.name = "not_square", .in = {T({4, 2, 3}), T({4, 2})}, .rejects = "c1"},
      {.name = "batch_differs", .in = {T({2, 3, 3}), T({1, 3})}, .rejects = "c2"},
      {.name = "shared_vector", .in = {T({2, 3, 3}), T({3})}, .rejects = "c2"},
      {.name = "bools",
       .in = {T({1, 2, 2}), T({1, 2})},
       .dtypes = dtypes::booleans | dtypes::ints,
       .rejects = "c3"},
  });
}

Cases cases(const op::TriangularSolve*) {
  const Dim n = Dim::symbol("n");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return cases_of<op::TriangularSolve>({
      {.name = "lower",
       .in = {T({2, 2}).with({2, nan, 1, 4}), T({2, 1}).with({2, 9})},
       .dtypes = dtypes::floats,
       .out = {{1, 2}}},
      {.name = "upper",
       .in = {T({2, 2}).with({2, 1, nan, 4}), T({2, 1}).with({4, 8})},
       .op = {.lower = false},
       .out = {{1, 2}}},
      {.name = "lower_transposed",
       .in = {T({2, 2}).with({2, nan, 1, 4}), T({2, 1}).with({4, 8})},
       .op = {.transpose = true},
       .out = {{1, 2}}},
      {.name = "upper_transposed",
       .in = {T({2, 2}).with({2, 1, nan, 4}), T({2, 1}).with({2, 9})},
       .op = {.lower = false, .transpose = true},
       .out = {{1, 2}}},
      {.name = "unit",
       .in = {T({2, 2}).with({0, 5, 3, nan}), T({2, 2}).with({1, 2, 3, 4})},
       .op = {.unit = true},
       .out = {{1, 2, 0, -2}}},
      {.name = "unit_upper",
       .in = {T({3, 3}), T({3, 2})},
       .op = {.lower = false, .unit = true},
       .dtypes = Fields},
      {.name = "unit_lower_transposed",
       .in = {T({2, 3, 3}), T({2, 3, 1})},
       .op = {.transpose = true, .unit = true},
       .dtypes = Fields},
      {.name = "one_by_one", .in = {T({1, 1}).between(1, 2), T({1, 2})}},
      {.name = "unit_one_by_one", .in = {T({1, 1}), T({1, 2})}, .op = {.unit = true}},
      {.name = "batched", .in = {T({2, 3, 4, 4}), T({2, 3, 4, 2})}, .dtypes = Fields},
      {.name = "batched_upper_transposed",
       .in = {T({3, 3, 3}), T({3, 3, 3})},
       .op = {.lower = false, .transpose = true},
       .dtypes = Fields},
      {.name = "empty", .in = {T({0, 0}), T({0, 2})}},
      {.name = "no_systems", .in = {T({0, 2, 2}), T({0, 2, 1})}},
      {.name = "symbolic", .in = {T({Dim::symbol("b"), n, n}), T({Dim::symbol("b"), n, 3})}},
      {.name = "zero_on_the_diagonal",
       .in = {T({2, 2}).with({1, 0, 3, 0}), T({2, 1})},
       .dtypes = Fields,
       .fails = ErrorCode::SingularMatrix},
      {.name = "not_a_matrix", .in = {T({3}), T({3})}, .rejects = "c1"},
      {.name = "not_square", .in = {T({2, 3}), T({2, 1})}, .rejects = "c1"},
      {.name = "vector", .in = {T({2, 2}), T({2})}, .rejects = "c2"},
      {.name = "leading_differs", .in = {T({2, 3, 3}), T({1, 3, 2})}, .rejects = "c2"},
      {.name = "ints", .in = {T({2, 2}), T({2, 1})}, .dtypes = dtypes::ints, .rejects = "c3"},
  });
}

Cases cases(const op::LoraMatmul*) {
  return cases_of<op::LoraMatmul>({
      {.name = "by_hand",
       .in = {T({1, 2}).with({1, 2}), T({2, 2}).with({1, 0, 0, 1}), T({2, 1}).with({1, 1}),
              T({1, 2}).with({1, -1})},
       .op = {.scale = 0.5},
       .out = {{2.5, 0.5}}},
      {.name = "plain", .in = {T({3, 4}), T({4, 5}), T({4, 2}), T({2, 5})}, .op = {.scale = 2.0}},
      {.name = "leading_axes",  // [lora-quant-base]
       .in = {T({2, 3, 4}), T({4, 5}), T({4, 2}), T({2, 5})},
       .op = {.scale = -0.25}},
      {.name = "vector", .in = {T({4}), T({4, 3}), T({4, 1}), T({1, 3})}, .op = {.scale = 1.5}},
      {.name = "rank_zero_correction",
       .in = {T({2, 3}), T({3, 2}), T({3, 0}), T({0, 2})},
       .op = {.scale = 1.0}},
      {.name = "empty_inner",
       .in = {T({2, 0}), T({0, 2}), T({0, 1}), T({1, 2})},
       .op = {.scale = 1.0},
       .out = {{0, 0, 0, 0}}},
      {.name = "symbolic",
       .in = {T({Dim::symbol("m"), 4}), T({4, 5}), T({4, 2}), T({2, 5})},
       .op = {.scale = 0.5}},
      {.name = "scalar", .in = {T({}), T({1, 1}), T({1, 1}), T({1, 1})}, .rejects = "c1"},
      {.name = "vector_weight", .in = {T({2, 3}), T({3}), T({3, 1}), T({1, 3})}, .rejects = "c1"},
      {.name = "adapter_rank_differs",
       .in = {T({2, 3}), T({3, 4}), T({3, 1}), T({2, 4})},
       .rejects = "c2"},
      {.name = "inner_differs",
       .in = {T({2, 3}), T({4, 4}), T({3, 1}), T({1, 4})},
       .rejects = "c2"},
      {.name = "ints",
       .in = {T({2, 2}), T({2, 2}), T({2, 1}), T({1, 2})},
       .dtypes = dtypes::ints,
       .rejects = "c3"},
  });
}

}  // namespace ricci::testing
