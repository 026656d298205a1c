// Inner loops written once with vector extensions and compiled for each instruction set; the table
// for this machine is chosen once. Everything here works on caller's memory, on one thread.
#pragma once

#include <cstdint>

#include "backend/cpu/kernels/recurrence_kernels.h"

namespace ricci::cpu {

/// C = A B, or C += A B, for C [m, n] with neighbouring columns. Strides count elements.
template <class T, class B = T>
struct Product {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const T* a = nullptr;
  std::int64_t a_row = 0;
  std::int64_t a_column = 0;
  const B* b = nullptr;
  std::int64_t b_row = 0;
  std::int64_t b_column = 1;
  T* c = nullptr;
  std::int64_t c_row = 0;
  bool accumulate = false;
};

/// C = A B, or C += A B, of matrices packed by PanelKernels: all rows of one block of the depth.
template <class T>
struct Panels {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t depth = 0;
  const T* a = nullptr;
  bool a_as_rows = false;  ///< packed from rows whose elements adjoin
  const T* b = nullptr;
  T* c = nullptr;
  std::int64_t c_row = 0;
  bool accumulate = false;
};

/// Large products: both matrices are copied to where the innermost loop wants them.
template <class T>
struct PanelKernels {
  std::int64_t rows = 0;            ///< of A in a strip
  std::int64_t strip_elements = 0;  ///< of A; a further `slack` may be written behind the last
  std::int64_t slack = 0;
  std::int64_t columns = 0;  ///< of B in a strip, which takes columns · depth elements
  std::int64_t lanes = 0;    ///< of a vector
  std::int64_t depth = 0;    ///< the most a block has
  /// Strips of A [rows, depth] or B [depth, columns], read with any strides.
  void (*pack_rows)(const T* a, std::int64_t row, std::int64_t column, std::int64_t rows,
                    std::int64_t depth, T* to) = nullptr;
  void (*pack_columns)(const T* b, std::int64_t row, std::int64_t column, std::int64_t columns,
                       std::int64_t depth, T* to) = nullptr;
  void (*multiply)(const Panels<T>&) = nullptr;
  /// to[k, j] = from[j, k] for j < rows, k < columns; 0 for j from there up to `width`.
  void (*turn)(const T* from, std::int64_t from_row, std::int64_t rows, std::int64_t columns, T* to,
               std::int64_t to_row, std::int64_t width) = nullptr;
};

/// Matrices of a batch; strides in numbers, of any sign, 0 to repeat.
template <class T>
struct TinyMatrices {
  T* data = nullptr;
  std::int64_t batch = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;
};

/// C[β] = A[β] B[β], or C[β] += A[β] B[β], for β < count; m, n and k are 1 to `Most`.
template <class T>
struct TinyProducts {
  static constexpr int Most = 8;
  std::int64_t count = 0;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  TinyMatrices<const T> a = {};
  TinyMatrices<const T> b = {};
  TinyMatrices<T> c = {};
  bool accumulate = false;
  bool complex = false;  ///< an imaginary part follows each number that strides lead to
};

template <class T>
struct ProductKernels {
  /// Blocks in registers, for matrices that fit into the cache; b_column is 1.
  void (*blocks)(const Product<T>&) = nullptr;
  /// Panels packed on the stack: any size, any strides of A and B. k is not 0.
  void (*packed)(const Product<T>&) = nullptr;
  /// A few rows against a matrix read once, row by row; b_column is 1.
  void (*rows)(const Product<T>&) = nullptr;
  /// A few rows, each along the rows of Bᵀ; a_column and b_row are 1.
  void (*dots)(const Product<T>&) = nullptr;
  /// Many small products, as many at a time as a vector has lanes.
  void (*tiny)(const TinyProducts<T>&) = nullptr;
  PanelKernels<T> panels = {};
};

/// Products of 16-bit floats, which are read as they lie and added up in f32. A strip is one of
/// PanelKernels<float>, whose places hold `together` numbers of the depth.
struct NarrowKernels {
  std::int64_t together = 1;
  void (*rows)(const Product<float, std::uint16_t>&) = nullptr;
  void (*dots)(const Product<float, std::uint16_t>&) = nullptr;
  void (*pack_rows)(const std::uint16_t* a, std::int64_t row, std::int64_t column,
                    std::int64_t rows, std::int64_t depth, float* to) = nullptr;
  void (*pack_columns)(const std::uint16_t* b, std::int64_t row, std::int64_t column,
                       std::int64_t columns, std::int64_t depth, float* to) = nullptr;
  void (*multiply)(const Panels<float>&) = nullptr;  ///< `depth` counts places
};

/// Factors of small matrices, one to a lane: number i of all of them side by side, row by row.
/// Sides are at most `Most` long; results are written where nothing else is.
struct SmallMatrixKernels {
  static constexpr std::int64_t Most = 8;
  static constexpr std::int64_t MostLanes = 8;
  std::int64_t lanes = 0;
  /// Numbers [0, span) of `count` matrices, `line` apart, become lanes; missing ones are 0. And
  /// back.
  void (*to_lanes)(const double* from, std::int64_t line, std::int64_t span, std::int64_t count,
                   double* to) = nullptr;
  void (*from_lanes)(const double* from, std::int64_t line, std::int64_t span, std::int64_t count,
                     double* to) = nullptr;
  /// l lᵀ = a in place. NaN in the diagonal: a is not positive.
  void (*cholesky)(double* a, std::int64_t n) = nullptr;
  /// Elimination with partial pivoting in place; pivots are the rows exchanged.
  void (*eliminate)(double* a, std::int64_t rows, std::int64_t columns, double* pivots) = nullptr;
  /// b [n, columns] becomes what solves a x = b.
  void (*substitute)(const double* factors, const double* pivots, std::int64_t n, double* b,
                     std::int64_t columns) = nullptr;
  /// a = q r; the diagonal of r is not negative. a is used up.
  void (*qr)(double* a, std::int64_t rows, std::int64_t columns, double* q, double* r) = nullptr;
  /// Of symmetric matrices, by rotations; values in no order, vectors as rows or not at all (null).
  void (*eigh)(double* a, std::int64_t n, double* values, double* vectors) = nullptr;
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

/// Complex numbers in memory: [row, column] at row · `row` + column · `column`, in real numbers.
template <class T>
struct FourierView {
  T* re = nullptr;
  T* im = nullptr;  ///< null when read: all zero
  std::int64_t row = 0;
  std::int64_t column = 0;
};

/// A step of a transform: `radix` parts of `apart` rows become one.
template <class T>
struct FourierStage {
  std::int64_t radix = 1;
  std::int64_t apart = 1;
  const T* roots = nullptr;  ///< [apart, radix - 1, 2]: what row k of each later part is turned by
  const T* turns = nullptr;  ///< [radix, 2]: cosines and sines
};

/// A transform of rows, each of `lanes` real and as many imaginary numbers: one for every column.
template <class T>
struct FourierRows {
  std::int64_t rows = 1;
  const FourierStage<T>* stages = nullptr;
  std::int64_t count = 0;
};

/// Short lines of complex numbers, real parts before imaginary ones: `lanes` · rows.rows in each.
template <class T>
struct FourierLines {
  /// Of the second half. Columns, which are its rows, divide the lanes and are at least
  /// `fewest_columns`, or are more than lanes.
  FourierRows<T> rows = {};
  const std::int32_t* places = nullptr;  ///< of the rows; only where there are more than lanes
  /// [lanes, 2, lanes] for each block of columns: what column c of row k is turned and scaled by,
  /// where columns of as many lines as fill the lanes are side by side. Row 0 is only scaled.
  const T* roots = nullptr;
  std::int64_t count = 1;  ///< lines, as many as fill the lanes at most
  std::int64_t from_line = 0;
  std::int64_t to_line = 0;
  bool swap = false;  ///< parts change places before and after: the inverse
};

/// to[place of j] = from[j] · factors[j] for j < given, and 0 for the other places below `total`.
template <class T>
struct FourierSpread {
  const T* from = nullptr;
  std::int64_t given = 0;
  std::int64_t total = 0;
  const T* factors = nullptr;            ///< [given, 2]
  const std::int32_t* places = nullptr;  ///< null: j
  std::int64_t apart = 0;                ///< elements from row to row of `to`
  bool swap = false;                     ///< real and imaginary parts change places
  T* to = nullptr;
};

/// Fourier transforms, e^(-2πi·nk/N), of columns side by side. Blocks of rows are 64-aligned.
template <class T>
struct FourierKernels {
  std::int64_t lanes = 0;
  /// In place. Row j of the input lies at its place, which reverses the digits of j.
  void (*transform)(const FourierRows<T>&, T* data) = nullptr;
  /// Rows of a view, at their places; `count` columns, the others are 0.
  void (*load)(const FourierView<const T>&, std::int64_t rows, std::int64_t count,
               const std::int32_t* places, T* data) = nullptr;
  void (*store)(const T* data, std::int64_t rows, std::int64_t count, T scale,
                const FourierView<T>&) = nullptr;
  /// A transform and `store` of all its rows; `joins`: only the last step is left to do.
  void (*finish)(const FourierRows<T>&, bool joins, T* data, std::int64_t count, T scale,
                 const FourierView<T>&) = nullptr;
  std::int64_t fewest_columns = 0;
  /// `data` has room for rows.rows rows. Null where there is none.
  void (*lines)(const FourierLines<T>&, const T* from, T* to, T* data) = nullptr;
  void (*spread)(const FourierSpread<T>&) = nullptr;
  /// Row k, column c times fine[k, c] · coarse[k], columns as rows: lanes k of column c go to row c
  /// of their block, blocks `apart` elements from each other.
  void (*twist)(const T* data, std::int64_t rows, std::int64_t count, const T* fine,
                const T* coarse, T* to, std::int64_t apart) = nullptr;
  /// Rows of the transform of pairs of real numbers become `half` + 1 bins; roots[k] =
  /// e^(-πi·k/half). And back, to their places, twice as large and with their parts exchanged.
  void (*split_rows)(T* data, std::int64_t half, const T* roots) = nullptr;
  void (*join_rows)(const T* from, std::int64_t half, const T* roots, const std::int32_t* places,
                    T* to) = nullptr;
  /// The same for one line of interleaved numbers, bins [begin, end) and their mirror images;
  /// end ≤ half / 2 + 1. Nothing is exchanged.
  void (*split_line)(const T* z, std::int64_t half, const T* cosines, const T* sines,
                     std::int64_t begin, std::int64_t end, T scale, T* bins) = nullptr;
  void (*join_line)(const T* bins, std::int64_t half, const T* cosines, const T* sines,
                    std::int64_t begin, std::int64_t end, T* z) = nullptr;
};

/// A row of activations in 8 bits, in blocks of 32.
struct Int8Row {
  const std::int8_t* codes = nullptr;  ///< -127 to 127
  const float* scales = nullptr;       ///< of every block
  const float* sums_of_32 = nullptr;   ///< scale·Σ codes of every block
  const float* sums_of_16 = nullptr;   ///< of every half block
};

/// Rows of a weight in few bits with a row in 8 bits: products of integers, exact up to a block.
/// Null where there is none.
struct Int8Dots {
  using Dot = float (*)(const std::uint8_t* blocks, std::int64_t count, const Int8Row& x);
  Dot q4_0 = nullptr;
  Dot q8_0 = nullptr;
  Dot q4_k = nullptr;
  Dot q5_k = nullptr;
  Dot q6_k = nullptr;
};

/// Weights in few bits (ricci/quant) to floats.
struct PackedKernels {
  /// `count` blocks that lie behind each other.
  using Blocks = void (*)(const std::uint8_t* blocks, std::int64_t count, float* to);
  Blocks q4_0 = nullptr;
  Blocks q8_0 = nullptr;
  Blocks q4_k = nullptr;
  Blocks q5_k = nullptr;
  Blocks q6_k = nullptr;
  /// Rows of `count` blocks each, behind each other, with a row of x, decoded in registers; null
  /// where there is none. `sums`: of 16 neighbours of x each.
  using Dot = void (*)(const std::uint8_t* rows, std::int64_t row_count, std::int64_t count,
                       const float* x, const float* sums, float* y);
  struct Dots {
    Dot q4_0 = nullptr;
    Dot q8_0 = nullptr;
    Dot q4_k = nullptr;
    Dot q5_k = nullptr;
    Dot q6_k = nullptr;
  };
  Dots dots = {};
  Int8Dots int8_dots = {};
  Int8Dots int8_dots_vnni = {};  ///< of `int8_dots()`
  void (*sum_sixteens)(const float* x, std::int64_t count, float* sums) = nullptr;
  /// acc[j] += Σ_r x[r]·codes[r][j]
  void (*add_int8_rows)(const std::int8_t* codes, std::int64_t stride, const float* x,
                        std::int64_t rows, std::int64_t count, float* acc) = nullptr;
  /// (code - zero)·scale of a row; zeros may be null.
  void (*int8)(const std::int8_t* codes, const float* scales, const float* zeros,
               std::int64_t count, float* to) = nullptr;
  /// The same for codes of 4 bits, two to a byte, from the low half of the first one on.
  void (*int4)(const std::uint8_t* codes, const float* scales, const float* zeros,
               std::int64_t count, float* to) = nullptr;
  /// FP8 times scale, of a row; scales may be null.
  void (*e4m3)(const std::uint8_t* codes, const float* scales, std::int64_t count,
               float* to) = nullptr;
  void (*e5m2)(const std::uint8_t* codes, const float* scales, std::int64_t count,
               float* to) = nullptr;
};

/// c [rows, columns] += x [rows, depth] · w [depth, columns], with neighbouring columns.
struct IntegerSweep {
  std::int64_t rows = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  const std::uint8_t* x = nullptr;
  std::int64_t x_row = 0;
  const std::int8_t* w = nullptr;
  std::int64_t w_row = 0;
  std::int32_t* c = nullptr;
  std::int64_t c_row = 0;
};

/// A row of sums of products, to be made results. Numbers are whole and far below 2^53, so that
/// they are exact in any order.
struct SummedRow {
  std::int64_t count = 0;
  const std::int32_t* sums = nullptr;
  const double* starts = nullptr;   ///< of each column: what is added to its sum
  const double* w_zeros = nullptr;  ///< of each column: how often `x_sum` is taken away
  double x_sum = 0;
};

/// clamp(rne(factor·sum) + zero, low, high)
struct CodeScale {
  const double* factors = nullptr;  ///< of each column
  double zero = 0;
  double low = 0;
  double high = 0;
};

/// Products of u8 and i8, four at a time, in sums that wrap in 32 bits.
struct IntegerKernels {
  static constexpr std::int64_t Columns = 64;  ///< of w in a strip
  /// Codes with the bits of `flip` the other way round, and their sum.
  std::int64_t (*read)(const std::uint8_t* from, std::uint8_t flip, std::int64_t count,
                       std::uint8_t* to) = nullptr;
  /// Columns of w [depth, columns], read with any strides, as strips [depth/4][Columns][4]: depth
  /// is rounded up, and what is missing is 0. Σ_depth of each column is added to `sums`, which has
  /// room for whole strips.
  void (*pack)(const std::int8_t* w, std::int64_t row, std::int64_t column, std::int64_t columns,
               std::int64_t depth, std::int8_t* to, std::int32_t* sums) = nullptr;
  /// c [rows, Columns] = x [rows, depth rounded up to 4] · one strip.
  void (*multiply)(const std::uint8_t* x, std::int64_t x_row, const std::int8_t* strip,
                   std::int64_t rows, std::int64_t depth, std::int32_t* c) = nullptr;
  /// Few rows with a weight as it lies in memory, which is read once.
  void (*sweep)(const IntegerSweep&) = nullptr;
  /// Results of a row, as codes of 8 bits or as the sums themselves, which wrap.
  void (*give_codes)(const SummedRow&, const CodeScale&, std::uint8_t* to) = nullptr;
  void (*give_sums)(const SummedRow&, std::int32_t* to) = nullptr;
};

struct VectorKernels {
  const char* name = nullptr;
  ProductKernels<float> f32;
  ProductKernels<double> f64;
  ProductKernels<std::uint32_t> u32;
  ProductKernels<std::uint64_t> u64;
  NarrowKernels f16;
  NarrowKernels bf16;
  NarrowKernels bf16_pairs;  ///< of `bf16_kernels()`
  SmallMatrixKernels small_matrices;
  ScoreKernels scores;
  FourierKernels<float> fourier_f32;
  FourierKernels<double> fourier_f64;
  PackedKernels packed;
  IntegerKernels integers;
  IntegerKernels integers_vnni;  ///< of `integer_kernels()`
  RecurrenceKernels<float> recurrence_f32;
  RecurrenceKernels<double> recurrence_f64;
  /// Maxima of windows of two by two, side by side in two rows of an image; and the rows' gradient,
  /// which has dy at every window's first maximum.
  void (*max_of_pairs)(const float* upper, const float* lower, std::int64_t count,
                       float* y) = nullptr;
  void (*max_of_pairs_backward)(const float* upper, const float* lower, const float* dy,
                                std::int64_t count, float* d_upper, float* d_lower) = nullptr;
  void (*exp)(const float* x, float* y, std::int64_t count) = nullptr;  ///< within 2 ulp
  void (*widen_f16)(const std::uint16_t* from, float* to, std::int64_t count) = nullptr;
  void (*widen_bf16)(const std::uint16_t* from, float* to, std::int64_t count) = nullptr;
  /// Rounded to nearest even; a NaN stays one.
  void (*narrow_f16)(const float* from, std::uint16_t* to, std::int64_t count) = nullptr;
  void (*narrow_bf16)(const float* from, std::uint16_t* to, std::int64_t count) = nullptr;
};

/// The best table this machine can run.
[[nodiscard]] const VectorKernels& vector_kernels() noexcept;
/// Its products of integers: with VNNI where this machine has it. All give the same integers.
[[nodiscard]] const IntegerKernels& integer_kernels() noexcept;
[[nodiscard]] const Int8Dots& int8_dots() noexcept;
/// Its products of bf16: of pairs at a time where this machine multiplies them so. Numbers below
/// the smallest normal one then count as zero.
[[nodiscard]] const NarrowKernels& bf16_kernels() noexcept;

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
