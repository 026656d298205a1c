// Eigenvalues and singular values by rotations (Jacobi's method), slow and obvious.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ricci/op/factorization.h"

#include "rule/matrices.h"
#include "rule/tables/eval_rules.h"

namespace ricci::rule {
namespace {

constexpr int MostSweeps = 100;
constexpr double Rounding = std::numeric_limits<double>::epsilon();

// The rotation of two columns p and q that makes the off-diagonal element `apq` of a Hermitian
// matrix with the diagonal (app, aqq) vanish: p' = c p - s̄ q, q' = s p + c q.
template <class N>
struct Rotation {
  double c;
  N s;

  Rotation(double app, double aqq, N apq) {
    const double size = std::abs(apq);
    const double theta = (aqq - app) / (2 * size);
    const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::hypot(theta, 1.0));
    c = 1 / std::hypot(t, 1.0);
    s = apq / size * (t * c);
  }
  void turn_columns(OwnedMatrix<N>& a, std::int64_t p, std::int64_t q) const {
    for (std::int64_t i = 0; i < a.rows(); ++i) {
      const N x = a(i, p);
      const N y = a(i, q);
      a(i, p) = c * x - conjugated(s) * y;
      a(i, q) = s * x + c * y;
    }
  }
  void turn_rows(OwnedMatrix<N>& a, std::int64_t p, std::int64_t q) const {
    for (std::int64_t j = 0; j < a.columns(); ++j) {
      const N x = a(p, j);
      const N y = a(q, j);
      a(p, j) = c * x - s * y;
      a(q, j) = conjugated(s) * x + c * y;
    }
  }
};

// Indices 0, 1, … in the order of their keys; equal ones as they were, NaN as infinity.
std::vector<std::int64_t> ordered(const std::vector<double>& keys, bool descending) {
  std::vector<std::int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](std::int64_t i) {
    const double k = keys[static_cast<std::size_t>(i)];
    return std::isnan(k) ? std::numeric_limits<double>::infinity() : k;
  };
  std::ranges::sort(order, [&](std::int64_t i, std::int64_t j) {
    const double x = key(i);
    const double y = key(j);
    if (x == y) return i < j;
    return descending ? x > y : x < y;
  });
  return order;
}

template <class N>
OwnedMatrix<N> columns_in_order(const OwnedMatrix<N>& a, const std::vector<std::int64_t>& order) {
  OwnedMatrix<N> out(a.rows(), static_cast<std::int64_t>(order.size()));
  for (std::int64_t i = 0; i < a.rows(); ++i) {
    for (std::int64_t k = 0; k < out.columns(); ++k) {
      out(i, k) = a(i, order[static_cast<std::size_t>(k)]);
    }
  }
  return out;
}

// The conjugate phase of the component of a column that is to be real and positive: the first of
// more than 3/4 of the largest magnitude.
template <class N>
N turn_of(const OwnedMatrix<N>& a, std::int64_t k) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.rows(); ++i) largest = std::max(largest, std::abs(a(i, k)));
  for (std::int64_t i = 0; i < a.rows(); ++i) {
    const double size = std::abs(a(i, k));
    if (size > 0.75 * largest) return conjugated(a(i, k)) / size;
  }
  return N(1);
}
template <class N>
void turn_column(OwnedMatrix<N>& a, std::int64_t k, N turn) {
  for (std::int64_t i = 0; i < a.rows(); ++i) a(i, k) *= turn;
}

// vᴴ a v is diagonal when no rotation is left to make; `a` becomes it.
template <class N>
OwnedMatrix<N> diagonalize(OwnedMatrix<N>& a) {
  const std::int64_t n = a.rows();
  OwnedMatrix<N> v = OwnedMatrix<N>::identity(n);
  double size = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) size = std::hypot(size, std::abs(a(i, j)));
  }
  bool turned = true;
  for (int sweep = 0; turned && sweep < MostSweeps; ++sweep) {
    turned = false;
    for (std::int64_t p = 0; p < n; ++p) {
      for (std::int64_t q = p + 1; q < n; ++q) {
        if (std::abs(a(p, q)) <= 1e-3 * Rounding * size) continue;
        const Rotation<N> turn(std::real(a(p, p)), std::real(a(q, q)), a(p, q));
        turn.turn_columns(a, p, q);
        turn.turn_rows(a, p, q);
        a(p, q) = a(q, p) = N(0);
        turn.turn_columns(v, p, q);
        turned = true;
      }
    }
  }
  return v;
}

