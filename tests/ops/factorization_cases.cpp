#include "ops/cases.h"

namespace ricci::testing {
namespace {

// Well-conditioned, with values of its own: far from singular, and no two alike.
In Regular(Dims dims) { return T(std::move(dims)).between(-1, 1.25).plus_diagonal(2.5); }
// Positive definite up to a size of 6.
In Positive(Dims dims) { return T(std::move(dims)).between(-1, 1.25).plus_diagonal(7); }
In Small(Dims dims) { return T(std::move(dims)).between(-1.5, 1.5); }
In Random(Dims dims) { return T(std::move(dims)).between(-2, 2.5); }

const Dim Batch = Dim::symbol("b");
const Dim Other = Dim::symbol("m");

}  // namespace

Cases cases(const op::Cholesky*) {
  return cases_of<op::Cholesky>({
      {.name = "by_hand",
       .in = {T({2, 2}).with({4, 2, 2, 10})},
       .dtypes = Fields,
       .out = {{2, 0, 1, 3}}},
      {.name = "hermitian_part",
       .in = {T({2, 2}).with({4, 5, -1, 10})},
       .dtypes = Fields,
       .out = {{2, 0, 1, 3}}},
      {.name = "random", .in = {Positive({5, 5})}, .dtypes = Fields},
      {.name = "batched", .in = {Positive({2, 3, 3, 3})}, .dtypes = Fields},
      {.name = "one_by_one", .in = {T({1, 1}).between(1, 2)}, .dtypes = Fields},
      {.name = "empty", .in = {T({0, 0})}, .dtypes = Fields},
      {.name = "no_matrices", .in = {T({0, 2, 2})}, .dtypes = Fields},
      {.name = "not_positive",
       .in = {T({2, 2, 2}).with({1, 2, 2, 1, 4, 2, 2, 10})},
       .dtypes = Fields,
       .out = {{NaN, NaN, NaN, NaN, 2, 0, 1, 3}}},
      {.name = "zero_pivot", .in = {T({1, 1}).with({0})}, .out = {{NaN}}},
      {.name = "nan", .in = {T({2, 2}).with({1, 0, NaN, 1})}, .out = {{NaN, NaN, NaN, NaN}}},
      {.name = "infinite", .in = {T({1, 1}).with({Inf})}, .out = {{NaN}}},
      {.name = "symbolic", .in = {Random({Batch, Symbol, Symbol})}},
      {.name = "vector", .in = {T({3})}, .rejects = "c1"},
      {.name = "not_square", .in = {T({2, 3})}, .rejects = "c1"},
      {.name = "ints", .in = {T({2, 2})}, .dtypes = dtypes::ints, .rejects = "c2"},
  });
}

Cases cases(const op::Lu*) {
  return cases_of<op::Lu>({
      {.name = "by_hand",
       .in = {T({2, 2}).with({1, 2, 4, 4})},
       .dtypes = Fields,
       .out = {{4, 4, 0.25, 1}, {1, 1}, {1, 0}}},
      {.name = "three_rows",
       .in = {T({3, 3}).with({0, 1, 0, 0, 0, 1, 1, 0, 0})},
       .out = {{1, 0, 0, 0, 1, 0, 0, 0, 1}, {2, 2, 2}, {2, 0, 1}}},
      {.name = "random", .in = {Regular({5, 5})}, .dtypes = Fields},
      {.name = "tall", .in = {Random({5, 3})}, .dtypes = Fields},
      {.name = "wide", .in = {Random({2, 3, 5})}, .dtypes = Fields},
      {.name = "batched", .in = {Regular({2, 3, 3, 3})}, .dtypes = Fields},
      {.name = "factors_alone",
       .in = {Regular({3, 3})},
       .dtypes = Fields,
       .wanted = {true, false, false}},
      {.name = "permutation_alone", .in = {Random({3, 3})}, .wanted = {false, false, true}},
      {.name = "row", .in = {T({1, 3}).between(1, 2)}, .dtypes = Fields},
      {.name = "column", .in = {T({3, 1}).between(1, 2)}, .dtypes = Fields},
      {.name = "empty", .in = {T({0, 3})}, .dtypes = Fields},
      {.name = "no_columns", .in = {T({3, 0})}},
      {.name = "no_matrices", .in = {T({0, 2, 2})}},
      {.name = "infinite",
       .in = {T({2, 2}).with({1, 2, Inf, 4})},
       .out = {{NaN, NaN, NaN, NaN}, {0, 1}, {0, 1}}},
      {.name = "symbolic", .in = {Random({Batch, Symbol, Symbol})}},
      {.name = "scalar", .in = {T({})}, .rejects = "c1"},
      {.name = "sizes_unknown", .in = {T({Symbol, Other})}, .rejects = "c2"},
      {.name = "ints", .in = {T({2, 2})}, .dtypes = dtypes::ints, .rejects = "c3"},
  });
}

Cases cases(const op::Qr*) {
  return cases_of<op::Qr>({
      {.name = "by_hand",
       .in = {T({2, 2}).with({3, 5, -4, 0})},
       .dtypes = Fields,
       .out = {{0.6, 0.8, -0.8, 0.6}, {5, 3, 0, 4}}},
      {.name = "random", .in = {Regular({4, 4})}, .dtypes = Fields},
      {.name = "tall", .in = {Random({5, 3})}, .dtypes = Fields},
      {.name = "wide", .in = {Regular({3, 5})}, .dtypes = Fields},
      {.name = "batched", .in = {Regular({2, 2, 3, 3})}, .dtypes = Fields},
      {.name = "r_alone", .in = {Random({4, 3})}, .dtypes = Fields, .wanted = {false, true}},
      {.name = "q_alone", .in = {Regular({3, 3})}, .dtypes = Fields, .wanted = {true, false}},
      {.name = "wide_r_alone", .in = {Regular({2, 4})}, .dtypes = Fields, .wanted = {false, true}},
      {.name = "row", .in = {T({1, 3}).between(1, 2)}, .dtypes = Fields},
      {.name = "column", .in = {T({3, 1}).between(-2, -1)}, .dtypes = Fields},
      {.name = "empty", .in = {T({0, 3})}, .dtypes = Fields},
      {.name = "no_columns", .in = {T({3, 0})}},
      {.name = "no_matrices", .in = {T({0, 2, 3})}},
      {.name = "nan", .in = {T({2, 1}).with({1, NaN})}, .out = {{NaN, NaN}, {NaN}}},
      {.name = "symbolic", .in = {Random({Batch, Symbol, Symbol})}},
      {.name = "vector", .in = {T({3})}, .rejects = "c1"},
      {.name = "sizes_unknown", .in = {T({Symbol, 3})}, .rejects = "c2"},
      {.name = "ints", .in = {T({2, 2})}, .dtypes = dtypes::ints, .rejects = "c3"},
  });
}

Cases cases(const op::Eigh*) {
  return cases_of<op::Eigh>({
      {.name = "by_hand",
       .in = {T({2, 2}).with({6, 2, 2, 3})},
       .dtypes = Fields,
       .out = {{2, 7},
               {-0.4472135954999579, 0.8944271909999159, 0.8944271909999159, 0.4472135954999579}}},
      {.name = "hermitian_part",
       .in = {T({2, 2}).with({6, 4, 0, 3})},
       .out = {{2, 7},
               {-0.4472135954999579, 0.8944271909999159, 0.8944271909999159, 0.4472135954999579}}},
      {.name = "diagonal",
       .in = {T({3, 3}).with({3, 0, 0, 0, -1, 0, 0, 0, 2})},
       .out = {{-1, 2, 3}, {0, 0, 1, 1, 0, 0, 0, 1, 0}}},
      {.name = "random", .in = {Random({4, 4})}, .dtypes = Fields},
      {.name = "batched", .in = {Random({2, 2, 3, 3})}, .dtypes = Fields},
      {.name = "values_alone", .in = {Random({4, 4})}, .dtypes = Fields, .wanted = {true, false}},
      {.name = "vectors_alone", .in = {Random({3, 3})}, .dtypes = Fields, .wanted = {false, true}},
      {.name = "one_by_one", .in = {T({1, 1})}, .dtypes = Fields},
      {.name = "empty", .in = {T({0, 0})}, .dtypes = Fields},
      {.name = "no_matrices", .in = {T({0, 2, 2})}},
      {.name = "nan",
       .in = {T({1, 2, 2}).with({1, NaN, 0, 1})},
       .out = {{NaN, NaN}, {NaN, NaN, NaN, NaN}}},
      {.name = "symbolic", .in = {Random({Batch, Symbol, Symbol})}},
      {.name = "vector", .in = {T({3})}, .rejects = "c1"},
      {.name = "not_square", .in = {T({3, 2})}, .rejects = "c1"},
      {.name = "ints", .in = {T({2, 2})}, .dtypes = dtypes::ints, .rejects = "c2"},
  });
}

Cases cases(const op::Svd*) {
  return cases_of<op::Svd>({
      {.name = "by_hand",
       .in = {T({2, 2}).with({0, -2, 3, 0})},
       .dtypes = Fields,
       .out = {{0, 1, 1, 0}, {3, 2}, {1, 0, 0, -1}}},
      {.name = "random", .in = {Random({3, 3})}, .dtypes = Fields},
      {.name = "tall", .in = {Random({5, 3})}, .dtypes = Fields},
      {.name = "wide", .in = {Random({2, 4})}, .dtypes = Fields},
      {.name = "batched", .in = {Random({2, 2, 3, 2})}, .dtypes = Fields},
      {.name = "values_alone",
       .in = {Random({4, 3})},
       .dtypes = Fields,
       .wanted = {false, true, false}},
      {.name = "left_alone",
       .in = {Random({3, 2})},
       .dtypes = Fields,
       .wanted = {true, false, false}},
      {.name = "right_alone",
       .in = {Random({3, 4})},
       .dtypes = Fields,
       .wanted = {false, false, true}},
      {.name = "row", .in = {T({1, 3}).between(1, 2)}, .dtypes = Fields},
      {.name = "column", .in = {T({3, 1}).between(1, 2)}, .dtypes = Fields},
      {.name = "empty", .in = {T({0, 3})}, .dtypes = Fields},
      {.name = "no_columns", .in = {T({3, 0})}},
      {.name = "no_matrices", .in = {T({0, 2, 2})}},
      {.name = "infinite", .in = {T({1, 2}).with({1, -Inf})}, .out = {{NaN}, {NaN}, {NaN, NaN}}},
      {.name = "symbolic", .in = {Random({Batch, Symbol, Symbol})}},
      {.name = "vector", .in = {T({3})}, .rejects = "c1"},
      {.name = "sizes_unknown", .in = {T({Symbol, Other})}, .rejects = "c2"},
      {.name = "ints", .in = {T({2, 2})}, .dtypes = dtypes::ints, .rejects = "c3"},
  });
}

Cases cases(const op::MatrixExp*) {
  constexpr double E = 2.718281828459045;
  return cases_of<op::MatrixExp>({
      {.name = "diagonal",
       .in = {T({2, 2}).with({1, 0, 0, -1})},
       .dtypes = Fields,
       .out = {{E, 0, 0, 1 / E}}},
      {.name = "nilpotent",
       .in = {T({3, 3}).with({0, 1, 2, 0, 0, 4, 0, 0, 0})},
       .out = {{1, 1, 4, 0, 1, 4, 0, 0, 1}}},
      {.name = "random", .in = {Small({4, 4})}, .dtypes = Fields},
      {.name = "batched", .in = {Small({2, 2, 3, 3})}, .dtypes = Fields},
      {.name = "large", .in = {T({3, 3}).between(-9, 9)}, .dtypes = Fields},
      {.name = "one_by_one", .in = {Small({1, 1})}, .dtypes = Fields},
      {.name = "zero", .in = {T({2, 2}).with({0, 0, 0, 0})}, .out = {{1, 0, 0, 1}}},
      {.name = "empty", .in = {T({0, 0})}, .dtypes = Fields},
      {.name = "no_matrices", .in = {T({0, 2, 2})}},
      {.name = "nan", .in = {T({2, 2}).with({0, NaN, 0, 0})}, .out = {{NaN, NaN, NaN, NaN}}},
      {.name = "symbolic", .in = {Random({Batch, Symbol, Symbol})}},
      {.name = "vector", .in = {T({3})}, .rejects = "c1"},
      {.name = "not_square", .in = {T({3, 2})}, .rejects = "c1"},
      {.name = "ints", .in = {T({2, 2})}, .dtypes = dtypes::ints, .rejects = "c2"},
  });
}

Cases cases(const op::Adjugate*) {
  return cases_of<op::Adjugate>({
      {.name = "by_hand",
       .in = {T({2, 2}).with({1, 2, 3, 5})},
       .dtypes = Fields,
       .out = {{5, -2, -3, 1}}},
      {.name = "random", .in = {Regular({4, 4})}, .dtypes = Fields},
      {.name = "batched", .in = {Regular({2, 2, 3, 3})}, .dtypes = Fields},
      {.name = "one_by_one", .in = {T({1, 1}).between(1, 2)}, .dtypes = Fields, .out = {{1}}},
      {.name = "empty", .in = {T({0, 0})}, .dtypes = Fields},
      {.name = "no_matrices", .in = {T({0, 2, 2})}},
      {.name = "nan", .in = {T({2, 2}).with({0, NaN, 0, 0})}, .out = {{NaN, NaN, NaN, NaN}}},
      {.name = "symbolic", .in = {Random({Batch, Symbol, Symbol})}},
      {.name = "vector", .in = {T({3})}, .rejects = "c1"},
      {.name = "not_square", .in = {T({3, 2})}, .rejects = "c1"},
      {.name = "ints", .in = {T({2, 2})}, .dtypes = dtypes::ints, .rejects = "c2"},
  });
}

Cases cases(const op::Det*) {
  return cases_of<op::Det>({
      {.name = "by_hand", .in = {T({2, 2}).with({1, 2, 3, 5})}, .dtypes = Fields, .out = {{-1}}},
      {.name = "random", .in = {Regular({4, 4})}, .dtypes = Fields},
      {.name = "batched", .in = {Regular({2, 2, 3, 3})}, .dtypes = Fields},
      {.name = "one_by_one", .in = {T({1, 1}).between(1, 2)}, .dtypes = Fields},
      {.name = "rank_two",
       .in = {T({3, 3}).with({1, 2, 3, 2, 4, 6, 1, 0, 1})},
       .dtypes = Fields,
       .out = {{0}}},
      {.name = "rank_one", .in = {T({3, 3}).with({1, 2, 3, 2, 4, 6, 3, 6, 9})}, .out = {{0}}},
      {.name = "zeros", .in = {T({2, 2}).with({0, 0, 0, 0})}, .dtypes = Fields, .out = {{0}}},
      {.name = "empty", .in = {T({0, 0})}, .dtypes = Fields, .out = {{1}}},
      {.name = "no_matrices", .in = {T({0, 2, 2})}},
      {.name = "nan", .in = {T({2, 2}).with({0, NaN, 0, 0})}, .out = {{NaN}}},
      {.name = "symbolic", .in = {Random({Batch, Symbol, Symbol})}},
      {.name = "vector", .in = {T({3})}, .rejects = "c1"},
      {.name = "not_square", .in = {T({3, 2})}, .rejects = "c1"},
      {.name = "ints", .in = {T({2, 2})}, .dtypes = dtypes::ints, .rejects = "c2"},
  });
}

Cases cases(const op::Pinv*) {
  return cases_of<op::Pinv>({
      {.name = "by_hand", .in = {T({2, 1}).with({3, 4})}, .dtypes = Fields, .out = {{0.12, 0.16}}},
      {.name = "square", .in = {Regular({3, 3})}, .dtypes = Fields},
      {.name = "tall", .in = {Random({4, 2})}, .dtypes = Fields},
      {.name = "wide", .in = {Random({2, 2, 3})}, .dtypes = Fields},
      {.name = "repeated_values",
       .in = {T({2, 2}).with({0, -2, 2, 0})},
       .dtypes = Fields,
       .out = {{0, 0.5, -0.5, 0}}},
      {.name = "cut_off",
       .in = {T({2, 2}).with({4, 0, 0, 1})},
       .op = {.rcond = 0.5},
       .dtypes = {DType::F32},
       .out = {{0.25, 0, 0, 0}}},
      {.name = "empty", .in = {T({0, 3})}, .dtypes = Fields},
      {.name = "no_columns", .in = {T({3, 0})}},
      {.name = "no_matrices", .in = {T({0, 2, 2})}},
      {.name = "infinite", .in = {T({1, 1}).with({Inf})}, .out = {{NaN}}},
      {.name = "symbolic", .in = {Random({Batch, Symbol, Symbol})}},
      {.name = "vector", .in = {T({3})}, .rejects = "c1"},
      {.name = "sizes_unknown", .in = {T({Symbol, Other})}, .rejects = "c2"},
      {.name = "ints", .in = {T({2, 2})}, .dtypes = dtypes::ints, .rejects = "c3"},
      {.name = "negative_cut_off", .in = {T({2, 2})}, .op = {.rcond = -0.5}, .rejects = "c4"},
  });
}

}  // namespace ricci::testing
