// Calls: what a program asks of a device beside loop kernels. One plain struct a role, with every
// size, stride and rule that a device needs, found once from an op and its types: back ends serve
// roles and see no tensor op. Operands and results are views of arrays, in the order a role names.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ricci/op/attention.h"
#include "ricci/op/gaussian_splat.h"
#include "ricci/op/indexing.h"
#include "ricci/op/op.h"
#include "ricci/op/reduce.h"
#include "ricci/quant/scheme.h"
#include "ricci/type/real.h"
#include "ricci/type/type.h"

namespace ricci::loop {

/// The axes before one, that axis, and those behind it, each as one size.
struct AxisSplit {
  std::int64_t outer = 1;
  std::int64_t size = 1;
  std::int64_t inner = 1;
  bool operator==(const AxisSplit&) const = default;
};
[[nodiscard]] AxisSplit split_at(std::span<const std::int64_t> dims, std::size_t axis);

enum class Pass : std::uint8_t { Forward, Backward };
using HeightAndWidth = std::array<std::int64_t, 2>;

/// The one call no device has to know: the reference's kernel of an op, on the host. Ops registered
/// at run time, and whatever no role describes or a device does not serve.
struct HostCall {
  static constexpr std::string_view role = "host";
  bool operator==(const HostCall&) const = default;
};

/// a, b -> c:   c[β, i, j] = Σ_k a[β, i, k] · b[β, k, j]
struct MatrixProduct {
  static constexpr std::string_view role = "matrix_product";
  StaticDims batch = {};
  std::int64_t rows = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  /// For every axis of the batch the axis of the operand that moves with it; -1: it repeats.
  std::vector<std::int64_t> a_batch = {};
  std::vector<std::int64_t> b_batch = {};
  bool operator==(const MatrixProduct&) const = default;
};

/// x [rows, depth], w [experts, depth, columns], indices [rows, picks] -> [rows, picks, columns],
/// or with dy -> dx, dw. The axis of picks is left out of the arrays when there is one by nature.
struct GroupedProduct {
  static constexpr std::string_view role = "grouped_product";
  Pass pass = Pass::Forward;
  std::int64_t rows = 0;
  std::int64_t picks = 1;
  std::int64_t experts = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  bool operator==(const GroupedProduct&) const = default;
};

/// x, parts of a weight -> y: products with a matrix Ŵ [depth, columns] in few bits, y = x Ŵ for x
/// [rows, depth], or y = x Ŵᵀ for x [rows, columns]. With `experts` there are as many of them
/// behind each other, of a block format, and a last operand of indices [rows, picks] that says with
/// which of them each of a row's products is.
struct PackedProduct {
  static constexpr std::string_view role = "packed_product";
  quant::Scheme scheme = {};
  bool transposed = false;
  bool int8_activations = false;  ///< x is rounded to 8 bits in blocks of 32
  std::int64_t rows = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  std::int64_t experts = 0;  ///< 0: one matrix, and no indices
  std::int64_t picks = 1;
  bool operator==(const PackedProduct&) const = default;
};

/// w -> y [matrices, depth, columns] f32: matrices of a block format behind each other, written
/// out.
struct PackedDecoding {
  static constexpr std::string_view role = "packed_decoding";
  quant::Scheme scheme = {};
  std::int64_t matrices = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  bool operator==(const PackedDecoding&) const = default;
};

/// How exact sums of products of codes become codes:
///   clamp(rne(factor·Σ (x - x_zero)(w - w_zero)) + out_zero, low, high), in f64
/// Zeros of w and factors are one for all, or one a column.
struct Rescaling {
  std::int64_t x_zero = 0;
  std::vector<std::int64_t> w_zeros = {0};
  std::int64_t out_zero = 0;
  std::vector<double> factors = {};
  std::int64_t low = 0;
  std::int64_t high = 0;
  bool operator==(const Rescaling&) const = default;
};

/// x [batch, rows, depth] i8 or u8, w [batch, depth, columns] i8, bias? [columns] i32 -> y; i32:
/// the sums.
struct IntegerProduct {
  static constexpr std::string_view role = "integer_product";
  Rescaling rescaling = {};
  DType dtype = DType::I8;  ///< of y
  std::int64_t batch = 1;
  std::int64_t rows = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  bool operator==(const IntegerProduct&) const = default;
};

/// Images [N, C, H, W]; of three arrays two are given: x, w -> y; dy, w -> dx; x, dy -> dw.
struct Convolution {
  static constexpr std::string_view role = "convolution";
  enum class Of : std::uint8_t { Image, ImageGradient, WeightGradient };
  Of of = Of::Image;
  DType dtype = DType::F32;
  std::int64_t images = 0;
  std::int64_t channels_in = 0;
  std::int64_t channels_out = 0;
  std::int64_t groups = 1;
  HeightAndWidth size_in{};
  HeightAndWidth size_out{};
  HeightAndWidth kernel{};
  HeightAndWidth stride{1, 1};
  HeightAndWidth padding{0, 0};
  HeightAndWidth dilation{1, 1};

