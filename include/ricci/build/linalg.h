// Linear algebra from factorisations: what is as good written in other ops as it would be as one.
// Matrices may have any number of batch axes in front.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>

#include "ricci/build/build.h"

namespace ricci {

/// x with a x = b. b has a's rank and columns, [.., N, K], or one rank less, [.., N]; batch axes
/// broadcast, and systems with one matrix share its factorisation.
Value solve(Value a, Value b, std::source_location loc = std::source_location::current());
/// a⁻¹; a singular matrix is a fault of the run, as for dense_solve.
Value inv(Value a, std::source_location loc = std::source_location::current());

/// A matrix's permutation, unit lower and upper triangular factors: l u = a[permutation].
struct LuFactors {
  Value permutation;  ///< [.., M]
  Value l;            ///< [.., M, K]
  Value u;            ///< [.., K, N]
};
LuFactors lu_factors(Value a, std::source_location loc = std::source_location::current());

/// Factors whose q is square, [.., M, M], and whose r has all rows, [.., M, N]: those that `qr`
/// gives, and where a has more rows than columns unit vectors, made orthogonal to them: those of
/// the rows that elimination with pivoting leaves over. Derivatives exist where a's columns are
/// independent, and take the choice of these rows as constant.
/// Which of the two sizes is smaller must be known.
struct FullQr {
  Value q;
  Value r;
};
FullQr qr_full(Value a, std::source_location loc = std::source_location::current());

/// Singular values [.., K] and all singular vectors, u [.., M, M] and vh [.., N, N]: those of
/// `svd`, and columns of u or rows of vh that belong to no singular value, as `qr_full` gives them.
struct FullSvd {
  Value u;
  Value s;
  Value vh;
};
FullSvd svd_full(Value a, std::source_location loc = std::source_location::current());

/// det a = sign · e^log_abs, where the determinant itself would overflow. A singular matrix has
/// sign 0 and -inf.
struct SignAndLog {
  Value sign;     ///< of modulus 1, or 0
  Value log_abs;  ///< real
};
SignAndLog slogdet(Value a, std::source_location loc = std::source_location::current());

/// The shortest of the x that make |a x - b| least. Singular values up to rcond times the largest
/// count as 0; b as for `solve`.
Value lstsq(Value a, Value b, std::optional<Real> rcond = {},
            std::source_location loc = std::source_location::current());
/// x with a x = b from the factor `cholesky` gives.
Value cholesky_solve(Value l, Value b, std::source_location loc = std::source_location::current());

/// Eigenvalues and singular values without vectors.
Value eigvalsh(Value a, std::source_location loc = std::source_location::current());
Value svdvals(Value a, std::source_location loc = std::source_location::current());

/// How many singular values are more than rcond times the largest, as i32. Absent: max(M, N)·ε.
Value matrix_rank(Value a, std::optional<Real> rcond = {},
                  std::source_location loc = std::source_location::current());
/// a^n; of the inverse for a negative n.
Value matrix_power(Value a, std::int64_t n,
                   std::source_location loc = std::source_location::current());
/// Σ_i a[i, i]
Value trace(Value a, std::source_location loc = std::source_location::current());

enum class MatrixNorm : std::uint8_t {
  Frobenius,  ///< √ Σ |a_ij|²
  Nuclear,    ///< Σ s
  Spectral,   ///< max s
  One,        ///< max_j Σ_i |a_ij|
  Infinity,   ///< max_i Σ_j |a_ij|
};
/// A norm of each matrix; real.
Value matrix_norm(Value a, MatrixNorm norm = MatrixNorm::Frobenius,
                  std::source_location loc = std::source_location::current());

}  // namespace ricci
