// Moving matrices between the caller's dtype and strides and the numbers products are computed in.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include "ricci/type/dtype.h"
#include "ricci/type/tensor.h"

#include "backend/cpu/kernels/vector_kernels.h"
#include "backend/cpu/structured/matmul.h"

namespace ricci::cpu {

/// Calls f<R>() with what products of a dtype are computed in: float, double, or unsigned integers,
/// whose sums wrap; complex numbers are two planes of R.
template <class F>
decltype(auto) with_arithmetic(DType dtype, F&& f) {
  switch (dtype) {
    case DType::F64:
    case DType::C128: return f.template operator()<double>();
    case DType::I64: return f.template operator()<std::uint64_t>();
    case DType::I32:
    case DType::U32:
    case DType::I16:
    case DType::I8:
    case DType::U8:
    case DType::Bool: return f.template operator()<std::uint32_t>();
    case DType::F32:
    case DType::F16:
    case DType::BF16:
    case DType::C64: break;
  }
  return f.template operator()<float>();
}

inline std::int64_t size_of_arithmetic(DType dtype) {
  return with_arithmetic(dtype, []<class R>() { return static_cast<std::int64_t>(sizeof(R)); });
}

template <class R>
const ProductKernels<R>& product_kernels() {
  const VectorKernels& k = vector_kernels();
  if constexpr (std::is_same_v<R, float>) return k.f32;
  if constexpr (std::is_same_v<R, double>) return k.f64;
  if constexpr (std::is_same_v<R, std::uint32_t>) return k.u32;
  if constexpr (std::is_same_v<R, std::uint64_t>) return k.u64;
}

/// Columns of B are cut at multiples of this: whole strips of every instruction set.
constexpr std::int64_t PackedColumns = 64;

template <class R, class T>
R widened(T x) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return static_cast<R>(static_cast<double>(x));
  } else {
    return static_cast<R>(x);
  }
}

/// A matrix somewhere; strides in elements.
struct MatrixAt {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;
};

/// Parts a matrix is copied in, each a block of its stored rows.
constexpr std::int64_t RowsPerCopy = 64;
inline std::int64_t copy_parts(const MatmulLayout& to, std::int64_t rows, std::int64_t columns) {
  const std::int64_t stored = to.column == 1 ? rows : columns;
  return (stored + RowsPerCopy - 1) / RowsPerCopy;
}

/// Copies a matrix of `dtype` to numbers with neighbouring columns, `to_row` from row to row.
/// Complex: real parts at `to`, imaginary ones a `plane` further, and, with `negated`, their
/// negatives another plane further.
template <class R>
void gather(DType dtype, const void* from, const MatrixAt& at, R* to, std::int64_t to_row,
            std::int64_t plane, bool negated) {
  const VectorKernels& kernels = vector_kernels();
  with_element_type(dtype, [&]<class T>() {
    const auto* first = static_cast<const T*>(from);
    for (std::int64_t i = 0; i < at.rows; ++i) {
      const T* x = first + i * at.row;
      R* y = to + i * to_row;
      if constexpr (std::is_same_v<T, std::complex<R>>) {
        for (std::int64_t j = 0; j < at.columns; ++j) {
          y[j] = x[j * at.column].real();
          y[j + plane] = x[j * at.column].imag();
          if (negated) y[j + 2 * plane] = -y[j + plane];
        }
      } else if constexpr (std::is_same_v<R, float> && std::is_same_v<T, Float16>) {
        if (at.column == 1) {
          kernels.widen_f16(&x->bits, y, at.columns);
          continue;
        }
        for (std::int64_t j = 0; j < at.columns; ++j)
          kernels.widen_f16(&x[j * at.column].bits, y + j, 1);
      } else if constexpr (std::is_same_v<R, float> && std::is_same_v<T, BFloat16>) {
        if (at.column == 1) {
          kernels.widen_bf16(&x->bits, y, at.columns);
          continue;
        }
        for (std::int64_t j = 0; j < at.columns; ++j)
          kernels.widen_bf16(&x[j * at.column].bits, y + j, 1);
      } else if constexpr (std::is_convertible_v<T, R>) {
        for (std::int64_t j = 0; j < at.columns; ++j) y[j] = widened<R>(x[j * at.column]);
      }
    }
  });
}

/// Stores numbers with neighbouring columns as a matrix of `dtype`, rounded once or wrapped; added
/// to what is there with `accumulate`.
template <class R>
void scatter(DType dtype, const R* from, std::int64_t from_row, std::int64_t plane, void* to,
             const MatrixAt& at, bool accumulate) {
  const VectorKernels& kernels = vector_kernels();
  with_element_type(dtype, [&]<class T>() {
    auto* first = static_cast<T*>(to);
    for (std::int64_t i = 0; i < at.rows; ++i) {
      const R* x = from + i * from_row;
      T* y = first + i * at.row;
      for (std::int64_t j = 0; j < at.columns; ++j) {
        T& out = y[j * at.column];
        if constexpr (std::is_same_v<T, std::complex<R>>) {
          const T value(x[j], x[j + plane]);
          out = accumulate ? out + value : value;
        } else if constexpr (std::is_same_v<R, float> &&
                             (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>)) {
          const auto narrow = std::is_same_v<T, Float16> ? kernels.narrow_f16 : kernels.narrow_bf16;
          if (at.column == 1 && !accumulate) {
            narrow(x, &y->bits, at.columns);
            break;
          }
          const R value = accumulate ? widened<R>(out) + x[j] : x[j];
          narrow(&value, &out.bits, 1);
        } else if constexpr (std::is_convertible_v<T, R>) {
          out = static_cast<T>(accumulate ? widened<R>(out) + x[j] : x[j]);
        }
      }
    }
  });
}

}  // namespace ricci::cpu
