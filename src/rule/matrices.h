// What the reference kernels of linear algebra are written with: row-major matrices inside arrays,
// behind any number of batch axes.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <vector>

#include "ricci/compiler/rule/eval.h"

namespace ricci::rule {

/// A row-major matrix inside an array.
template <class N>
struct Matrix {
  N* data;
  std::int64_t columns;
  N& operator()(std::int64_t i, std::int64_t j) const { return data[i * columns + j]; }
};

/// One that owns its numbers.
template <class N>
class OwnedMatrix {
 public:
  OwnedMatrix(std::int64_t rows, std::int64_t columns)
      : rows_(rows), columns_(columns), data_(static_cast<std::size_t>(rows * columns)) {}
  [[nodiscard]] static OwnedMatrix identity(std::int64_t n) {
    OwnedMatrix out(n, n);
    for (std::int64_t i = 0; i < n; ++i) out(i, i) = N(1);
    return out;
  }
  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t columns() const { return columns_; }
  N& operator()(std::int64_t i, std::int64_t j) {
    return data_[static_cast<std::size_t>(i * columns_ + j)];
  }
  const N& operator()(std::int64_t i, std::int64_t j) const {
    return data_[static_cast<std::size_t>(i * columns_ + j)];
  }

 private:
  std::int64_t rows_;
  std::int64_t columns_;
  std::vector<N> data_;
};

// The library's std::conj makes a real number complex.
[[nodiscard]] inline double conjugated(double x) { return x; }
[[nodiscard]] inline std::complex<double> conjugated(std::complex<double> x) {
  return std::conj(x);
}
[[nodiscard]] inline bool finite(double x) { return std::isfinite(x); }
[[nodiscard]] inline bool finite(std::complex<double> x) {
  return std::isfinite(x.real()) && std::isfinite(x.imag());
}

/// aᴴ
template <class N>
[[nodiscard]] OwnedMatrix<N> adjoint_of(const OwnedMatrix<N>& a) {
  OwnedMatrix<N> out(a.columns(), a.rows());
  for (std::int64_t i = 0; i < a.rows(); ++i) {
    for (std::int64_t j = 0; j < a.columns(); ++j) out(j, i) = conjugated(a(i, j));
  }
  return out;
}

template <class N>
[[nodiscard]] bool all_finite(const OwnedMatrix<N>& a) {
  for (std::int64_t i = 0; i < a.rows(); ++i) {
    for (std::int64_t j = 0; j < a.columns(); ++j) {
      if (!finite(a(i, j))) return false;
    }
  }
  return true;
}

/// Calls `f.template operator()<N>()` with the numbers of a floating or complex dtype.
template <class F>
void with_field(DType dtype, F&& f) {
  if (is_complex(dtype)) {
    f.template operator()<std::complex<double>>();
  } else {
    f.template operator()<double>();
  }
}

/// The matrices of operand 0, one after the other.
template <class N>
class MatrixBatch {
 public:
  explicit MatrixBatch(const EvalContext& c)
      : a_(c.numbers<N>(0)), rows_(a_.dims[a_.dims.size() - 2]), columns_(a_.dims.back()) {}

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t columns() const { return columns_; }
  [[nodiscard]] std::int64_t count() const {
    std::int64_t n = 1;
    for (std::size_t i = 0; i + 2 < a_.dims.size(); ++i) n *= a_.dims[i];
    return n;
  }
  [[nodiscard]] OwnedMatrix<N> at(std::int64_t b) const {
    OwnedMatrix<N> out(rows_, columns_);
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t j = 0; j < columns_; ++j) {
        out(i, j) = a_.data[static_cast<std::size_t>((b * rows_ + i) * columns_ + j)];
      }
    }
    return out;
  }
  /// (a + aᴴ)/2 of a square one.
  [[nodiscard]] OwnedMatrix<N> hermitian_part(std::int64_t b) const {
    const OwnedMatrix<N> a = at(b);
    OwnedMatrix<N> out(rows_, rows_);
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t j = 0; j < rows_; ++j) out(i, j) = (a(i, j) + conjugated(a(j, i))) / 2.0;
    }
    return out;
  }

 private:
  Nd<N> a_;
  std::int64_t rows_;
  std::int64_t columns_;
};

/// Puts a matrix at its place in a batch of results.
template <class N>
void put(Nd<N>& into, std::int64_t b, const OwnedMatrix<N>& a) {
  const std::int64_t first = b * a.rows() * a.columns();
  for (std::int64_t i = 0; i < a.rows(); ++i) {
    for (std::int64_t j = 0; j < a.columns(); ++j) {
      into.data[static_cast<std::size_t>(first + i * a.columns() + j)] = a(i, j);
    }
  }
}

/// Fills the results of a matrix that is not finite, or has none: NaN in every place.
template <class N>
void put_nan(Nd<N>& into, std::int64_t b, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) {
    into.data[static_cast<std::size_t>(b * size + i)] = N(std::numeric_limits<double>::quiet_NaN());
  }
}

/// Singular values, descending, and vectors of a matrix [M, N], K = min(M, N).
template <class N>
struct SingularFactors {
  OwnedMatrix<N> u;       ///< [M, K]
  std::vector<double> s;  ///< [K]
  OwnedMatrix<N> v;       ///< [N, K]
};
template <class N>
[[nodiscard]] SingularFactors<N> singular_factors(const OwnedMatrix<N>& a);

/// P a = L U in place, with partial pivoting; gives the row each step exchanged its own with.
template <class N>
std::vector<std::int64_t> eliminate(OwnedMatrix<N>& a);
/// The determinant of what `eliminate` leaves.
template <class N>
[[nodiscard]] N determinant(OwnedMatrix<N> a);

}  // namespace ricci::rule