// Columns k from `first` on are replaced by what is left of unit vectors when the columns before
// are taken out of them: any orthonormal completion.
template <class N>
void complete_columns(OwnedMatrix<N>& u, std::int64_t first) {
  std::int64_t candidate = 0;
  for (std::int64_t k = first; k < u.columns(); ++k) {
    for (double length = 0; length < 0.5 / std::sqrt(static_cast<double>(u.rows())); ++candidate) {
      for (std::int64_t i = 0; i < u.rows(); ++i) u(i, k) = N(i == candidate % u.rows() ? 1 : 0);
      length = 1;
      for (int twice = 0; twice < 2; ++twice) {
        for (std::int64_t j = 0; j < k; ++j) {
          N dot = 0;
          for (std::int64_t i = 0; i < u.rows(); ++i) dot += conjugated(u(i, j)) * u(i, k);
          for (std::int64_t i = 0; i < u.rows(); ++i) u(i, k) -= u(i, j) * dot;
        }
        double norm = 0;
        for (std::int64_t i = 0; i < u.rows(); ++i) norm = std::hypot(norm, std::abs(u(i, k)));
        length *= norm;
        if (norm == 0) break;
        for (std::int64_t i = 0; i < u.rows(); ++i) u(i, k) /= norm;
      }
    }
  }
}

// Of a matrix with at least as many rows as columns: turns its columns until they are orthogonal;
// their lengths are the singular values, the turns are v.
template <class N>
SingularFactors<N> tall_factors(OwnedMatrix<N> a) {
  const std::int64_t n = a.columns();
  OwnedMatrix<N> v = OwnedMatrix<N>::identity(n);
  bool turned = true;
  for (int sweep = 0; turned && sweep < MostSweeps; ++sweep) {
    turned = false;
    for (std::int64_t p = 0; p < n; ++p) {
      for (std::int64_t q = p + 1; q < n; ++q) {
        double app = 0;
        double aqq = 0;
        N apq = 0;
        for (std::int64_t i = 0; i < a.rows(); ++i) {
          app += std::norm(a(i, p));
          aqq += std::norm(a(i, q));
          apq += conjugated(a(i, p)) * a(i, q);
        }
        if (std::abs(apq) <= Rounding / 4 * std::sqrt(app) * std::sqrt(aqq)) continue;
        const Rotation<N> turn(app, aqq, apq);
        turn.turn_columns(a, p, q);
        turn.turn_columns(v, p, q);
        turned = true;
      }
    }
  }
  std::vector<double> lengths(static_cast<std::size_t>(n), 0.0);
  for (std::int64_t k = 0; k < n; ++k) {
    double& length = lengths[static_cast<std::size_t>(k)];
    for (std::int64_t i = 0; i < a.rows(); ++i) length = std::hypot(length, std::abs(a(i, k)));
  }
  const std::vector<std::int64_t> order = ordered(lengths, true);
  SingularFactors<N> out{columns_in_order(a, order), {}, columns_in_order(v, order)};
  for (const std::int64_t k : order) out.s.push_back(lengths[static_cast<std::size_t>(k)]);
  // Columns that are nothing but rounding have no direction.
  std::int64_t known = 0;
  while (known < n && out.s[static_cast<std::size_t>(known)] >
                          Rounding * static_cast<double>(a.rows()) * out.s[0]) {
    turn_column(out.u, known, N(1 / out.s[static_cast<std::size_t>(known)]));
    ++known;
  }
  complete_columns(out.u, known);
  return out;
}

