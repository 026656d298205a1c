// Factors of small matrices in f64, one matrix to a lane. No lane looks at another: what a matrix
// gives does not depend on its neighbours. Part of vector_kernels_body.h.
#pragma once

#include "backend/cpu/kernels/vector_kernels.h"
#include "backend/cpu/kernels/vector_lanes.h"
#include "backend/cpu/kernels/vector_tiny.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

using Doubles = Lanes<double>;
constexpr std::int64_t DoubleLanes = LaneCount<double>;

inline Doubles sqrt_of(Doubles x) {
#if RICCI_VECTOR_BYTES == 64 && defined(__AVX512F__)
  return (Doubles)_mm512_sqrt_pd((__m512d)x);
#elif RICCI_VECTOR_BYTES == 32 && defined(__AVX2__)
  return (Doubles)_mm256_sqrt_pd((__m256d)x);
#else
  Doubles y;
  for (int i = 0; i < DoubleLanes; ++i) y[i] = __builtin_sqrt(x[i]);
  return y;
#endif
}
inline Doubles size_of(Doubles x) { return x < 0.0 ? -x : x; }

/// Numbers [i, j] of a matrix in every lane.
struct LaneMatrix {
  double* data;
  std::int64_t columns;
  [[nodiscard]] Doubles get(std::int64_t i, std::int64_t j) const {
    return load(data + (i * columns + j) * DoubleLanes);
  }
  void set(std::int64_t i, std::int64_t j, Doubles x) const {
    store(data + (i * columns + j) * DoubleLanes, x);
  }
};

void lanes_cholesky(double* data, std::int64_t n) {
  const LaneMatrix a{data, n};
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      Doubles sum = a.get(i, j);
      for (std::int64_t k = 0; k < j; ++k) sum -= a.get(i, k) * a.get(j, k);
      if (j < i) {
        a.set(i, j, sum / a.get(j, j));
      } else {
        a.set(i, i, sqrt_of(sum > 0.0 ? sum : Doubles{} - 1.0));
      }
    }
    for (std::int64_t j = i + 1; j < n; ++j) a.set(i, j, Doubles{});
  }
}

// Exchanges row k with the row that each lane has its pivot in.
void lanes_exchange(const LaneMatrix& a, std::int64_t k, Doubles pivot, std::int64_t rows) {
  for (std::int64_t i = k + 1; i < rows; ++i) {
    const auto here = pivot == static_cast<double>(i);
    for (std::int64_t j = 0; j < a.columns; ++j) {
      const Doubles upper = a.get(k, j);
      const Doubles lower = a.get(i, j);
      a.set(k, j, here ? lower : upper);
      a.set(i, j, here ? upper : lower);
    }
  }
}

void lanes_eliminate(double* data, std::int64_t rows, std::int64_t columns, double* pivots) {
  const LaneMatrix a{data, columns};
  const std::int64_t steps = rows < columns ? rows : columns;
  for (std::int64_t k = 0; k < steps; ++k) {
    Doubles pivot = Doubles{} + static_cast<double>(k);
    Doubles largest = size_of(a.get(k, k));
    for (std::int64_t i = k + 1; i < rows; ++i) {
      const Doubles size = size_of(a.get(i, k));
      pivot = size > largest ? Doubles{} + static_cast<double>(i) : pivot;
      largest = size > largest ? size : largest;
    }
    store(pivots + k * DoubleLanes, pivot);
    lanes_exchange(a, k, pivot, rows);
    const Doubles top = a.get(k, k);
    const auto nothing = top == 0.0;
    for (std::int64_t i = k + 1; i < rows; ++i) {
      const Doubles x = a.get(i, k);
      const Doubles factor = x / top;
      a.set(i, k, nothing ? x : factor);
      for (std::int64_t j = k + 1; j < columns; ++j) {
        const Doubles y = a.get(i, j);
        a.set(i, j, nothing ? y : y - factor * a.get(k, j));
      }
    }
  }
}

