// Inner loops written once with vector extensions and compiled for each instruction set; the table
// for this machine is chosen once. Everything here works on caller's memory, on one thread.
#pragma once

#include <cstdint>

namespace ricci::cpu {

/// C = A B, or C += A B, for C [m, n] with neighbouring columns. Strides count elements.
template <class T>
struct Product {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const T* a = nullptr;
  std::int64_t a_row = 0;
  std::int64_t a_column = 0;
  const T* b = nullptr;
  std::int64_t b_row = 0;
  std::int64_t b_column = 1;
  T* c = nullptr;
  std::int64_t c_row = 0;
  bool accumulate = false;
};

template <class T>
struct ProductKernels {
  /// Blocks in registers, for matrices that fit into the cache; b_column is 1.
  void (*blocks)(const Product<T>&) = nullptr;
  /// The same with strips of B copied together: any size, any strides of A and B.
  void (*packed)(const Product<T>&) = nullptr;
  /// At most 4 rows against a matrix read once, row by row; b_column is 1.
  void (*rows)(const Product<T>&) = nullptr;
  /// At most 4 rows, each along the rows of Bᵀ; a_column and b_row are 1.
  void (*dots)(const Product<T>&) = nullptr;
};

/// A block of attention scores, transposed: [keys, Queries], one lane to a query, so that nothing
/// is summed across lanes. Statistics have one number for each query.
struct ScoreKernels {
  static constexpr std::int64_t Queries = 64;

  /// Takes a block into running maxima and totals: s becomes e^(s - maximum), and `correction` what
  /// earlier blocks are multiplied by. A query that has seen nothing but -inf has a total of 0.
  void (*take)(float* s, std::int64_t keys, float* maximum, float* total,
               float* correction) = nullptr;
  /// s becomes e^(s - shift).
  void (*exp_shifted)(float* s, std::int64_t keys, const float* shift) = nullptr;
  /// s becomes cap·tanh(s / cap); `slope`, unless null, the derivative of that.
  void (*cap)(float* s, std::int64_t keys, float cap, float* slope) = nullptr;
  /// total += Σ over keys of p·dp where p is not 0.
  void (*add_products)(const float* p, const float* dp, std::int64_t keys, float* total) = nullptr;
  /// dp becomes p·(dp - mean)·scale, times `slope` unless null; 0 where p is.
  void (*gradient)(const float* p, float* dp, std::int64_t keys, const float* mean, float scale,
                   const float* slope) = nullptr;
};

struct VectorKernels {
  const char* name = nullptr;
  ProductKernels<float> f32;
  ProductKernels<double> f64;
  ProductKernels<std::uint32_t> u32;
  ProductKernels<std::uint64_t> u64;
  ScoreKernels scores;
  void (*exp)(const float* x, float* y, std::int64_t count) = nullptr;  ///< within 2 ulp
  void (*widen_f16)(const std::uint16_t* from, float* to, std::int64_t count) = nullptr;
  void (*widen_bf16)(const std::uint16_t* from, float* to, std::int64_t count) = nullptr;
  /// Rounded to nearest even; a NaN stays one.
  void (*narrow_f16)(const float* from, std::uint16_t* to, std::int64_t count) = nullptr;
  void (*narrow_bf16)(const float* from, std::uint16_t* to, std::int64_t count) = nullptr;
};

/// The best table this machine can run.
[[nodiscard]] const VectorKernels& vector_kernels() noexcept;

namespace vector_base {
extern const VectorKernels kernels;
}
namespace vector_avx2 {
extern const VectorKernels kernels;
}
namespace vector_avx512 {
extern const VectorKernels kernels;
}

}  // namespace ricci::cpu