// The largest magnitude, at least of what is not 0: matrices are scaled by it, so that squares
// neither overflow nor vanish.
template <class N>
double scale_of(const OwnedMatrix<N>& a) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.rows(); ++i) {
    for (std::int64_t j = 0; j < a.columns(); ++j) {
      largest =
          std::max(largest, std::max(std::abs(std::real(a(i, j))), std::abs(std::imag(a(i, j)))));
    }
  }
  return largest == 0 ? 1 : std::exp2(std::floor(std::log2(largest)));
}
template <class N>
void divide(OwnedMatrix<N>& a, double by) {
  for (std::int64_t i = 0; i < a.rows(); ++i) {
    for (std::int64_t j = 0; j < a.columns(); ++j) a(i, j) /= by;
  }
}

}  // namespace

template <class N>
SingularFactors<N> singular_factors(const OwnedMatrix<N>& a) {
  OwnedMatrix<N> scaled = a.rows() >= a.columns() ? a : adjoint_of(a);
  const double scale = scale_of(scaled);
  divide(scaled, scale);
  SingularFactors<N> out = tall_factors(std::move(scaled));
  if (a.rows() < a.columns()) std::swap(out.u, out.v);
  for (double& s : out.s) s *= scale;
  for (std::int64_t k = 0; k < out.u.columns(); ++k) {
    const N turn = turn_of(out.u, k);
    turn_column(out.u, k, turn);
    turn_column(out.v, k, turn);
  }
  return out;
}

template SingularFactors<double> singular_factors(const OwnedMatrix<double>& a);
template SingularFactors<std::complex<double>> singular_factors(
    const OwnedMatrix<std::complex<double>>& a);

// (a + aᴴ)/2 = v diag(w) vᴴ
void eval(const op::Eigh&, EvalContext& c) {
  with_field(c.dtype(0), [&]<class N>() {
    const MatrixBatch<N> a(c);
    const std::int64_t n = a.rows();
    RealNd w(c.result_dims(0));
    Nd<N> v_out(c.result_dims(1));
    for (std::int64_t b = 0; b < a.count(); ++b) {
      OwnedMatrix<N> diagonal = a.hermitian_part(b);
      if (!all_finite(diagonal)) {
        put_nan(w, b, n);
        put_nan(v_out, b, n * n);
        continue;
      }
      const double scale = scale_of(diagonal);
      divide(diagonal, scale);
      const OwnedMatrix<N> v = diagonalize(diagonal);
      std::vector<double> values;
      for (std::int64_t k = 0; k < n; ++k) values.push_back(std::real(diagonal(k, k)));
      const std::vector<std::int64_t> order = ordered(values, false);
      OwnedMatrix<N> sorted = columns_in_order(v, order);
      for (std::int64_t k = 0; k < n; ++k) {
        turn_column(sorted, k, turn_of(sorted, k));
        w.data[static_cast<std::size_t>(b * n + k)] =
            values[static_cast<std::size_t>(order[static_cast<std::size_t>(k)])] * scale;
      }
      put(v_out, b, sorted);
    }
    if (c.wanted(0)) c.give(0, w);
    if (c.wanted(1)) c.give(1, v_out);
  });
}

// a = u diag(s) vᴴ
void eval(const op::Svd&, EvalContext& c) {
  with_field(c.dtype(0), [&]<class N>() {
    const MatrixBatch<N> a(c);
    const std::int64_t kept = std::min(a.rows(), a.columns());
    Nd<N> u(c.result_dims(0));
    RealNd s(c.result_dims(1));
    Nd<N> vh(c.result_dims(2));
    for (std::int64_t b = 0; b < a.count(); ++b) {
      const OwnedMatrix<N> one = a.at(b);
      if (!all_finite(one)) {
        put_nan(u, b, a.rows() * kept);
        put_nan(s, b, kept);
        put_nan(vh, b, kept * a.columns());
        continue;
      }
      const SingularFactors<N> f = singular_factors(one);
      put(u, b, f.u);
      std::ranges::copy(f.s, s.data.begin() + b * kept);
      put(vh, b, adjoint_of(f.v));
    }
    if (c.wanted(0)) c.give(0, u);
    if (c.wanted(1)) c.give(1, s);
    if (c.wanted(2)) c.give(2, vh);
  });
}

}  // namespace ricci::rule
