// Linear systems.
#include <cmath>
#include <complex>

#include <fmt/format.h>

#include "ricci/op/linalg.h"

#include "rule/matrices.h"
#include "rule/tables/eval_rules.h"

namespace ricci::rule {
namespace {

[[noreturn]] void fail_singular(const EvalContext& c, std::int64_t system, std::int64_t row) {
  c.fail(ErrorCode::SingularMatrix,
         fmt::format("matrix {} of '{}' has no inverse: its pivot in row {} is 0", system,
                     c.node().op.mnemonic(), row),
         "check the matrix for dependent rows, or add a small multiple of the identity");
}

// Every solve is a batch of matrices [.., N, N]; a right-hand side of lower rank is one column.
struct Systems {
  std::int64_t count = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 1;
};
Systems systems_of(const StaticDims& a, const StaticDims& b) {
  Systems s{.rows = a.back()};
  const std::size_t batch = a.size() - 2;
  for (std::size_t i = 0; i < batch; ++i) s.count *= a[i];
  if (b.size() == a.size()) s.columns = b.back();
  return s;
}

// P A = L U: eliminates column after column below the largest pivot, and then substitutes
// backwards. Both operands are overwritten; b becomes the solution. Gives the first row whose pivot
// is exactly zero, or -1.
template <class N>
std::int64_t solve_in_place(Matrix<N> a, Matrix<N> b, std::int64_t n) {
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t pivot = k;
    for (std::int64_t i = k + 1; i < n; ++i) {
      if (std::abs(a(i, k)) > std::abs(a(pivot, k))) pivot = i;
    }
    if (a(pivot, k) == N(0)) return k;
    for (std::int64_t j = 0; j < n; ++j) std::swap(a(k, j), a(pivot, j));
    for (std::int64_t j = 0; j < b.columns; ++j) std::swap(b(k, j), b(pivot, j));
    for (std::int64_t i = k + 1; i < n; ++i) {
      const N factor = a(i, k) / a(k, k);
      for (std::int64_t j = k; j < n; ++j) a(i, j) -= factor * a(k, j);
      for (std::int64_t j = 0; j < b.columns; ++j) b(i, j) -= factor * b(k, j);
    }
  }
  for (std::int64_t j = 0; j < b.columns; ++j) {
    for (std::int64_t i = n; i-- > 0;) {
      for (std::int64_t k = i + 1; k < n; ++k) b(i, j) -= a(i, k) * b(k, j);
      b(i, j) /= a(i, i);
    }
  }
  return -1;
}

void solve_dense(EvalContext& c) {
  with_field(c.dtype(0), [&]<class N>() {
    Nd<N> a = c.numbers<N>(0);
    Nd<N> x = c.numbers<N>(1);
    const Systems s = systems_of(a.dims, x.dims);
    for (std::int64_t i = 0; i < s.count; ++i) {
      const Matrix<N> ai{a.data.data() + i * s.rows * s.rows, s.rows};
      const Matrix<N> xi{x.data.data() + i * s.rows * s.columns, s.columns};
      const std::int64_t zero_pivot = solve_in_place<N>(ai, xi, s.rows);
      if (zero_pivot >= 0) fail_singular(c, i, zero_pivot);
    }
    c.give(0, x);
  });
}

}  // namespace

// a x = b
void eval(const op::DenseSolve&, EvalContext& c) { solve_dense(c); }

// a[β] x[β] = b[β]
void eval(const op::BatchedDenseSolve&, EvalContext& c) { solve_dense(c); }

// x_i = (b_i - Σ_k t_ik x_k) / t_ii over the k already known, t = op(tri(a));
// rows run downwards when t is lower, upwards when it is upper
void eval(const op::TriangularSolve& op, EvalContext& c) {
  with_field(c.dtype(0), [&]<class N>() {
    const Nd<N> a = c.numbers<N>(0);
    Nd<N> x = c.numbers<N>(1);
    const Systems s = systems_of(a.dims, x.dims);
    const bool downwards = op.lower != op.transpose;
    for (std::int64_t system = 0; system < s.count; ++system) {
      const Matrix<const N> whole{a.data.data() + system * s.rows * s.rows, s.rows};
      const Matrix<N> xs{x.data.data() + system * s.rows * s.columns, s.columns};
      const auto t = [&](std::int64_t i, std::int64_t k) {
        return op.transpose ? whole(k, i) : whole(i, k);
      };
      for (std::int64_t step = 0; step < s.rows; ++step) {
        const std::int64_t i = downwards ? step : s.rows - 1 - step;
        if (!op.unit && t(i, i) == N(0)) fail_singular(c, system, i);
        for (std::int64_t j = 0; j < s.columns; ++j) {
          for (std::int64_t known = 0; known < step; ++known) {
            const std::int64_t k = downwards ? known : s.rows - 1 - known;
            xs(i, j) -= t(i, k) * xs(k, j);
          }
          if (!op.unit) xs(i, j) /= t(i, i);
        }
      }
    }
    c.give(0, x);
  });
}

}  // namespace ricci::rule
