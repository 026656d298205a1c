// Triangular and orthonormal factors. Small matrices of a batch are factorised here, any number at
// a time; large ones by LAPACK, which does one at a time.
#include <numeric>

#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/matrices.h"

namespace ricci::cpu {
namespace {

// l lᴴ = a, row after row, in the lower triangle of a. False when a pivot is not positive.
template <class F>
bool factor_positive(F* a, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    F* row = a + i * n;
    for (std::int64_t j = 0; j <= i; ++j) {
      const F* other = a + j * n;
      F sum = row[j];
      for (std::int64_t k = 0; k < j; ++k) sum -= row[k] * conjugate_of(other[k]);
      if (j < i) {
        row[j] = sum / other[j];
        continue;
      }
      const RealPart<F> pivot = std::real(sum);
      if (!(pivot > 0) || !std::isfinite(pivot)) return false;
      row[i] = std::sqrt(pivot);
    }
  }
  return true;
}

// The lower triangle of a row-major matrix is the upper one of its transpose, which is what the
// library sees; with a Hermitian, its factor u has uᵀ = l.
template <class F>
bool factor_positive_large(F* a, blasint n) {
  const auto lock = alone();
  blasint info = 0;
  RICCI_BY_NUMBER(F, potrf)("U", &n, a, &n, &info);
  return info == 0;
}

template <class F>
class CholeskyKernel {
 public:
  CholeskyKernel(const HostArguments& call, Scratch& scratch)
      : m_(call), a_(scratch.take<F>(m_.tiles() * m_.size())) {}

  void run() const {
    if (m_.factored_in_lanes()) return;
    const std::int64_t n = m_.rows();
    m_.for_each([&](std::int64_t b, std::int64_t tile) {
      F* a = a_ + tile * m_.size();
      bool good = m_.read(b, a);
      if (good) {
        take_hermitian_part(a, n);
        good = n <= SmallMatrix ? factor_positive(a, n) : factor_positive_large(a, m_.counted(n));
      }
      for (std::int64_t i = 0; good && i < n; ++i) {
        good = is_finite_number(a[i * n + i]);
        std::fill(a + i * n + i + 1, a + (i + 1) * n, F(0));
      }
      if (good) {
        m_.write(0, b, m_.size(), a);
      } else {
        m_.write_nan(0, b, m_.size());
      }
    });
  }

 private:
  MatrixCall<F> m_;
  F* a_;
};

// How the library compares pivots.
template <class F>
RealPart<F> pivot_size(F x) {
  return std::abs(std::real(x)) + std::abs(std::imag(x));
}

// Elimination with partial pivoting of a row-major matrix; pivots as the rows exchanged.
template <class F>
void eliminate(F* a, std::int64_t rows, std::int64_t columns, blasint* pivots) {
  for (std::int64_t k = 0; k < std::min(rows, columns); ++k) {
    std::int64_t pivot = k;
    for (std::int64_t i = k + 1; i < rows; ++i) {
      if (pivot_size(a[i * columns + k]) > pivot_size(a[pivot * columns + k])) pivot = i;
    }
    pivots[k] = static_cast<blasint>(pivot);
    F* top = a + k * columns;
    if (pivot != k) std::swap_ranges(top, top + columns, a + pivot * columns);
    if (top[k] == F(0)) continue;
    for (std::int64_t i = k + 1; i < rows; ++i) {
      F* row = a + i * columns;
      row[k] /= top[k];
      const F factor = row[k];
      for (std::int64_t j = k + 1; j < columns; ++j) row[j] -= factor * top[j];
    }
  }
}

template <class F>
class LuKernel {
 public:
  LuKernel(const HostArguments& call, Scratch& scratch)
      : m_(call),
        a_(scratch.take<F>(m_.tiles() * m_.size())),
        columns_first_(scratch.take<F>(is_small() ? 0 : m_.tiles() * m_.size())),
        pivots_(scratch.take<blasint>(m_.tiles() * m_.smaller())),
        numbers_(scratch.take<std::int64_t>(m_.tiles() * (m_.rows() + m_.smaller()))) {}

  void run() const {
    if (m_.factored_in_lanes()) return;
    m_.for_each([&](std::int64_t b, std::int64_t tile) {
      F* a = a_ + tile * m_.size();
      blasint* pivots = pivots_ + tile * m_.smaller();
      if (m_.read(b, a)) {
        factor(a, columns_first_ + (is_small() ? 0 : tile * m_.size()), pivots);
        m_.write(0, b, m_.size(), a);
      } else {
        std::iota(pivots, pivots + m_.smaller(), 0);
        m_.write_nan(0, b, m_.size());
      }
      write_rows(b, pivots, numbers_ + tile * (m_.rows() + m_.smaller()));
    });
  }

 private:
  [[nodiscard]] bool is_small() const { return std::max(m_.rows(), m_.columns()) <= SmallMatrix; }

