// What kernels on batches of matrices share: reading one matrix after the other, results that are
// wanted, and what is left of a matrix that is not finite.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cpu/host/lapack.h"
#include "backend/cpu/host/parallel.h"
#include "backend/cpu/host/scratch.h"
#include "backend/cpu/host/small_matrices.h"

namespace ricci::cpu {

[[nodiscard]] inline bool is_finite_number(float x) { return std::isfinite(x); }
[[nodiscard]] inline bool is_finite_number(double x) { return std::isfinite(x); }
template <class R>
[[nodiscard]] bool is_finite_number(std::complex<R> x) {
  return std::isfinite(x.real()) && std::isfinite(x.imag());
}

/// The complex conjugate; the library's makes a real number complex.
template <class F>
[[nodiscard]] F conjugate_of(F x) {
  if constexpr (is_complex_number<F>) {
    return std::conj(x);
  } else {
    return x;
  }
}

/// Rows [begin, end) of a [rows, columns] -> to [columns, rows]
template <class F>
void transpose_rows(const F* a, std::int64_t rows, std::int64_t columns, std::int64_t begin,
                    std::int64_t end, F* to) {
  constexpr std::int64_t Block = 16;
  for (std::int64_t i0 = begin; i0 < end; i0 += Block) {
    for (std::int64_t j0 = 0; j0 < columns; j0 += Block) {
      for (std::int64_t i = i0; i < std::min(end, i0 + Block); ++i) {
        for (std::int64_t j = j0; j < std::min(columns, j0 + Block); ++j) {
          to[j * rows + i] = a[i * columns + j];
        }
      }
    }
  }
}

/// a [rows, columns] -> to [columns, rows]
template <class F>
void transpose_matrix(const F* a, std::int64_t rows, std::int64_t columns, F* to) {
  transpose_rows(a, rows, columns, 0, rows, to);
}

/// A function of one matrix after the other; `Slots` of them have room at a time.
template <class F>
class MatrixCall {
 public:
  explicit MatrixCall(const HostArguments& call)
      : call_(call), f_(call.as<loop::MatrixFunction>()), slots_(f_.matrices, 16) {}

  [[nodiscard]] std::int64_t rows() const { return f_.rows; }
  [[nodiscard]] std::int64_t columns() const { return f_.columns; }
  [[nodiscard]] std::int64_t smaller() const { return f_.smaller(); }
  [[nodiscard]] std::int64_t size() const { return f_.rows * f_.columns; }
  [[nodiscard]] std::int64_t count() const { return f_.matrices; }
  [[nodiscard]] ThreadPool& pool() const { return call_.pool; }
  [[nodiscard]] std::int64_t tiles() const { return slots_.tiles; }
  [[nodiscard]] bool wants(std::size_t r) const { return call_.results[r].data != nullptr; }

  /// Is all done, because it is a batch of small matrices?
  [[nodiscard]] bool factored_in_lanes() const { return factor_in_lanes(call_); }
  /// Calls `f(matrix, tile)` for every matrix.
  template <class Fn>
  void for_each(const Fn& f) const {
    slots_.run(call_.pool, f);
  }
  /// Matrix b in row-major order. False when it holds a NaN or an infinity.
  [[nodiscard]] bool read(std::int64_t b, F* to) const {
    read_numbers(call_.operands[0], b * size(), size(), to);
    return std::all_of(to, to + size(), [](F x) { return is_finite_number(x); });
  }
  template <class N>
  void write(std::size_t r, std::int64_t b, std::int64_t count, const N* from) const {
    if (wants(r)) write_numbers(call_.results[r], b * count, count, from);
  }
  /// NaN in all of result r of matrix b.
  void write_nan(std::size_t r, std::int64_t b, std::int64_t count) const {
    if (!wants(r)) return;
    const F nan(std::numeric_limits<RealPart<F>>::quiet_NaN());
    for (std::int64_t i = 0; i < count; ++i)
      write_numbers(call_.results[r], b * count + i, 1, &nan);
  }
  /// The library counts in `blasint`.
  [[nodiscard]] blasint counted(std::int64_t n) const {
    if (n <= std::numeric_limits<blasint>::max()) return static_cast<blasint>(n);
    call_.fail(ErrorCode::UnsupportedOnBackend,
               std::string(call_.name) + " of so large a matrix is more than LAPACK counts to");
  }

 private:
  const HostArguments& call_;
  const loop::MatrixFunction& f_;
  Slots slots_;
};

/// The Hermitian part of a row-major square, in place.
template <class F>
void take_hermitian_part(F* a, std::int64_t n) {
  constexpr auto Half = RealPart<F>(0.5);
  constexpr std::int64_t Block = 16;
  const auto mend = [&](std::int64_t i, std::int64_t j) {
    const F x = (a[i * n + j] + conjugate_of(a[j * n + i])) * Half;
    a[i * n + j] = x;
    a[j * n + i] = conjugate_of(x);
  };
  for (std::int64_t i0 = 0; i0 < n; i0 += Block) {
    for (std::int64_t j0 = 0; j0 <= i0; j0 += Block) {
      for (std::int64_t i = i0; i < std::min(n, i0 + Block); ++i) {
        for (std::int64_t j = j0; j < std::min(i + 1, j0 + Block); ++j) mend(i, j);
      }
    }
  }
}

/// The numbers a matrix function computes with.
constexpr auto ByMatrix = [](const HostArguments& call, const auto& f) {
  const auto& role = call.as<loop::MatrixFunction>();
  return with_field(call.operands[0].dtype, std::max(role.rows, role.columns), f);
};

}  // namespace ricci::cpu
