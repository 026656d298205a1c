#include "backend/cpu/host/small_matrices.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "backend/cpu/host/numbers.h"
#include "backend/cpu/host/parallel.h"
#include "backend/cpu/host/view.h"
#include "backend/cpu/kernels/vector_kernels.h"

namespace ricci::cpu {
namespace {

constexpr std::int64_t MostSide = SmallMatrixKernels::Most;
constexpr std::int64_t MostLanes = SmallMatrixKernels::MostLanes;
constexpr std::int64_t FewestTogether = 4;
constexpr std::int64_t Room = MostSide * MostSide * MostLanes;
constexpr int SafeExponent = 400;  // squares of numbers within 2^±400 neither overflow nor vanish

const SmallMatrixKernels& lane_kernels() { return vector_kernels().small_matrices; }

/// Numbers of a group of matrices, one after the other and as lanes.
struct Numbers {
  std::int64_t each;  ///< numbers of a matrix
  alignas(64) double plain[Room];
  alignas(64) double lanes[Room];

  explicit Numbers(std::int64_t n) : each(n) {}
  void read(const ArrayView& from, std::int64_t first, std::int64_t count) {
    read_numbers(from, first * each, count * each, plain);
  }
  void to_lanes(std::int64_t count) { lane_kernels().to_lanes(plain, each, each, count, lanes); }
  void from_lanes(std::int64_t count) {
    lane_kernels().from_lanes(lanes, each, each, count, plain);
  }
  void write(const ArrayView& to, std::int64_t first, std::int64_t count) const {
    if (to.data != nullptr) write_numbers(to, first * each, count * each, plain);
  }
  [[nodiscard]] double* matrix(std::int64_t i) { return plain + i * each; }
};

/// Matrices [first, first + count) of an operand.
struct Group {
  std::int64_t first = 0;
  std::int64_t count = 0;
  Numbers a;
  bool finite[MostLanes] = {};
  int exponents[MostLanes] = {};  ///< what they are scaled down by

  explicit Group(std::int64_t size) : a(size) {}

  void fill_nan(Numbers& of) const {
    for (std::int64_t i = 0; i < count; ++i) {
      if (finite[i]) continue;
      std::fill_n(of.matrix(i), of.each, std::numeric_limits<double>::quiet_NaN());
    }
  }
  void read(const ArrayView& from) {
    a.read(from, first, count);
    for (std::int64_t i = 0; i < count; ++i) {
      double* x = a.matrix(i);
      finite[i] = std::all_of(x, x + a.each, [](double v) { return std::isfinite(v); });
      if (!finite[i]) std::fill_n(x, a.each, 0.0);
    }
  }
  /// Such that squares are safe; `rescale` undoes it.
  void scale() {
    for (std::int64_t i = 0; i < count; ++i) {
      double most = 0;
      for (std::int64_t k = 0; k < a.each; ++k) most = std::max(most, std::abs(a.matrix(i)[k]));
      exponents[i] = most == 0 ? 0 : std::ilogb(most);
      if (std::abs(exponents[i]) <= SafeExponent) exponents[i] = 0;
      multiply(a, i, -exponents[i]);
    }
  }
  void rescale(Numbers& of) const {
    for (std::int64_t i = 0; i < count; ++i) multiply(of, i, exponents[i]);
  }
  static void multiply(Numbers& of, std::int64_t i, int exponent) {
    if (exponent == 0) return;
    for (std::int64_t k = 0; k < of.each; ++k) {
      of.matrix(i)[k] = std::ldexp(of.matrix(i)[k], exponent);
    }
  }
};

void take_symmetric_part(double* a, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < i; ++j) {
      a[i * n + j] = a[j * n + i] = (a[i * n + j] + a[j * n + i]) * 0.5;
    }
  }
}

