// Cholesky's factor, elimination and orthonormal factors, slow and obvious.
#include "ricci/op/factorization.h"

#include <numeric>

#include "rule/matrices.h"
#include "rule/tables/eval_rules.h"

namespace ricci::rule {
namespace {

// l_jj = √(a_jj - Σ_k |l_jk|²);  l_ij = (a_ij - Σ_k l_ik l̄_jk) / l_jj. False when a pivot is not
// positive.
template <class N>
bool cholesky_of(const OwnedMatrix<N>& a, OwnedMatrix<N>& l) {
  for (std::int64_t j = 0; j < a.rows(); ++j) {
    double pivot = std::real(a(j, j));
    for (std::int64_t k = 0; k < j; ++k) pivot -= std::norm(l(j, k));
    if (!(pivot > 0) || !std::isfinite(pivot)) return false;
    l(j, j) = std::sqrt(pivot);
    for (std::int64_t i = j + 1; i < a.rows(); ++i) {
      N sum = a(i, j);
      for (std::int64_t k = 0; k < j; ++k) sum -= l(i, k) * conjugated(l(j, k));
      l(i, j) = sum / l(j, j);
    }
  }
  return true;
}

// Pivots are compared as LAPACK compares them.
double size_of_pivot(double x) { return std::abs(x); }
double size_of_pivot(std::complex<double> x) { return std::abs(x.real()) + std::abs(x.imag()); }

// H = 1 - 2 v vᴴ / (vᴴ v) with v = x - β e₁, β = -‖x‖ x₁/|x₁|, takes x to β e₁. Applies those of
// every column of `r` to it, and to `q` from the right.
template <class N>
void reflect_columns(OwnedMatrix<N>& r, OwnedMatrix<N>& q) {
  const std::int64_t m = r.rows();
  std::vector<N> v(static_cast<std::size_t>(m));
  const auto at = [&v](std::int64_t i) -> N& { return v[static_cast<std::size_t>(i)]; };
  for (std::int64_t k = 0; k < std::min(m, r.columns()); ++k) {
    double norm = 0;
    for (std::int64_t i = k; i < m; ++i) norm = std::hypot(norm, std::abs(r(i, k)));
    if (norm == 0) continue;
    const double first = std::abs(r(k, k));
    for (std::int64_t i = k; i < m; ++i) at(i) = r(i, k) / norm;
    at(k) += first == 0 ? N(1) : r(k, k) / first;
    double length = 0;
    for (std::int64_t i = k; i < m; ++i) length += std::norm(at(i));
    for (std::int64_t j = 0; j < r.columns(); ++j) {
      N dot = 0;
      for (std::int64_t i = k; i < m; ++i) dot += conjugated(at(i)) * r(i, j);
      for (std::int64_t i = k; i < m; ++i) r(i, j) -= at(i) * (2.0 * dot / length);
    }
    for (std::int64_t i = 0; i < m; ++i) {
      N dot = 0;
      for (std::int64_t j = k; j < m; ++j) dot += q(i, j) * at(j);
      for (std::int64_t j = k; j < m; ++j) q(i, j) -= (2.0 * dot / length) * conjugated(at(j));
    }
  }
}

}  // namespace

template <class N>
std::vector<std::int64_t> eliminate(OwnedMatrix<N>& a) {
  std::vector<std::int64_t> pivots;
  for (std::int64_t k = 0; k < std::min(a.rows(), a.columns()); ++k) {
    std::int64_t pivot = k;
    for (std::int64_t i = k + 1; i < a.rows(); ++i) {
      if (size_of_pivot(a(i, k)) > size_of_pivot(a(pivot, k))) pivot = i;
    }
    pivots.push_back(pivot);
    for (std::int64_t j = 0; j < a.columns(); ++j) std::swap(a(k, j), a(pivot, j));
    if (a(k, k) == N(0)) continue;
    for (std::int64_t i = k + 1; i < a.rows(); ++i) {
      a(i, k) /= a(k, k);
      for (std::int64_t j = k + 1; j < a.columns(); ++j) a(i, j) -= a(i, k) * a(k, j);
    }
  }
  return pivots;
}

template <class N>
N determinant(OwnedMatrix<N> a) {
  const std::vector<std::int64_t> pivots = eliminate(a);
  N out = 1;
  for (std::int64_t k = 0; k < a.rows(); ++k) {
    out *= pivots[static_cast<std::size_t>(k)] == k ? a(k, k) : -a(k, k);
  }
  return out;
}

template std::vector<std::int64_t> eliminate(OwnedMatrix<double>& a);
template std::vector<std::int64_t> eliminate(OwnedMatrix<std::complex<double>>& a);
template double determinant(OwnedMatrix<double> a);
template std::complex<double> determinant(OwnedMatrix<std::complex<double>> a);

// l lᴴ = (a + aᴴ)/2
void eval(const op::Cholesky&, EvalContext& c) {
  with_field(c.dtype(0), [&]<class N>() {
    const MatrixBatch<N> a(c);
    Nd<N> out(c.result_dims(0));
    for (std::int64_t b = 0; b < a.count(); ++b) {
      OwnedMatrix<N> l(a.rows(), a.rows());
      if (cholesky_of(a.hermitian_part(b), l)) {
        put(out, b, l);
      } else {
        put_nan(out, b, a.rows() * a.rows());
      }
    }
    c.give(0, out);
  });
}

// l u = a[permutation]
void eval(const op::Lu&, EvalContext& c) {
  with_field(c.dtype(0), [&]<class N>() {
    const MatrixBatch<N> a(c);
    Nd<N> out(c.result_dims(0));
    IntNd pivots(c.result_dims(1));
    IntNd permutation(c.result_dims(2));
    const std::int64_t k = std::min(a.rows(), a.columns());
    for (std::int64_t b = 0; b < a.count(); ++b) {
      OwnedMatrix<N> lu = a.at(b);
      const auto first = permutation.data.begin() + b * a.rows();
      std::iota(first, first + a.rows(), 0);
      std::vector<std::int64_t> exchanged(static_cast<std::size_t>(k));
      std::iota(exchanged.begin(), exchanged.end(), 0);
      if (all_finite(lu)) {
        exchanged = eliminate(lu);
        put(out, b, lu);
      } else {
        put_nan(out, b, a.rows() * a.columns());
      }
      for (std::int64_t i = 0; i < k; ++i) {
        const std::int64_t pivot = exchanged[static_cast<std::size_t>(i)];
        pivots.data[static_cast<std::size_t>(b * k + i)] = pivot;
        std::swap(first[i], first[pivot]);
      }
    }
    if (c.wanted(0)) c.give(0, out);
    if (c.wanted(1)) c.give(1, pivots);
    if (c.wanted(2)) c.give(2, permutation);
  });
}

// q r = a by reflections; then every row of r and column of q is turned such that r_kk ≥ 0
void eval(const op::Qr&, EvalContext& c) {
  with_field(c.dtype(0), [&]<class N>() {
    const MatrixBatch<N> a(c);
    Nd<N> q_out(c.result_dims(0));
    Nd<N> r_out(c.result_dims(1));
    const std::int64_t kept = std::min(a.rows(), a.columns());
    for (std::int64_t b = 0; b < a.count(); ++b) {
      OwnedMatrix<N> r = a.at(b);
      if (!all_finite(r)) {
        put_nan(q_out, b, a.rows() * kept);
        put_nan(r_out, b, kept * a.columns());
        continue;
      }
      OwnedMatrix<N> q = OwnedMatrix<N>::identity(a.rows());
      reflect_columns(r, q);
      OwnedMatrix<N> q_kept(a.rows(), kept);
      OwnedMatrix<N> r_kept(kept, a.columns());
      for (std::int64_t k = 0; k < kept; ++k) {
        const double size = std::abs(r(k, k));
        const N turn = size == 0 ? N(1) : r(k, k) / size;
        for (std::int64_t i = 0; i < a.rows(); ++i) q_kept(i, k) = q(i, k) * turn;
        for (std::int64_t j = k; j < a.columns(); ++j) r_kept(k, j) = r(k, j) * conjugated(turn);
        r_kept(k, k) = size;
      }
      put(q_out, b, q_kept);
      put(r_out, b, r_kept);
    }
    if (c.wanted(0)) c.give(0, q_out);
    if (c.wanted(1)) c.give(1, r_out);
  });
}

}  // namespace ricci::rule