  [[nodiscard]] std::int64_t x_image() const { return channels_in * size_in[0] * size_in[1]; }
  [[nodiscard]] std::int64_t y_image() const { return channels_out * size_out[0] * size_out[1]; }
  [[nodiscard]] std::int64_t taps() const { return channels_in / groups * kernel[0] * kernel[1]; }
  [[nodiscard]] std::int64_t weights() const { return channels_out * taps(); }
  bool operator==(const Convolution&) const = default;
};

/// x, w, bias? -> y of codes, as a convolution whose columns are the channels of the result; what
/// lies outside an image is x_zero.
struct IntegerConvolution {
  static constexpr std::string_view role = "integer_convolution";
  Rescaling rescaling = {};
  Convolution geometry = {};  ///< its dtype is y's
  bool operator==(const IntegerConvolution&) const = default;
};

/// Windows over planes [H, W]: x -> y; of a maximum its gradient, x, dy -> dx; or what another
/// array has at the maxima, x, v -> y.
struct Pooling {
  static constexpr std::string_view role = "pooling";
  enum class Of : std::uint8_t { Windows, ImageGradient, Selection };
  Of of = Of::Windows;
  ReduceKind kind = ReduceKind::Max;
  bool count_padding = true;  ///< in a mean
  DType dtype = DType::F32;
  std::int64_t planes = 0;  ///< N·C
  HeightAndWidth size_in{};
  HeightAndWidth size_out{};
  HeightAndWidth kernel{};
  HeightAndWidth stride{1, 1};
  HeightAndWidth padding{0, 0};
  bool operator==(const Pooling&) const = default;
};

/// Where [batch, position, head, 0] of a row-major operand lies; a head's numbers adjoin.
struct HeadStrides {
  std::int64_t batch = 0;
  std::int64_t position = 0;
  std::int64_t head = 0;
  [[nodiscard]] std::int64_t at(std::int64_t b, std::int64_t s, std::int64_t h) const {
    return b * batch + s * position + h * head;
  }
  bool operator==(const HeadStrides&) const = default;
};

/// q, k, v, mask? -> out, lse?; backward q, k, v, dy, mask?, lse? -> dq, dk, dv, dbias?. Per head,
/// in this order: R = scale · q kᵀ; Z = cap·tanh(R/cap) if there is a cap; Z += bias; P = softmax
/// over the keys the mask allows, 0 elsewhere; out = P v.
struct Attention {
  static constexpr std::string_view role = "attention";
  Pass pass = Pass::Forward;
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< divides `heads`: as many queries share a key
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t width = 0;        ///< of a head of q and k
  std::int64_t value_width = 0;  ///< of a head of v and out
  Real scale = 1;
  Real cap = 0;  ///< 0: none
  MaskKind mask = {};
  HeadStrides q = {};    ///< dq too
  HeadStrides k = {};    ///< dk too
  HeadStrides v = {};    ///< dv too
  HeadStrides out = {};  ///< dy too
  /// A row-major mask or bias, as [batch, head, query, key]; 0 where it repeats.
  std::array<std::int64_t, 4> mask_strides{};
  std::int64_t mask_operand = -1;  ///< which operand is the mask or bias; -1: none
  std::int64_t lse_operand = -1;   ///< which is the lse of the forward pass; -1: none
  std::int64_t mean_operand = -1;  ///< which is Σ P dP of every query; -1: none
  bool operator==(const Attention&) const = default;
};

/// a, b -> x:   a x = b for every system; a is a triangle, or any square.
struct Solve {
  static constexpr std::string_view role = "solve";
  enum class Matrix : std::uint8_t { Dense, Lower, Upper };
  Matrix matrix = Matrix::Dense;
  bool transpose = false;   ///< of a triangle: aᵀ x = b
  bool unit = false;        ///< of a triangle: its diagonal is 1, whatever it holds
  bool has_columns = true;  ///< b and x have an axis of columns
  std::int64_t systems = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 1;
  bool operator==(const Solve&) const = default;
};

/// a -> what a function of matrices gives, for every matrix [rows, columns] of a batch:
///   Cholesky l; Lu lu, pivots, permutation; Qr q, r; Eigh w, v; Svd u, s, vh; Exponential and
///   Adjugate one matrix. Signs and phases as the op of that name says.
struct MatrixFunction {
  static constexpr std::string_view role = "matrix_function";
  enum class Of : std::uint8_t { Cholesky, Lu, Qr, Eigh, Svd, Exponential, Adjugate };
  Of of = Of::Cholesky;
  std::int64_t matrices = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  [[nodiscard]] std::int64_t smaller() const { return rows < columns ? rows : columns; }
  bool operator==(const MatrixFunction&) const = default;
};

/// x -> values, indices: the first `kept` of every row along an axis, in order; of equal elements
/// the first comes first, NaN is above all numbers.
struct Sort {
  static constexpr std::string_view role = "sort";
  AxisSplit x = {};
  std::int64_t kept = 0;
  bool descending = false;
  bool operator==(const Sort&) const = default;
};

/// x -> indices: the first place of the extreme along an axis; a NaN is one.
struct ArgReduce {
  static constexpr std::string_view role = "arg_reduce";
  AxisSplit x = {};
  bool largest = true;
  bool operator==(const ArgReduce&) const = default;
};

/// x -> running totals along an axis.
struct Cumulative {
  static constexpr std::string_view role = "cumulative";
  CumulativeKind kind = CumulativeKind::Cumsum;
  AxisSplit x = {};
  bool exclusive = false;  ///< a total is of what comes before
  bool from_end = false;
  bool operator==(const Cumulative&) const = default;
};

/// table, indices -> out:   out[o, i, t] = table[o, indices[i], t]; `each`: indices[o, i, t].
struct Gather {
  static constexpr std::string_view role = "gather";
  AxisSplit table = {};
  std::int64_t axis = 0;    ///< of the table
  std::int64_t picked = 0;  ///< indices, or how many there are along the axis
  bool each = false;
  bool operator==(const Gather&) const = default;
};

/// updates, indices -> out:   out[o, indices[i], t] += updates[o, i, t]; `each`: indices[o, i, t].
struct Scatter {
  static constexpr std::string_view role = "scatter";
  AxisSplit out = {};
  std::int64_t added = 0;  ///< indices, or how many there are along the axis
  bool each = false;
  bool operator==(const Scatter&) const = default;
};

/// x, updates, indices -> out:   out = x, then out[indices[i], t] = kind(out[indices[i], t],
/// updates[i, t]) for every i in order.
struct ScatterInto {
  static constexpr std::string_view role = "scatter_into";
  ScatterKind kind = ScatterKind::Set;
  AxisSplit out = {};
  std::int64_t updates = 0;  ///< how many rows they are
  bool operator==(const ScatterInto&) const = default;
};

/// x, start -> out, the slice; or x, update, start -> out, x with that slice replaced. A start that
/// would leave the axis moves back inside it.
struct DynamicSlice {
  static constexpr std::string_view role = "dynamic_slice";
  std::int64_t axis = 0;
  std::int64_t size = 0;    ///< of that axis of x
  std::int64_t length = 0;  ///< of the slice
  bool replaces = false;
  bool operator==(const DynamicSlice&) const = default;
};

/// logits, key? -> ids. The stream is that of the run's seed and of `key` plus the key operand's.
struct Sample {
  static constexpr std::string_view role = "sample";
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t top_k = 0;  ///< 0: all
  double top_p = 1;
  double temperature = 1;
  std::uint64_t key = 0;
  std::int64_t key_operand = -1;
  bool operator==(const Sample&) const = default;
};

/// x, delta, a, b, c, h0? -> y, h_final?; backward h0?, then dy, dh_final? ->
/// dx, ddelta, da, db, dc, dh0?. Arrays are [batch, steps, channels] and [batch, steps, states], a
/// [channels, states], or [batch, channels, states] with rates of each row's own, and so is h.
struct SelectiveScan {
  static constexpr std::string_view role = "selective_scan";
  Pass pass = Pass::Forward;
  std::int64_t batch = 0;
  std::int64_t steps = 0;
  std::int64_t channels = 0;
  std::int64_t states = 0;
  bool own_rates = false;
  bool has_initial_state = false;
  bool has_final_cotangent = false;
  bool operator==(const SelectiveScan&) const = default;
};

/// q, k, v, g, beta, state? -> o, state_final?; backward state?, then do, dstate_final? ->
/// dq, dk, dv, dg, dbeta, dstate?. Arrays are [batch, steps, heads, width], gates without a width,
/// states [batch, heads, key_width, value_width].
struct GatedDelta {
  static constexpr std::string_view role = "gated_delta";
  Pass pass = Pass::Forward;
  std::int64_t batch = 0;
  std::int64_t steps = 0;
  std::int64_t key_heads = 0;  ///< divides `heads`
  std::int64_t heads = 0;
  std::int64_t key_width = 0;
  std::int64_t value_width = 0;
  bool has_initial_state = false;
  bool has_final_cotangent = false;
  bool operator==(const GatedDelta&) const = default;
};

/// x -> y, along the middle of three axes [batch, length, inner]:
///   y[k] = scale · Σ_n x[n] · e^(∓2πi·nk/length), + for the inverse
struct FourierTransform {
  static constexpr std::string_view role = "fourier_transform";
  enum class Of : std::uint8_t {
    Complex,
    Blocks,      ///< real arrays; the axis has the real parts, behind them the imaginary ones
    RealToHalf,  ///< x is real; of y there are the bins up to length / 2
    HalfToReal,  ///< of x there are those bins, the others mirror them; y is real
  };
  Of of = Of::Complex;
  std::int64_t batch = 1;
  std::int64_t length = 0;
  std::int64_t inner = 1;
  bool inverse = false;
  Real scale = 1;