void lanes_substitute(const double* factors, const double* pivots, std::int64_t n, double* b,
                      std::int64_t columns) {
  const LaneMatrix a{const_cast<double*>(factors), n};
  const LaneMatrix x{b, columns};
  for (std::int64_t k = 0; k < n; ++k) {
    lanes_exchange(x, k, load(pivots + k * DoubleLanes), n);
  }
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      Doubles sum = x.get(i, j);
      for (std::int64_t k = 0; k < i; ++k) sum -= a.get(i, k) * x.get(k, j);
      x.set(i, j, sum);
    }
  }
  for (std::int64_t i = n; i-- > 0;) {
    const Doubles pivot = a.get(i, i);
    for (std::int64_t j = 0; j < columns; ++j) {
      Doubles sum = x.get(i, j);
      for (std::int64_t k = i + 1; k < n; ++k) sum -= a.get(i, k) * x.get(k, j);
      x.set(i, j, sum / pivot);
    }
  }
}

// The reflection with what lies below the diagonal in column `j` of `of`, on columns from `first`.
void lanes_reflect(const LaneMatrix& of, std::int64_t j, Doubles tau, std::int64_t rows,
                   const LaneMatrix& x, std::int64_t first) {
  for (std::int64_t l = first; l < x.columns; ++l) {
    Doubles sum = x.get(j, l);
    for (std::int64_t i = j + 1; i < rows; ++i) sum += of.get(i, j) * x.get(i, l);
    sum *= tau;
    x.set(j, l, x.get(j, l) - sum);
    for (std::int64_t i = j + 1; i < rows; ++i) x.set(i, l, x.get(i, l) - of.get(i, j) * sum);
  }
}

void lanes_qr(double* data, std::int64_t rows, std::int64_t columns, double* q_data,
              double* r_data) {
  const std::int64_t steps = rows < columns ? rows : columns;
  const LaneMatrix a{data, columns};
  const LaneMatrix q{q_data, steps};
  const LaneMatrix r{r_data, columns};
  Doubles taus[SmallMatrixKernels::Most];
  for (std::int64_t j = 0; j < steps; ++j) {
    // In units of the column's largest: squares of a column far smaller than the others vanish.
    Doubles largest = size_of(a.get(j, j));
    for (std::int64_t i = j + 1; i < rows; ++i) {
      const Doubles x = size_of(a.get(i, j));
      largest = x > largest ? x : largest;
    }
    const Doubles unit = largest == 0.0 ? Doubles{} + 1.0 : largest;
    const Doubles first = a.get(j, j) / unit;
    Doubles rest = {};
    for (std::int64_t i = j + 1; i < rows; ++i) {
      const Doubles x = a.get(i, j) / unit;
      rest += x * x;
    }
    const auto nothing = rest == 0.0;
    const Doubles norm = sqrt_of(first * first + rest);
    const Doubles turned = first < 0.0 ? norm : -norm;
    const Doubles by = nothing ? Doubles{} : 1.0 / (first - turned);
    taus[j] = nothing ? Doubles{} : (turned - first) / turned;
    for (std::int64_t i = j + 1; i < rows; ++i) a.set(i, j, a.get(i, j) / unit * by);
    const Doubles to = nothing ? a.get(j, j) : turned * unit;
    a.set(j, j, to);
    lanes_reflect(a, j, taus[j], rows, a, j + 1);
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < steps; ++j) q.set(i, j, Doubles{} + (i == j ? 1.0 : 0.0));
  }
  for (std::int64_t j = steps; j-- > 0;) lanes_reflect(a, j, taus[j], rows, q, j);
  // The diagonal of r is not negative.
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto turned = a.get(i, i) < 0.0;
    for (std::int64_t j = 0; j < columns; ++j) {
      const Doubles x = a.get(i, j);
      r.set(i, j, j < i ? Doubles{} : turned ? -x : x);
    }
    for (std::int64_t k = 0; k < rows; ++k) {
      const Doubles x = q.get(k, i);
      q.set(k, i, turned ? -x : x);
    }
  }
}

