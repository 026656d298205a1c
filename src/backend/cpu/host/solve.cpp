// Linear systems: LU with partial pivoting from LAPACK, substitution from BLAS, one system a call
// and any number of calls at once; batches of small ones in lanes.
#include <array>

#include "backend/cpu/host/element.h"
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/lapack.h"
#include "backend/cpu/host/scratch.h"
#include "backend/cpu/host/simd.h"
#include "backend/cpu/host/small_matrices.h"

namespace ricci::cpu {
namespace {

// Fortran's matrices are column by column.
OwnedView with_last_axes_swapped(const ArrayView& v) {
  const std::size_t rank = v.dims.size();
  return OwnedView(v).permute(
      [rank](std::size_t k) { return k + 2 < rank ? k : 2 * rank - 3 - k; });
}

template <class F>
void factor(F* a, blasint n, blasint* pivots, blasint* info) {
  const auto lock = alone();
  RICCI_BY_NUMBER(F, getrf)(&n, &n, a, &n, pivots, info);
}

template <class F>
void substitute(const F* a, blasint n, const blasint* pivots, F* b, blasint columns) {
  const auto lock = alone();
  blasint info = 0;
  RICCI_BY_NUMBER(F, getrs)("N", &n, &columns, a, &n, pivots, b, &n, &info);
}

template <class F>
class DenseSolve {
 public:
  DenseSolve(const HostArguments& call, Scratch& scratch)
      : call_(call),
        s_(call.as<loop::Solve>()),
        a_(scratch.take<F>(s_.systems * s_.rows * s_.rows)),
        x_(scratch.take<F>(s_.systems * s_.rows * s_.columns)),
        pivots_(scratch.take<blasint>(s_.systems * s_.rows)) {}

  void run() const {
    if (solve_in_lanes(call_)) return;
    pack_numbers(with_last_axes_swapped(call_.operands[0]).view(), a_, call_.pool);
    if (s_.has_columns) {
      pack_numbers(with_last_axes_swapped(call_.operands[1]).view(), x_, call_.pool);
    } else {
      pack_numbers(call_.operands[1], x_, call_.pool);
    }
    parallel_for(call_.pool, s_.systems, grain_for(s_.rows * s_.rows * (s_.rows + s_.columns)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) solve(i);
                 });
  }

 private:
  void solve(std::int64_t system) const {
    if (s_.rows == 0) return;
    F* a = a_ + system * s_.rows * s_.rows;
    F* x = x_ + system * s_.rows * s_.columns;
    blasint* pivots = pivots_ + system * s_.rows;
    const auto n = static_cast<blasint>(s_.rows);
    blasint info = 0;
    factor(a, n, pivots, &info);
    if (info > 0) fail_singular(call_, system, info - 1);
    if (s_.columns == 0) return;
    substitute(a, n, pivots, x, static_cast<blasint>(s_.columns));
    for (std::int64_t i = 0; i < s_.rows; ++i) write_row(system, i, x + i);
  }

  // x[i, :], whose elements are a column apart.
  void write_row(std::int64_t system, std::int64_t i, const F* x) const {
    constexpr std::int64_t Block = 128;
    const std::int64_t to = (system * s_.rows + i) * s_.columns;
    std::array<F, Block> row;
    for (std::int64_t first = 0; first < s_.columns; first += Block) {
      const std::int64_t count = std::min(Block, s_.columns - first);
      for (std::int64_t j = 0; j < count; ++j) {
        row[static_cast<std::size_t>(j)] = x[(first + j) * s_.rows];
      }
      write_numbers(call_.results[0], to + first, count, row.data());
    }
  }

