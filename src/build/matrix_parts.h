// Parts of matrices behind any number of batch axes, as builders and rules need them.
#pragma once

#include "ricci/build/build.h"

namespace ricci::matrix {

/// Which elements [i, j] of a matrix are kept.
enum class Part : std::uint8_t { Lower, StrictlyLower, Upper, Diagonal };

/// The matrix with 0 outside a part. Selected, not multiplied: what is left out may hold anything.
[[nodiscard]] Value part_of(Value a, Part part);
/// [n, n] with 1 on the diagonal.
[[nodiscard]] Value identity(Graph& graph, const Dim& n, DType dtype);
/// a [.., K, K] -> [.., K]
[[nodiscard]] Value diagonal_of(Value a);
/// d [.., K] -> [.., K, K]
[[nodiscard]] Value on_diagonal(Value d);
/// The last axis of d [.., K] becomes that of rows, [.., K, 1], or of columns, [.., 1, K].
[[nodiscard]] Value as_column(Value d);
[[nodiscard]] Value as_row(Value d);
/// aᴴ
[[nodiscard]] Value adjoint(Value a);
/// (a + aᴴ) / 2
[[nodiscard]] Value hermitian_part(Value a);
/// The first `count` rows or columns.
[[nodiscard]] Value first_rows(Value a, const Dim& count);
[[nodiscard]] Value first_columns(Value a, const Dim& count);
/// The determinant from the results of `lu`: the product of the diagonal, and a sign for every
/// exchange of rows.
[[nodiscard]] Value determinant_from(const std::array<Value, 3>& factors);
/// That sign alone: 1 or -1 in a dtype.
[[nodiscard]] Value sign_of_exchanges(Value pivots, DType dtype);
/// Axes -2 and -1 of a matrix, as its rank has them.
[[nodiscard]] Axis row_axis(Value a);
[[nodiscard]] Axis column_axis(Value a);
[[nodiscard]] Dim rows_of(Value a);
[[nodiscard]] Dim columns_of(Value a);

}  // namespace ricci::matrix