// Rows or columns p and q of a matrix turned by an angle: x at p and y at q, steps apart.
inline void lanes_turn(double* x, double* y, Doubles c, Doubles s) {
  const Doubles a = load(x);
  const Doubles b = load(y);
  store(x, c * a - s * b);
  store(y, s * a + c * b);
}

// One rotation by Jacobi's way; lanes in which [p, q] is small enough already keep every bit.
inline bool lanes_rotate(const LaneMatrix& a, std::int64_t n, std::int64_t p, std::int64_t q,
                         Doubles small, double* vectors) {
  constexpr std::int64_t N = DoubleLanes;
  const Doubles between = a.get(p, q);
  const auto wanted = size_of(between) > small;
  bool any = false;
  for (int l = 0; l < N; ++l) any = any || wanted[l] != 0;
  if (!any) return false;
  const Doubles ratio = (a.get(q, q) - a.get(p, p)) / (between + between);
  const Doubles size = size_of(ratio);
  const Doubles tangent = 1.0 / (size + sqrt_of(size * size + 1.0));
  const Doubles t = wanted ? (ratio < 0.0 ? -tangent : tangent) : Doubles{};
  const Doubles c = 1.0 / sqrt_of(t * t + 1.0);
  const Doubles s = t * c;
  a.set(p, p, a.get(p, p) - (wanted ? t * between : Doubles{}));
  a.set(q, q, a.get(q, q) + (wanted ? t * between : Doubles{}));
  a.set(p, q, wanted ? Doubles{} : between);
  // The upper triangle only.
  const auto at = [&](std::int64_t i, std::int64_t j) { return a.data + (i * n + j) * N; };
  for (std::int64_t r = 0; r < p; ++r) lanes_turn(at(r, p), at(r, q), c, s);
  for (std::int64_t r = p + 1; r < q; ++r) lanes_turn(at(p, r), at(r, q), c, s);
  for (std::int64_t r = q + 1; r < n; ++r) lanes_turn(at(p, r), at(q, r), c, s);
  for (std::int64_t r = 0; vectors != nullptr && r < n; ++r) {
    lanes_turn(vectors + (p * n + r) * N, vectors + (q * n + r) * N, c, s);
  }
  return true;
}

void lanes_eigh(double* data, std::int64_t n, double* values, double* vectors) {
  constexpr int MostSweeps = 40;
  constexpr double Relative = 0x1p-56;  // of the norm: less changes no eigenvalue's last place
  const LaneMatrix a{data, n};
  Doubles norm = {};
  for (std::int64_t i = 0; i < n * n; ++i) {
    const Doubles x = load(data + i * DoubleLanes);
    norm += x * x;
  }
  const Doubles small = sqrt_of(norm) * Relative;
  for (std::int64_t i = 0; vectors != nullptr && i < n * n; ++i) {
    store(vectors + i * DoubleLanes, Doubles{} + (i % (n + 1) == 0 ? 1.0 : 0.0));
  }
  bool any = true;
  for (int sweep = 0; any && sweep < MostSweeps; ++sweep) {
    any = false;
    for (std::int64_t p = 0; p < n; ++p) {
      for (std::int64_t q = p + 1; q < n; ++q) {
        any = lanes_rotate(a, n, p, q, small, vectors) || any;
      }
    }
  }
  for (std::int64_t i = 0; i < n; ++i) store(values + i * DoubleLanes, a.get(i, i));
}

constexpr SmallMatrixKernels small_matrix_kernels() {
  return {.lanes = DoubleLanes,
          .to_lanes = lines_to_lanes<double>,
          .from_lanes = lanes_to_lines<double>,
          .cholesky = lanes_cholesky,
          .eliminate = lanes_eliminate,
          .substitute = lanes_substitute,
          .qr = lanes_qr,
          .eigh = lanes_eigh};
}

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
