// Factorisations of matrices and what is computed from them. Every op takes matrices behind any
// number of batch axes, each for itself. A matrix that holds a NaN or an infinity gives NaN in all
// of its results (and the identity as a permutation). Signs and phases that a factorisation leaves
// open are fixed here, so that every device gives the same factors.
#pragma once

#include <optional>

#include "ricci/op/fields.h"

namespace ricci::op {

/// The lower triangular factor of a positive definite matrix, with a positive diagonal. What is
/// factorised is the Hermitian part of a. A matrix that is not positive definite gives NaN.
///   l lᴴ = (a + aᴴ) / 2
struct Cholesky {
  static constexpr OpInfo info{
      .name = "cholesky",
      .operands = "a",
      .results = "l",
      .traits = Trait::Conjugates,
      .help = "the lower triangular factor of positive definite matrices",
      .formula = "a [.., N, N]: l lᴴ = (a + aᴴ)/2, l lower triangular with a positive diagonal",
      .constraints = "c1 shape: a is one square matrix or a batch of them\n"
                     "c2 dtype: a is floating or complex"};
  static void fields(auto&, auto&&) {}
  bool operator==(const Cholesky&) const = default;
};

/// Triangular factors by elimination with partial pivoting, packed in one array: u on and above the
/// diagonal, below it l, whose diagonal is 1. Step i exchanged rows i and pivots[i]; row i of the
/// product is row permutation[i] of a. Pivots are compared by |re| + |im|. A zero pivot stays in u.
///   l u = a[permutation]
struct Lu {
  static constexpr OpInfo info{
      .name = "lu",
      .operands = "a",
      .results = "lu, pivots, permutation",
      .help = "triangular factors with partial pivoting, packed in one array",
      .formula = "a [.., M, N], K = min(M, N): lu [.., M, N], pivots [.., K], permutation [.., M]: "
                 "l u = a[permutation], l = tril(lu, -1) + 1, u = triu(lu)",
      .constraints = "c1 shape: a is one matrix or a batch of them\n"
                     "c2 shape: which of a's last two sizes is smaller is known\n"
                     "c3 dtype: a is floating or complex",
      .keeps_residuals = true};
  static void fields(auto&, auto&&) {}
  bool operator==(const Lu&) const = default;
};

/// An orthonormal and an upper triangular factor. The diagonal of r is real and not negative, so
/// that both are unique where a has full rank.
///   q r = a
struct Qr {
  static constexpr OpInfo info{
      .name = "qr",
      .operands = "a",
      .results = "q, r",
      .traits = Trait::Conjugates,
      .help = "an orthonormal and an upper triangular factor",
      .formula = "a [.., M, N], K = min(M, N): q [.., M, K], r [.., K, N]: q r = a, qᴴ q = 1, "
                 "r upper triangular with a diagonal that is not negative",
      .constraints = "c1 shape: a is one matrix or a batch of them\n"
                     "c2 shape: which of a's last two sizes is smaller is known\n"
                     "c3 dtype: a is floating or complex",
      .keeps_residuals = true};
  static void fields(auto&, auto&&) {}
  bool operator==(const Qr&) const = default;
};

/// Eigenvalues, ascending, and eigenvectors (columns of v) of the Hermitian part of a. Of every
/// eigenvector the first component of more than 3/4 of the largest magnitude is real and positive.
/// Eigenvectors that belong to equal values are any orthonormal basis of their space. Derivatives
/// of v leave out pairs of values that differ by no more than rounding does (N·ε·max|w|): they are
/// finite, and right for what does not depend on that basis.
///   (a + aᴴ)/2 = v diag(w) vᴴ
struct Eigh {
  static constexpr OpInfo info{
      .name = "eigh",
      .operands = "a",
      .results = "w, v",
      .traits = Trait::Conjugates,
      .help = "eigenvalues and eigenvectors of Hermitian matrices",
      .formula = "a [.., N, N]: w [.., N] real and ascending, v [.., N, N]: "
                 "(a + aᴴ)/2 = v diag(w) vᴴ, vᴴ v = 1",
      .constraints = "c1 shape: a is one square matrix or a batch of them\n"
                     "c2 dtype: a is floating or complex",
      .keeps_residuals = true};
  static void fields(auto&, auto&&) {}
  bool operator==(const Eigh&) const = default;
};

/// Singular values, descending, and singular vectors (columns of u, rows of vh). Of every column of
/// u the first component of more than 3/4 of the largest magnitude is real and positive. Where
/// values repeat or vanish, as for eigh.
///   a = u diag(s) vh
struct Svd {
  static constexpr OpInfo info{
      .name = "svd",
      .operands = "a",
      .results = "u, s, vh",
      .traits = Trait::Conjugates,
      .help = "singular values and singular vectors",
      .formula = "a [.., M, N], K = min(M, N): u [.., M, K], s [.., K] real and descending, "
                 "vh [.., K, N]: a = u diag(s) vh, uᴴ u = 1, vh vhᴴ = 1",
      .constraints = "c1 shape: a is one matrix or a batch of them\n"
                     "c2 shape: which of a's last two sizes is smaller is known\n"
                     "c3 dtype: a is floating or complex",
      .keeps_residuals = true};
  static void fields(auto&, auto&&) {}
  bool operator==(const Svd&) const = default;
};

/// The matrix exponential. Its derivative is a block of the exponential of a matrix twice as large,
/// so that it has derivatives of any order.
///   out = Σ_k a^k / k!
struct MatrixExp {
  static constexpr OpInfo info{.name = "matrix_exp",
                               .operands = "a",
                               .results = "out",
                               .help = "the exponential of square matrices",
                               .formula = "a [.., N, N]: out = Σ_k a^k / k!",
                               .constraints =
                                   "c1 shape: a is one square matrix or a batch of them\n"
                                   "c2 dtype: a is floating or complex"};
  static void fields(auto&, auto&&) {}
  bool operator==(const MatrixExp&) const = default;
};

/// The transposed matrix of cofactors: the derivative of det, for singular matrices too. Its own
/// derivative divides by the determinant from a size of 4 on.
///   a out = out a = det(a) · 1
struct Adjugate {
  static constexpr OpInfo info{
      .name = "adjugate",
      .operands = "a",
      .results = "out",
      .help = "the transposed matrix of cofactors",
      .formula = "a [.., N, N]: out[i, j] = (-1)^(i+j) det(a without row j and column i)",
      .constraints = "c1 shape: a is one square matrix or a batch of them\n"
                     "c2 dtype: a is floating or complex"};
  static void fields(auto&, auto&&) {}
  bool operator==(const Adjugate&) const = default;
};

/// The determinant. Its derivative exists for singular matrices too.
struct Det {
  static constexpr OpInfo info{
      .name = "det",
      .operands = "a",
      .results = "out",
      .help = "the determinant of square matrices",
      .formula = "a [.., N, N]: out = ± Π_i u[i, i], with l u = a[permutation]",
      .constraints = "c1 shape: a is one square matrix or a batch of them\n"
                     "c2 dtype: a is floating or complex",
      .vjp = RuleSource::Written,
      .jvp = RuleSource::Written,
      .batch = RuleSource::Written};
  static void fields(auto&, auto&&) {}
  bool operator==(const Det&) const = default;
};

/// The pseudo-inverse: singular values up to rcond times the largest count as 0. Its derivative is
/// that among matrices of the same rank, and does not mind singular values that repeat.
///   out = vhᴴ diag(1/s or 0) uᴴ
struct Pinv {
  std::optional<Real> rcond = {};

  static constexpr OpInfo info{
      .name = "pinv",
      .operands = "a",
      .results = "out",
      .traits = Trait::Conjugates,
      .help = "the pseudo-inverse of matrices",
      .formula =
          "a [.., M, N] = u diag(s) vh: out [.., N, M] = vhᴴ diag(s > rcond·max s ? 1/s : 0) "
          "uᴴ",
      .constraints = "c1 shape: a is one matrix or a batch of them\n"
                     "c2 shape: which of a's last two sizes is smaller is known\n"
                     "c3 dtype: a is floating or complex\n"
                     "c4 attr: rcond is at least 0 and less than 1",
      .vjp = RuleSource::Written,
      .jvp = RuleSource::Written,
      .batch = RuleSource::Written};
  static void fields(auto& self, auto&& f) {
    f("rcond", self.rcond, "cut-off as a share of the largest; absent: 10·max(M, N)·ε");
  }
  bool operator==(const Pinv&) const = default;
};

}  // namespace ricci::op