void cholesky_of(const HostArguments& call, Group& g, std::int64_t n) {
  for (std::int64_t i = 0; i < g.count; ++i) take_symmetric_part(g.a.matrix(i), n);
  g.a.to_lanes(g.count);
  lane_kernels().cholesky(g.a.lanes, n);
  g.a.from_lanes(g.count);
  for (std::int64_t i = 0; i < g.count; ++i) {
    for (std::int64_t k = 0; k < n; ++k) {
      g.finite[i] = g.finite[i] && std::isfinite(g.a.matrix(i)[k * (n + 1)]);
    }
  }
  g.fill_nan(g.a);
  g.a.write(call.results[0], g.first, g.count);
}

void lu_of(const HostArguments& call, Group& g, std::int64_t rows, std::int64_t columns) {
  const std::int64_t steps = std::min(rows, columns);
  Numbers pivots(steps);
  g.a.to_lanes(g.count);
  lane_kernels().eliminate(g.a.lanes, rows, columns, pivots.lanes);
  g.a.from_lanes(g.count);
  pivots.from_lanes(g.count);
  g.fill_nan(g.a);
  g.a.write(call.results[0], g.first, g.count);
  std::int64_t exchanged[MostSide * MostLanes];
  std::int64_t permutation[MostSide * MostLanes];
  for (std::int64_t i = 0; i < g.count; ++i) {
    std::int64_t* order = permutation + i * rows;
    std::iota(order, order + rows, 0);
    for (std::int64_t k = 0; k < steps; ++k) {
      const auto row = g.finite[i] ? static_cast<std::int64_t>(pivots.matrix(i)[k]) : k;
      exchanged[i * steps + k] = row;
      std::swap(order[k], order[row]);
    }
  }
  const auto write = [&](std::size_t r, std::int64_t each, const std::int64_t* from) {
    if (call.results[r].data == nullptr) return;
    write_numbers(call.results[r], g.first * each, g.count * each, from);
  };
  write(1, steps, exchanged);
  write(2, rows, permutation);
}

void qr_of(const HostArguments& call, Group& g, std::int64_t rows, std::int64_t columns) {
  const std::int64_t steps = std::min(rows, columns);
  Numbers q(rows * steps);
  Numbers r(steps * columns);
  g.scale();
  g.a.to_lanes(g.count);
  lane_kernels().qr(g.a.lanes, rows, columns, q.lanes, r.lanes);
  q.from_lanes(g.count);
  r.from_lanes(g.count);
  g.rescale(r);
  for (Numbers* x : {&q, &r}) g.fill_nan(*x);
  q.write(call.results[0], g.first, g.count);
  r.write(call.results[1], g.first, g.count);
}

// The sign that makes the first component of more than 3/4 of the largest magnitude positive.
double sign_of(const double* v, std::int64_t n) {
  double largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(v[i]));
  for (std::int64_t i = 0; i < n; ++i) {
    if (std::abs(v[i]) > 0.75 * largest) return v[i] < 0 ? -1 : 1;
  }
  return 1;
}

// Values [n] in order, and vectors, which are rows, as columns in the same order.
void order_values(double* values, const double* rows, std::int64_t n, double* columns) {
  std::int64_t order[MostSide];
  double sorted[MostSide];
  std::iota(order, order + n, 0);
  std::sort(order, order + n, [&](std::int64_t x, std::int64_t y) {
    return values[x] != values[y] ? values[x] < values[y] : x < y;
  });
  for (std::int64_t k = 0; k < n; ++k) sorted[k] = values[order[k]];
  std::copy_n(sorted, n, values);
  for (std::int64_t k = 0; rows != nullptr && k < n; ++k) {
    const double* vector = rows + order[k] * n;
    const double sign = sign_of(vector, n);
    for (std::int64_t i = 0; i < n; ++i) columns[i * n + k] = sign * vector[i];
  }
}

void eigh_of(const HostArguments& call, Group& g, std::int64_t n) {
  const bool has_vectors = call.results[1].data != nullptr;
  Numbers w(n);
  Numbers v(n * n);
  g.scale();
  for (std::int64_t i = 0; i < g.count; ++i) take_symmetric_part(g.a.matrix(i), n);
  g.a.to_lanes(g.count);
  lane_kernels().eigh(g.a.lanes, n, w.lanes, has_vectors ? v.lanes : nullptr);
  w.from_lanes(g.count);
  if (has_vectors) v.from_lanes(g.count);
  for (std::int64_t i = 0; i < g.count; ++i) {
    order_values(w.matrix(i), has_vectors ? v.matrix(i) : nullptr, n, g.a.matrix(i));
  }
  g.rescale(w);
  for (Numbers* x : {&w, &g.a}) g.fill_nan(*x);
  w.write(call.results[0], g.first, g.count);
  g.a.write(call.results[1], g.first, g.count);
}