  void factor(F* a, F* columns_first, blasint* pivots) const {
    if (is_small() || m_.size() == 0) {
      eliminate(a, m_.rows(), m_.columns(), pivots);
      return;
    }
    transpose_matrix(a, m_.rows(), m_.columns(), columns_first);
    const blasint rows = m_.counted(m_.rows());
    const blasint columns = m_.counted(m_.columns());
    {
      const auto lock = alone();
      blasint info = 0;
      RICCI_BY_NUMBER(F, getrf)(&rows, &columns, columns_first, &rows, pivots, &info);
    }
    for (std::int64_t k = 0; k < m_.smaller(); ++k) --pivots[k];
    transpose_matrix(columns_first, m_.columns(), m_.rows(), a);
  }

  void write_rows(std::int64_t b, const blasint* pivots, std::int64_t* numbers) const {
    std::int64_t* permutation = numbers + m_.smaller();
    std::copy(pivots, pivots + m_.smaller(), numbers);
    std::iota(permutation, permutation + m_.rows(), 0);
    for (std::int64_t k = 0; k < m_.smaller(); ++k) {
      std::swap(permutation[k], permutation[pivots[k]]);
    }
    m_.write(1, b, m_.smaller(), numbers);
    m_.write(2, b, m_.rows(), permutation);
  }

  MatrixCall<F> m_;
  F* a_;
  F* columns_first_;
  blasint* pivots_;
  std::int64_t* numbers_;
};

// The library sees the transpose of a row-major matrix: aᵀ = L Q gives a = Qᵀ Lᵀ, both of which lie
// row by row where L and Q lie column by column.
template <class F>
class QrKernel {
 public:
  QrKernel(const HostArguments& call, Scratch& scratch)
      : m_(call),
        work_size_(64 * std::max(m_.rows(), m_.columns())),
        a_(scratch.take<F>(m_.tiles() * m_.size())),
        q_(scratch.take<F>(m_.tiles() * m_.rows() * m_.smaller())),
        r_(scratch.take<F>(m_.tiles() * m_.smaller() * m_.columns())),
        tau_(scratch.take<F>(m_.smaller())),
        work_(scratch.take<F>(work_size_)) {}

  void run() const {
    if (m_.size() == 0 || m_.factored_in_lanes()) return;
    const std::int64_t k = m_.smaller();
    m_.for_each([&](std::int64_t b, std::int64_t tile) {
      F* a = a_ + tile * m_.size();
      F* q = q_ + tile * m_.rows() * k;
      F* r = r_ + tile * k * m_.columns();
      if (!m_.read(b, a)) {
        m_.write_nan(0, b, m_.rows() * k);
        m_.write_nan(1, b, k * m_.columns());
        return;
      }
      factor(a, r);
      for (std::int64_t i = 0; i < m_.rows(); ++i) {
        std::copy(a + i * m_.columns(), a + i * m_.columns() + k, q + i * k);
      }
      turn(q, r);
      m_.write(0, b, m_.rows() * k, q);
      m_.write(1, b, k * m_.columns(), r);
    });
  }

 private:
  void factor(F* a, F* r) const {
    const blasint rows = m_.counted(m_.columns());
    const blasint columns = m_.counted(m_.rows());
    const blasint kept = m_.counted(m_.smaller());
    const blasint work = m_.counted(work_size_);
    blasint info = 0;
    const auto lock = alone();
    RICCI_BY_NUMBER(F, gelqf)(&rows, &columns, a, &rows, tau_, work_, &work, &info);
    for (std::int64_t i = 0; i < m_.smaller(); ++i) {
      F* row = r + i * m_.columns();
      std::fill(row, row + i, F(0));
      std::copy(a + i * m_.columns() + i, a + (i + 1) * m_.columns(), row + i);
    }
    const F* tau = tau_;
    if constexpr (is_complex_number<F>) {
      RICCI_BY_NUMBER(F, unglq)(&kept, &columns, &kept, a, &rows, tau, work_, &work, &info);
    } else {
      RICCI_BY_NUMBER(F, orglq)(&kept, &columns, &kept, a, &rows, tau, work_, &work, &info);
    }
  }

  // Turns rows of r and columns of q such that the diagonal of r is not negative.
  void turn(F* q, F* r) const {
    const std::int64_t k = m_.smaller();
    for (std::int64_t i = 0; i < k; ++i) {
      F* row = r + i * m_.columns();
      const RealPart<F> size = std::abs(row[i]);
      if (size == 0 || row[i] == F(size)) continue;
      const F by = row[i] / size;
      for (std::int64_t j = i; j < m_.columns(); ++j) row[j] *= conjugate_of(by);
      row[i] = size;
      for (std::int64_t j = 0; j < m_.rows(); ++j) q[j * k + i] *= by;
    }
  }

  MatrixCall<F> m_;
  std::int64_t work_size_;
  F* a_;
  F* q_;
  F* r_;
  F* tau_;
  F* work_;
};

}  // namespace

HostKernel cholesky_kernel() noexcept { return kernel_chosen_by<CholeskyKernel, ByMatrix>(); }
HostKernel lu_kernel() noexcept { return kernel_chosen_by<LuKernel, ByMatrix>(); }
HostKernel qr_kernel() noexcept { return kernel_chosen_by<QrKernel, ByMatrix>(); }

}  // namespace ricci::cpu
