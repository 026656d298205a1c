// Further spellings of calls of ricci/array/{math,shape,more,everyday,create,random}.h, as fingers
// that know NumPy, JAX, PyTorch or MLX type them: an axis by its name, one number where several may
// stand, lists, shapes without braces. What means something else there is refused here.
//
//   Array z = concatenate({x, y}, {.axis = 1});
//   Array p = pad(x, 1);
//   Array r = randn(2, 3);
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <utility>
#include <vector>

#include "ricci/array/create.h"
#include "ricci/array/everyday.h"
#include "ricci/array/more.h"
#include "ricci/array/nn.h"
#include "ricci/array/op_list.h"
#include "ricci/array/random.h"
#include "ricci/array/shape.h"
#include "ricci/array/spectra.h"

namespace ricci {

// An axis by its name: softmax(x, {.axis = 1}), sum(x, {.axis = 0}).
struct AlongAxis {
  std::int64_t axis = -1;
};
#define RICCI_ALONG_AXIS(name)                                                                     \
  [[nodiscard]] inline Array name(const Array& x, AlongAxis along, Here where = Here::current()) { \
    return name(x, along.axis, where);                                                             \
  }
RICCI_ALONG_AXIS(softmax)
RICCI_ALONG_AXIS(log_softmax)
RICCI_ALONG_AXIS(cumsum)
RICCI_ALONG_AXIS(cumprod)
RICCI_ALONG_AXIS(expand_dims)
#undef RICCI_ALONG_AXIS
#define RICCI_ALONG_AXIS(name)                                                       \
  [[nodiscard]] inline Array name(const std::vector<Array>& arrays, AlongAxis along, \
                                  Here where = Here::current()) {                    \
    return name(arrays, along.axis, where);                                          \
  }
RICCI_ALONG_AXIS(concat)
RICCI_ALONG_AXIS(concatenate)
RICCI_ALONG_AXIS(stack)
#undef RICCI_ALONG_AXIS
// Arrays without braces.
template <std::derived_from<Array> A, class... More>
Array concat(const A& x, const More&...) = delete;  // concat({x, y}, axis)
template <std::derived_from<Array> A, class... More>
Array concatenate(const A& x, const More&...) = delete;  // concatenate({x, y}, axis)
template <std::derived_from<Array> A, class... More>
Array stack(const A& x, const More&...) = delete;  // stack({x, y}, axis)
struct ArgOfOptions {
  std::int64_t axis = -1;
  bool keepdims = false;
};
[[nodiscard]] inline Array argmax(const Array& x, ArgOfOptions options,
                                  Here where = Here::current()) {
  return argmax(x, options.axis, options.keepdims, where);
}
[[nodiscard]] inline Array argmin(const Array& x, ArgOfOptions options,
                                  Here where = Here::current()) {
  return argmin(x, options.axis, options.keepdims, where);
}
[[nodiscard]] inline Array argmax(const Array& x, std::int64_t axis, ReduceOptions options,
                                  Here where = Here::current()) {
  return argmax(x, axis, options.keepdims, where);
}
[[nodiscard]] inline Array argmin(const Array& x, std::int64_t axis, ReduceOptions options,
                                  Here where = Here::current()) {
  return argmin(x, axis, options.keepdims, where);
}
[[nodiscard]] inline std::vector<Array> split(const Array& x, std::int64_t parts, AlongAxis along,
                                              Here where = Here::current()) {
  return split(x, parts, along.axis, where);
}

// One axis as a number, and options by name, as sum has them.
#define RICCI_REDUCTION(name)                                                                    \
  template <OneAxis T>                                                                           \
  [[nodiscard]] Array name(const Array& x, T axis, bool keep_dims = false,                       \
                           Here where = Here::current()) {                                       \
    return name(x, one_axis(axis), keep_dims, where);                                            \
  }                                                                                              \
  template <int = 0>                                                                             \
  [[nodiscard]] Array name(const Array& x, const OverAxes& over, Here where = Here::current()) { \
    return name(x, over.axis, over.keepdims, where);                                             \
  }
RICCI_REDUCTION(count_nonzero)
RICCI_REDUCTION(ptp)
RICCI_REDUCTION(nansum)
RICCI_REDUCTION(nanmean)
RICCI_REDUCTION(nanmax)
RICCI_REDUCTION(nanmin)
RICCI_REDUCTION(nanvar)
RICCI_REDUCTION(nanstd)
RICCI_REDUCTION(logmeanexp)
#undef RICCI_REDUCTION
template <OneAxis T>
[[nodiscard]] std::pair<Array, Array> aminmax(const Array& x, T axis, bool keep_dims = false,
                                              Here where = Here::current()) {
  return aminmax(x, one_axis(axis), keep_dims, where);
}
#define RICCI_OF_AXES(name)                                                                      \
  template <int = 0>                                                                             \
  [[nodiscard]] Array name(const Array& x, const OverAxes& over, Here where = Here::current()) { \
    return name(x, over.axis, where);                                                            \
  }
RICCI_OF_AXES(flip)
RICCI_OF_AXES(squeeze)
RICCI_OF_AXES(fftshift)
RICCI_OF_AXES(ifftshift)
#undef RICCI_OF_AXES
template <OneAxis T>
[[nodiscard]] Array fftshift(const Array& x, T axis, Here where = Here::current()) {
  return fftshift(x, one_axis(axis), where);
}
template <OneAxis T>
[[nodiscard]] Array ifftshift(const Array& x, T axis, Here where = Here::current()) {
  return ifftshift(x, one_axis(axis), where);
}

// Elements.
/// Of the sign of the divisor, as `%`.
[[nodiscard]] Array mod(const Array& a, const Array& b, Here where = Here::current());
/// {floor_divide(a, b), mod(a, b)}
[[nodiscard]] std::pair<Array, Array> divmod(const Array& a, const Array& b,
                                             Here where = Here::current());
[[nodiscard]] Array true_divide(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array left_shift(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array right_shift(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array invert(const Array& x, Here where = Here::current());
[[nodiscard]] Array positive(const Array& x, Here where = Here::current());
[[nodiscard]] Array rint(const Array& x, Here where = Here::current());
[[nodiscard]] Array fix(const Array& x, Here where = Here::current());
/// Rounded to so many digits behind the point, or before it where that is negative.
[[nodiscard]] Array round(const Array& x, int decimals, Here where = Here::current());
[[nodiscard]] Array around(const Array& x, int decimals = 0, Here where = Here::current());
[[nodiscard]] Array fabs(const Array& x, Here where = Here::current());
[[nodiscard]] Array arcsinh(const Array& x, Here where = Here::current());
[[nodiscard]] Array arccosh(const Array& x, Here where = Here::current());
[[nodiscard]] Array arctanh(const Array& x, Here where = Here::current());
[[nodiscard]] Array radians(const Array& x, Here where = Here::current());
[[nodiscard]] Array degrees(const Array& x, Here where = Here::current());
[[nodiscard]] Array hardswish(const Array& x, Here where = Here::current());
[[nodiscard]] Array expit(const Array& x, Here where = Here::current());
[[nodiscard]] Array logsigmoid(const Array& x, Here where = Here::current());
[[nodiscard]] Array celu(const Array& x, double alpha = 1, Here where = Here::current());
/// A bound that is `none` is none.
[[nodiscard]] Array clip(const Array& x, std::nullopt_t, const Array& high,
                         Here where = Here::current());
[[nodiscard]] Array clip(const Array& x, const Array& low, std::nullopt_t,
                         Here where = Here::current());
/// A whole number here is an axis to some and an element to others: amax(x, axis), maximum(x, 0).
template <std::integral T>
Array max(const Array& x, T axis_or_number) = delete;  // amax(x, axis) or maximum(x, number)
template <std::integral T>
Array min(const Array& x, T axis_or_number) = delete;  // amin(x, axis) or minimum(x, number)

// Over axes.
[[nodiscard]] inline Array max(const Array& x, const AxisList& axes, bool keep_dims = false,
                               Here where = Here::current()) {
  return amax(x, axes, keep_dims, where);
}
[[nodiscard]] inline Array min(const Array& x, const AxisList& axes, bool keep_dims = false,
                               Here where = Here::current()) {
  return amin(x, axes, keep_dims, where);
}
template <OneAxis T>
[[nodiscard]] Array max(const Array& x, T axis, bool keep_dims, Here where = Here::current()) {
  return amax(x, axis, keep_dims, where);
}
template <OneAxis T>
[[nodiscard]] Array min(const Array& x, T axis, bool keep_dims, Here where = Here::current()) {
  return amin(x, axis, keep_dims, where);
}
template <std::integral T>
[[nodiscard]] Array max(const Array& x, T axis, ReduceOptions options,
                        Here where = Here::current()) {
  return amax(x, axis, options, where);
}
template <std::integral T>
[[nodiscard]] Array min(const Array& x, T axis, ReduceOptions options,
                        Here where = Here::current()) {
  return amin(x, axis, options, where);
}
template <int = 0>
[[nodiscard]] Array max(const Array& x, const OverAxes& over, Here where = Here::current()) {
  return amax(x, over, where);
}
template <int = 0>
[[nodiscard]] Array min(const Array& x, const OverAxes& over, Here where = Here::current()) {
  return amin(x, over, where);
}
/// The mean of all.
[[nodiscard]] Array average(const Array& x, Here where = Here::current());
/// Several quantiles, along a new first axis.
[[nodiscard]] Array quantile(const Array& x, const std::vector<double>& qs,
                             std::optional<std::int64_t> axis = {}, bool keep_dims = false,
                             Here where = Here::current());
/// Between which of rising `edges` each is: the number of edges not above it.
[[nodiscard]] Array digitize(const Array& x, const Array& edges, Here where = Here::current());

// Shapes.
/// Several new axes, numbered as they are in the result.
[[nodiscard]] Array expand_dims(const Array& x, const AxisList& axes, Here where = Here::current());
template <std::integral T>
[[nodiscard]] Array reshape(const Array& x, T size, Here where = Here::current()) {
  return reshape(x, {Dim(static_cast<std::int64_t>(size))}, where);
}
[[nodiscard]] Array expand(const Array& x, const Dims& shape, Here where = Here::current());
[[nodiscard]] Array permute_dims(const Array& x, const Axes& perm, Here where = Here::current());
[[nodiscard]] Array moveaxis(const Array& x, const std::vector<std::int64_t>& from,
                             const std::vector<std::int64_t>& to, Here where = Here::current());
/// Along several axes.
[[nodiscard]] Array roll(const Array& x, const std::vector<std::int64_t>& shifts,
                         const std::vector<std::int64_t>& axes, Here where = Here::current());
/// As many copies behind each other along the last axis.
template <std::integral T>
[[nodiscard]] Array tile(const Array& x, T count, Here where = Here::current()) {
  return tile(x, std::vector<std::int64_t>{static_cast<std::int64_t>(count)}, where);
}
/// As much at both ends of every axis.
template <std::integral T>
[[nodiscard]] Array pad(const Array& x, T amount, const Array& value = 0,
                        Here where = Here::current()) {
  const Dim n(static_cast<std::int64_t>(amount));
  return pad(x, std::vector<std::pair<Dim, Dim>>(x.rank(), {n, n}), value, where);
}
/// {before, after} of every axis. A template, so that a list of pairs is one.
template <int = 0>
[[nodiscard]] Array pad(const Array& x, const std::pair<std::int64_t, std::int64_t>& amounts,
                        const Array& value = 0, Here where = Here::current()) {
  const std::pair<Dim, Dim> one(amounts.first, amounts.second);
  return pad(x, std::vector<std::pair<Dim, Dim>>(x.rank(), one), value, where);
}
[[nodiscard]] std::vector<Array> unstack(const Array& x, std::int64_t axis = 0,
                                         Here where = Here::current());
[[nodiscard]] std::vector<Array> hsplit(const Array& x, std::int64_t parts,
                                        Here where = Here::current());
[[nodiscard]] std::vector<Array> vsplit(const Array& x, std::int64_t parts,
                                        Here where = Here::current());
/// The rows with these numbers.
[[nodiscard]] Array take(const Array& x, const std::vector<std::int64_t>& places,
                         std::int64_t axis = 0, Here where = Here::current());
/// x[mask]
[[nodiscard]] Array masked_select(const Array& x, const Array& mask, Here where = Here::current());
/// The places that are not 0, as `nonzero`.
[[nodiscard]] std::vector<Array> where(const Array& condition, Here at = Here::current());
// PyTorch's are by element along an axis, ours are slices of one.
template <std::integral T>
Array gather(const Array& x, T dim,
             const Array& indices) = delete;  // take_along_axis(x, indices, dim)
template <std::integral T>
Array transpose(const Array& x, T a, T b) = delete;  // swapaxes(x, a, b) or transpose(x, {a, b})

// Products.
/// Summed over these axes of a and those of b.
[[nodiscard]] Array tensordot(
    const Array& a, const Array& b,
    const std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>& axes,
    Here where = Here::current());
namespace linalg {
using ricci::adjugate;
using ricci::cross;
using ricci::matmul;
using ricci::multi_dot;
using ricci::outer;
using ricci::pinv;
using ricci::qr;
using ricci::svd;
using ricci::trace;
/// Of Hermitian matrices, rising.
[[nodiscard]] Array eigvalsh(const Array& a, Here where = Here::current());
/// Falling.
[[nodiscard]] Array svdvals(const Array& a, Here where = Here::current());
[[nodiscard]] Array matrix_rank(const Array& a, Here where = Here::current());
}  // namespace linalg

// Windows whose stride is a number: max_pool2d(x, 3, 2, 1).
template <std::integral T>
[[nodiscard]] Array max_pool2d(const Array& x, Pair window, T stride, std::int64_t padding = 0,
                               Here where = Here::current()) {
  const PoolOptions options{.stride = Pair(static_cast<std::int64_t>(stride)), .padding = padding};
  return max_pool2d(x, window, options, where);
}
template <std::integral T>
[[nodiscard]] Array avg_pool2d(const Array& x, Pair window, T stride, std::int64_t padding = 0,
                               Here where = Here::current()) {
  const PoolOptions options{.stride = Pair(static_cast<std::int64_t>(stride)), .padding = padding};
  return avg_pool2d(x, window, options, where);
}

struct CrossEntropyOptions {
  double label_smoothing = 0;  ///< what all classes share of the target's weight
};
[[nodiscard]] Array cross_entropy(const Array& logits, const Array& target,
                                  CrossEntropyOptions options, Here where = Here::current());

// What makes arrays.
template <std::integral T>
[[nodiscard]] Array zeros(T size, CreateOptions options = {}, Here where = Here::current()) {
  return zeros({Dim(static_cast<std::int64_t>(size))}, options, where);
}
template <std::integral T>
[[nodiscard]] Array ones(T size, CreateOptions options = {}, Here where = Here::current()) {
  return ones({Dim(static_cast<std::int64_t>(size))}, options, where);
}
template <std::integral T, detail::IsDType D>
[[nodiscard]] Array zeros(T size, D dtype, Here where = Here::current()) {
  return zeros(size, CreateOptions{.dtype = dtype}, where);
}
template <std::integral T, detail::IsDType D>
[[nodiscard]] Array ones(T size, D dtype, Here where = Here::current()) {
  return ones(size, CreateOptions{.dtype = dtype}, where);
}
template <std::same_as<CreateOptions> T = CreateOptions>
[[nodiscard]] Array eye(std::int64_t n, T options, Here where = Here::current()) {
  return eye(n, std::nullopt, options, where);
}
/// `eye`, of n rows and columns.
[[nodiscard]] Array identity(std::int64_t n, Here where = Here::current());
/// 10 to the powers of linspace(first, last, count).
[[nodiscard]] Array logspace(double first, double last, std::int64_t count,
                             Here where = Here::current());
template <std::integral... N>
  requires(sizeof...(N) > 0)
[[nodiscard]] Array randn(N... sizes) {
  return randn(Dims{Dim(static_cast<std::int64_t>(sizes))...});
}
template <std::integral... N>
  requires(sizeof...(N) > 0)
[[nodiscard]] Array rand(N... sizes) {
  return rand(Dims{Dim(static_cast<std::int64_t>(sizes))...});
}
/// PyTorch's order.
[[nodiscard]] Array randint(std::int64_t low, std::int64_t high, const Dims& shape,
                            Here where = Here::current());
/// uniform(key, {2}, {.dtype = float64})
template <std::same_as<RandomOptions> T = RandomOptions>
[[nodiscard]] Array uniform(const Key& key, const Dims& shape, T options,
                            Here where = Here::current()) {
  return uniform(key, shape, 0, 1, options, where);
}
template <std::same_as<RandomOptions> T = RandomOptions>
[[nodiscard]] Array normal(const Key& key, const Dims& shape, T options,
                           Here where = Here::current()) {
  return normal(key, shape, 0, 1, options, where);
}
/// One number. Templates, so that a shape in braces is no key.
template <std::derived_from<Key> K>
[[nodiscard]] Array uniform(const K& key, Here where = Here::current()) {
  return uniform(key, Dims{}, 0, 1, {}, where);
}
template <std::derived_from<Key> K>
[[nodiscard]] Array normal(const K& key, Here where = Here::current()) {
  return normal(key, Dims{}, 0, 1, {}, where);
}
template <std::derived_from<Key> K>
[[nodiscard]] Array choice(const K& key, std::int64_t n, Here where = Here::current()) {
  return choice(key, n, Dims{}, {}, where);
}
/// The rows in another order.
[[nodiscard]] Array shuffle(const Key& key, const Array& x, Here where = Here::current());
namespace random {
using ricci::choice;
using ricci::normal;
using ricci::shuffle;
using ricci::uniform;
}  // namespace random

}  // namespace ricci
