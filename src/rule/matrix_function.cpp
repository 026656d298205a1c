// Exponentials, cofactors, determinants and pseudo-inverses of matrices.
#include <algorithm>

#include "ricci/op/factorization.h"

#include "rule/matrices.h"
#include "rule/tables/eval_rules.h"
#include "type/epsilon.h"

namespace ricci::rule {
namespace {

// Sums and squarings in more digits than are kept: each squaring doubles the error.
using Long = long double;
template <class N>
struct LongOf {
  using type = Long;
};
template <>
struct LongOf<std::complex<double>> {
  using type = std::complex<Long>;
};

template <class L>
OwnedMatrix<L> product(const OwnedMatrix<L>& a, const OwnedMatrix<L>& b) {
  OwnedMatrix<L> out(a.rows(), b.columns());
  for (std::int64_t i = 0; i < a.rows(); ++i) {
    for (std::int64_t k = 0; k < a.columns(); ++k) {
      for (std::int64_t j = 0; j < b.columns(); ++j) out(i, j) += a(i, k) * b(k, j);
    }
  }
  return out;
}

// e^a = (e^(a/2^m))^(2^m): the series where the matrix is small, then m squarings.
template <class N>
OwnedMatrix<N> exponential(const OwnedMatrix<N>& a) {
  using L = typename LongOf<N>::type;
  const std::int64_t n = a.rows();
  Long norm = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    Long row = 0;
    for (std::int64_t j = 0; j < n; ++j) row += std::abs(L(a(i, j)));
    norm = std::max(norm, row);
  }
  const int squarings = norm > 0.5L ? static_cast<int>(std::ceil(std::log2(norm))) + 1 : 0;
  OwnedMatrix<L> small(n, n);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) small(i, j) = L(a(i, j)) * std::ldexp(1.0L, -squarings);
  }
  OwnedMatrix<L> sum = OwnedMatrix<L>::identity(n);
  OwnedMatrix<L> term = sum;
  constexpr int Terms = 24;
  for (int k = 1; k <= Terms; ++k) {
    term = product(term, small);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        term(i, j) /= Long(k);
        sum(i, j) += term(i, j);
      }
    }
  }
  for (int i = 0; i < squarings; ++i) sum = product(sum, sum);
  OwnedMatrix<N> out(n, n);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) out(i, j) = N(sum(i, j));
  }
  return out;
}

// (-1)^(i+j) det(a without row j and column i)
template <class N>
N cofactor(const OwnedMatrix<N>& a, std::int64_t i, std::int64_t j) {
  const std::int64_t n = a.rows();
  OwnedMatrix<N> minor(n - 1, n - 1);
  for (std::int64_t p = 0; p + 1 < n; ++p) {
    for (std::int64_t q = 0; q + 1 < n; ++q) minor(p, q) = a(p + (p >= j), q + (q >= i));
  }
  const N size = determinant(std::move(minor));
  return (i + j) % 2 == 0 ? size : -size;
}

// Calls `f` with every matrix and gives what it makes of it; NaN for those that are not finite.
template <class N, class F>
void give_each(EvalContext& c, const F& f) {
  const MatrixBatch<N> a(c);
  Nd<N> out(c.result_dims(0));
  const std::int64_t size =
      a.count() == 0 ? 0 : static_cast<std::int64_t>(out.data.size()) / a.count();
  for (std::int64_t b = 0; b < a.count(); ++b) {
    const OwnedMatrix<N> one = a.at(b);
    if (all_finite(one)) {
      put(out, b, f(one));
    } else {
      put_nan(out, b, size);
    }
  }
  c.give(0, out);
}

}  // namespace

// out = Σ_k a^k / k!
void eval(const op::MatrixExp&, EvalContext& c) {
  with_field(c.dtype(0), [&]<class N>() {
    give_each<N>(c, [](const OwnedMatrix<N>& a) { return exponential(a); });
  });
}

// out[i, j] = (-1)^(i+j) det(a without row j and column i)
void eval(const op::Adjugate&, EvalContext& c) {
  with_field(c.dtype(0), [&]<class N>() {
    give_each<N>(c, [](const OwnedMatrix<N>& a) {
      OwnedMatrix<N> out(a.rows(), a.rows());
      for (std::int64_t i = 0; i < a.rows(); ++i) {
        for (std::int64_t j = 0; j < a.rows(); ++j) out(i, j) = cofactor(a, i, j);
      }
      return out;
    });
  });
}

// out = ± Π_i u[i, i]
void eval(const op::Det&, EvalContext& c) {
  with_field(c.dtype(0), [&]<class N>() {
    give_each<N>(c, [](const OwnedMatrix<N>& a) {
      OwnedMatrix<N> out(1, 1);
      out(0, 0) = determinant(a);
      return out;
    });
  });
}

// out = v diag(s > cut ? 1/s : 0) uᴴ
void eval(const op::Pinv& op, EvalContext& c) {
  with_field(c.dtype(0), [&]<class N>() {
    give_each<N>(c, [&](const OwnedMatrix<N>& a) {
      const SingularFactors<N> f = singular_factors(a);
      const double share = op.rcond ? op.rcond->value
                                    : 10 * static_cast<double>(std::max(a.rows(), a.columns())) *
                                          epsilon_of(c.dtype(0));
      OwnedMatrix<N> out(a.columns(), a.rows());
      for (std::size_t k = 0; k < f.s.size(); ++k) {
        if (!(f.s[k] > share * f.s[0])) continue;
        const auto at = static_cast<std::int64_t>(k);
        for (std::int64_t i = 0; i < a.columns(); ++i) {
          for (std::int64_t j = 0; j < a.rows(); ++j) {
            out(i, j) += f.v(i, at) / f.s[k] * conjugated(f.u(j, at));
          }
        }
      }
      return out;
    });
  });
}

}  // namespace ricci::rule