  const HostArguments& call_;
  const loop::Solve& s_;
  F* a_;
  F* x_;
  blasint* pivots_;
};

struct Triangle {
  CBLAS_UPLO uplo;
  CBLAS_TRANSPOSE transpose;
  CBLAS_DIAG diagonal;
  blasint rows;
  blasint columns;
};

template <class F>
void solve_triangle(const Triangle& t, const F* a, F* x) {
  const auto lock = alone();
  const auto solve = [&](auto trsm, auto alpha) {
    trsm(CblasRowMajor, CblasLeft, t.uplo, t.transpose, t.diagonal, t.rows, t.columns, alpha, a,
         t.rows, x, t.columns);
  };
  const F one(1);
  if constexpr (std::is_same_v<F, float>) {
    solve(cblas_strsm, one);
  } else if constexpr (std::is_same_v<F, double>) {
    solve(cblas_dtrsm, one);
  } else if constexpr (std::is_same_v<F, std::complex<float>>) {
    solve(cblas_ctrsm, &one);
  } else {
    solve(cblas_ztrsm, &one);
  }
}

// Systems so small that to call the library, one at a time, takes longer than to solve them.
constexpr std::int64_t SmallWork = 8192;

// Rows of x one after the other, as they become known.
template <class F>
void substitute_small(const loop::Solve& s, bool downwards, const F* a, F* x) {
  const auto subtract = [&s](F factor, const F* __restrict from, F* __restrict to) RICCI_INLINE {
    for (std::int64_t j = 0; j < s.columns; ++j) to[j] -= factor * from[j];
  };
  const auto row_at = [&](std::int64_t step) { return downwards ? step : s.rows - 1 - step; };
  vectorised([&]() RICCI_INLINE {
    for (std::int64_t step = 0; step < s.rows; ++step) {
      const std::int64_t i = row_at(step);
      F* to = x + i * s.columns;
      for (std::int64_t known = 0; known < step; ++known) {
        const std::int64_t k = row_at(known);
        subtract(s.transpose ? a[k * s.rows + i] : a[i * s.rows + k], x + k * s.columns, to);
      }
      const F pivot = a[i * (s.rows + 1)];
      for (std::int64_t j = 0; !s.unit && j < s.columns; ++j) to[j] /= pivot;
    }
  });
}

template <class F>
class TriangularSolve {
 public:
  TriangularSolve(const HostArguments& call, Scratch& scratch)
      : call_(call),
        s_(call.as<loop::Solve>()),
        a_(call, 0, scratch),
        x_(scratch.take<F>(s_.systems * s_.rows * s_.columns)) {}

  void run() const {
    a_.pack(call_.pool);
    pack_numbers(call_.operands[1], x_, call_.pool);
    parallel_for(call_.pool, s_.systems, grain_for(s_.rows * s_.rows * s_.columns),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) solve(i);
                 });
  }

 private:
  void solve(std::int64_t system) const {
    const F* a = a_.data() + system * s_.rows * s_.rows;
    if (!s_.unit) require_diagonal(a, system);
    const std::int64_t size = s_.rows * s_.columns;
    if (size == 0) return;
    F* x = x_ + system * size;
    if (s_.rows * size <= SmallWork) {
      substitute_small(s_, is_downwards(), a, x);
      return write_numbers(call_.results[0], system * size, size, x);
    }
    solve_triangle({is_lower() ? CblasLower : CblasUpper, s_.transpose ? CblasTrans : CblasNoTrans,
                    s_.unit ? CblasUnit : CblasNonUnit, static_cast<blasint>(s_.rows),
                    static_cast<blasint>(s_.columns)},
                   a, x);
    write_numbers(call_.results[0], system * size, size, x);
  }

  [[nodiscard]] bool is_lower() const { return s_.matrix == loop::Solve::Matrix::Lower; }

  [[nodiscard]] bool is_downwards() const { return is_lower() != s_.transpose; }

  // The first zero in the order of substitution.
  void require_diagonal(const F* a, std::int64_t system) const {
    for (std::int64_t step = 0; step < s_.rows; ++step) {
      const std::int64_t i = is_downwards() ? step : s_.rows - 1 - step;
      if (a[i * s_.rows + i] == F(0)) fail_singular(call_, system, i);
    }
  }

  const HostArguments& call_;
  const loop::Solve& s_;
  NumberOperand<F> a_;
  F* x_;
};

constexpr auto ByField = [](const HostArguments& call, const auto& f) {
  return with_field(call.operands[0].dtype, call.operands[0].dims.back(), f);
};

}  // namespace

HostKernel dense_solve_kernel() noexcept { return kernel_chosen_by<DenseSolve, ByField>(); }
HostKernel triangular_solve_kernel() noexcept {
  return kernel_chosen_by<TriangularSolve, ByField>();
}

}  // namespace ricci::cpu