  [[nodiscard]] bool is_real() const { return of == Of::RealToHalf || of == Of::HalfToReal; }
  [[nodiscard]] std::int64_t bins() const { return length / 2 + 1; }
  bool operator==(const FourierTransform&) const = default;
};

/// Images of Gaussian splats, as gaussian_splat.h has them: operands and results are the ops'.
/// An operand of rank 2 has the batch in front, one of rank 1 is shared by all images.
struct Splats {
  static constexpr std::string_view role = "splats";
  enum class Stage : std::uint8_t { Prepare, Rasterize, Render, Backward };
  Stage stage = Stage::Render;
  std::int64_t batch = 1;
  std::int64_t count = 0;         ///< splats
  std::int64_t coefficients = 1;  ///< of spherical harmonics, per splat and channel
  std::int64_t entries = 0;       ///< of all tile lists
  std::int64_t width = 1;
  std::int64_t height = 1;
  std::int64_t tile_size = 1;
  Real radius_scale = 1;
  Real alpha_cutoff = 0;
  std::int64_t max_steps = 0;  ///< 0: any number
  Real transmittance_threshold = 0;
  OpacitySpace opacity_space = OpacitySpace::Linear;
  SplatColor color_source = SplatColor::Sh;
  std::int64_t degree = 0;  ///< highest band that is evaluated
  bool view_from_splat = false;
  Real gamma = 1;
  bool lens = false;   ///< `meta` describes one
  bool known = false;  ///< the way back is given what the way there has found