// Calls f(group) for matrices [rows, columns] of operand 0.
template <class F>
void for_groups(const HostArguments& call, std::int64_t matrices, std::int64_t rows,
                std::int64_t columns, const F& f) {
  const std::int64_t lanes = lane_kernels().lanes;
  const std::int64_t size = rows * columns;
  parallel_for(call.pool, (matrices + lanes - 1) / lanes, grain_for(4 * size * (rows + 8)),
               [&](std::int64_t begin, std::int64_t end) {
                 Group g(size);
                 for (std::int64_t i = begin; i < end; ++i) {
                   g.first = i * lanes;
                   g.count = std::min(lanes, matrices - g.first);
                   f(g);
                 }
               });
}

bool is_small_batch(const ArrayView& a, std::int64_t matrices, std::int64_t rows,
                    std::int64_t columns) {
  return !is_complex(a.dtype) && matrices >= FewestTogether && std::min(rows, columns) > 0 &&
         std::max(rows, columns) <= MostSide;
}

}  // namespace

bool factor_in_lanes(const HostArguments& call) {
  using Of = loop::MatrixFunction::Of;
  const auto& f = call.as<loop::MatrixFunction>();
  const bool has_lanes =
      f.of == Of::Cholesky || f.of == Of::Lu || f.of == Of::Qr || f.of == Of::Eigh;
  if (!has_lanes || !is_small_batch(call.operands[0], f.matrices, f.rows, f.columns)) return false;
  for_groups(call, f.matrices, f.rows, f.columns, [&](Group& g) {
    g.read(call.operands[0]);
    switch (f.of) {
      case Of::Cholesky: return cholesky_of(call, g, f.rows);
      case Of::Lu: return lu_of(call, g, f.rows, f.columns);
      case Of::Qr: return qr_of(call, g, f.rows, f.columns);
      case Of::Eigh: return eigh_of(call, g, f.rows);
      case Of::Svd:
      case Of::Exponential:
      case Of::Adjugate: break;
    }
  });
  return true;
}

bool solve_in_lanes(const HostArguments& call) {
  const auto& s = call.as<loop::Solve>();
  if (!is_small_batch(call.operands[0], s.systems, s.rows, s.rows) || s.columns == 0 ||
      s.columns > MostSide) {
    return false;
  }
  for_groups(call, s.systems, s.rows, s.rows, [&](Group& g) {
    Numbers x(s.rows * s.columns);
    Numbers pivots(s.rows);
    g.a.read(call.operands[0], g.first, g.count);
    x.read(call.operands[1], g.first, g.count);
    g.a.to_lanes(g.count);
    x.to_lanes(g.count);
    lane_kernels().eliminate(g.a.lanes, s.rows, s.rows, pivots.lanes);
    g.a.from_lanes(g.count);
    for (std::int64_t i = 0; i < g.count; ++i) {
      for (std::int64_t k = 0; k < s.rows; ++k) {
        if (g.a.matrix(i)[k * (s.rows + 1)] == 0) fail_singular(call, g.first + i, k);
      }
    }
    lane_kernels().substitute(g.a.lanes, pivots.lanes, s.rows, x.lanes, s.columns);
    x.from_lanes(g.count);
    x.write(call.results[0], g.first, g.count);
  });
  return true;
}

void fail_singular(const HostArguments& call, std::int64_t system, std::int64_t row) {
  call.fail(ErrorCode::SingularMatrix,
            fmt::format("matrix {} of '{}' has no inverse: its pivot in row {} is 0", system,
                        call.name, row),
            "check the matrix for dependent rows, or add a small multiple of the identity");
}

}  // namespace ricci::cpu