  [[nodiscard]] std::int64_t pixels() const { return width * height; }
  [[nodiscard]] std::int64_t tiles_across() const { return (width + tile_size - 1) / tile_size; }
  [[nodiscard]] std::int64_t tiles_down() const { return (height + tile_size - 1) / tile_size; }
  [[nodiscard]] std::int64_t tiles() const { return tiles_across() * tiles_down(); }
  bool operator==(const Splats&) const = default;
};

using Call =
    std::variant<HostCall, MatrixProduct, GroupedProduct, PackedProduct, PackedDecoding,
                 IntegerProduct, Convolution, IntegerConvolution, Pooling, Attention, Solve,
                 MatrixFunction, Sort, ArgReduce, Cumulative, Gather, Scatter, ScatterInto,
                 DynamicSlice, Sample, SelectiveScan, GatedDelta, FourierTransform, Splats>;

/// `matrix_product`
[[nodiscard]] std::string_view role_of(const Call& call);
/// `matrix_product [8 x 32 by 32 x 16]`: the role and its geometry.
[[nodiscard]] std::string to_string(const Call& call);

/// The results of a call that someone wants.
struct WantedResults {
  std::int64_t count = 0;
  double elements = 0;
};
/// How many operations on numbers a call takes; of one that no role describes, one an element.
[[nodiscard]] double flops_of(const Call& call, const WantedResults& wanted);

/// What a call computes, in the words of the graph: the op whose kernel the reference runs for it.
/// Programs list theirs, and no back end looks inside.
class Reference {
 public:
  explicit Reference(Op op) : op_(std::move(op)) {}
  /// The op's name in reports and messages.
  [[nodiscard]] std::string_view name() const { return op_.mnemonic(); }
  [[nodiscard]] friend const Op& op_of(const Reference& reference) { return reference.op_; }

 private:
  Op op_;
};

}  // namespace ricci::loop
