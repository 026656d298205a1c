// Element-wise functions, reductions and linear algebra on arrays. The element-wise ones come from
// the op list; the rest are forms of ops under the names NumPy, JAX and PyTorch have for them.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <string_view>
#include <utility>
#include <vector>

#include "ricci/array/array.h"
#include "ricci/op/attr.h"

namespace ricci {

/// Axes of a reduction: `1`, `{0, 1}`; none means all.
struct AxisList {
  Axes axes = {};
  AxisList() = default;
  AxisList(std::initializer_list<Axis> list) : axes(list) {}  // NOLINT
  AxisList(Axes list) : axes(std::move(list)) {}              // NOLINT
};

/// The same for a field, where a number is one axis. (Of AxisList itself no number is one: some
/// compilers take {.keepdims = true} for a list of axes then.)
struct SomeAxes : AxisList {
  using AxisList::AxisList;
  template <std::integral T>
  SomeAxes(T axis) : AxisList({Axis(static_cast<std::int64_t>(axis))}) {}  // NOLINT
};
/// sum(x, true) is of no axis.
template <class T>
concept OneAxis = std::integral<T> && !std::same_as<T, bool>;
template <OneAxis T>
[[nodiscard]] AxisList one_axis(T axis) {
  return {Axis(static_cast<std::int64_t>(axis))};
}
/// First in structs whose fields are only given by their names: {0, 1} is none of them.
struct ByName {
  constexpr ByName() {}  // NOLINT: an aggregate would be passed over
};
/// sum(x, {.axis = {0, 1}, .keepdims = true}); without axes all. What takes it is a template, so
/// that
/// {} stays the list of no axes.
struct OverAxes {
  ByName by_name = {};
  SomeAxes axis = {};
  bool keepdims = false;
};
/// var(x, {.axis = 0, .ddof = 1})
struct VarOver {
  ByName by_name = {};
  SomeAxes axis = {};
  std::int64_t ddof = 0;
  bool keepdims = false;
};

// tanh(x), exp(x), …
#define RICCI_UNARY(Kind, name) \
  [[nodiscard]] Array name(const Array& x, Here where = Here::current());
#include "ricci/op/unary.def"
// add(a, b), max(a, b), pow(a, b), …; numbers take the other's dtype.
#define RICCI_BINARY(Kind, name) \
  [[nodiscard]] Array name(const Array& a, const Array& b, Here where = Here::current());
#include "ricci/op/binary.def"
[[nodiscard]] Array eq(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array ne(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array lt(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array le(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array gt(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array ge(const Array& a, const Array& b, Here where = Here::current());

[[nodiscard]] Array maximum(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array minimum(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array power(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array isnan(const Array& x, Here where = Here::current());
[[nodiscard]] Array isfinite(const Array& x, Here where = Here::current());
[[nodiscard]] Array isinf(const Array& x, Here where = Here::current());
/// x within [low, high].
[[nodiscard]] Array clip(const Array& x, const Array& low, const Array& high,
                         Here where = Here::current());
/// a where `condition` is not 0, b elsewhere.
[[nodiscard]] Array where(const Array& condition, const Array& a, const Array& b,
                          Here at = Here::current());
[[nodiscard]] Array cast(const Array& x, DType dtype, Here where = Here::current());
[[nodiscard]] Array astype(const Array& x, DType dtype, Here where = Here::current());
/// The identity, through which no derivative passes.
[[nodiscard]] Array stop_gradient(const Array& x, Here where = Here::current());

// Reductions over some axes, or all. Counts and means of integers and bools are i32 and f32.
[[nodiscard]] Array sum(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                        Here where = Here::current());
[[nodiscard]] Array mean(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                         Here where = Here::current());
[[nodiscard]] Array prod(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                         Here where = Here::current());
/// The largest of some elements; `max(a, b)` is the larger of two.
[[nodiscard]] Array amax(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                         Here where = Here::current());
[[nodiscard]] Array amin(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                         Here where = Here::current());
[[nodiscard]] Array max(const Array& x, Here where = Here::current());
[[nodiscard]] Array min(const Array& x, Here where = Here::current());
[[nodiscard]] Array any(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                        Here where = Here::current());
[[nodiscard]] Array all(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                        Here where = Here::current());
[[nodiscard]] Array logsumexp(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                              Here where = Here::current());
/// Σ (x - mean)² / (n - ddof)
[[nodiscard]] Array var(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                        std::int64_t ddof = 0, Here where = Here::current());
/// √var; the name `std` is taken.
[[nodiscard]] Array stddev(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                           std::int64_t ddof = 0, Here where = Here::current());
/// √ Σ |x|²; its gradient at 0 is 0.
[[nodiscard]] Array norm(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                         Here where = Here::current());
// Options by name: sum(x, 0, {.keepdims = true}).
#define RICCI_REDUCTION(name)                                                                    \
  template <OneAxis T>                                                                           \
  [[nodiscard]] Array name(const Array& x, T axis, bool keep_dims = false,                       \
                           Here where = Here::current()) {                                       \
    return name(x, one_axis(axis), keep_dims, where);                                            \
  }                                                                                              \
  template <OneAxis T>                                                                           \
  [[nodiscard]] Array name(const Array& x, T axis, ReduceOptions options,                        \
                           Here where = Here::current()) {                                       \
    return name(x, one_axis(axis), options.keepdims, where);                                     \
  }                                                                                              \
  [[nodiscard]] inline Array name(const Array& x, const AxisList& axes, ReduceOptions options,   \
                                  Here where = Here::current()) {                                \
    return name(x, axes, options.keepdims, where);                                               \
  }                                                                                              \
  template <int = 0>                                                                             \
  [[nodiscard]] Array name(const Array& x, const OverAxes& over, Here where = Here::current()) { \
    return name(x, over.axis, over.keepdims, where);                                             \
  }                                                                                              \
  template <class NoAxis>                                                                        \
    requires(!OneAxis<NoAxis> && !std::convertible_to<const NoAxis&, AxisList>)                  \
  Array name(const Array&, const NoAxis&) = delete;
RICCI_REDUCTION(sum)
RICCI_REDUCTION(mean)
RICCI_REDUCTION(prod)
RICCI_REDUCTION(amax)
RICCI_REDUCTION(amin)
RICCI_REDUCTION(any)
RICCI_REDUCTION(all)
RICCI_REDUCTION(logsumexp)
RICCI_REDUCTION(norm)
#undef RICCI_REDUCTION
#define RICCI_VARIANCE(name)                                                                      \
  template <OneAxis T>                                                                            \
  [[nodiscard]] Array name(const Array& x, T axis, bool keep_dims = false, std::int64_t ddof = 0, \
                           Here where = Here::current()) {                                        \
    return name(x, one_axis(axis), keep_dims, ddof, where);                                       \
  }                                                                                               \
  template <OneAxis T>                                                                            \
  [[nodiscard]] Array name(const Array& x, T axis, VarOptions options,                            \
                           Here where = Here::current()) {                                        \
    return name(x, one_axis(axis), options.keepdims, options.ddof, where);                        \
  }                                                                                               \
  [[nodiscard]] inline Array name(const Array& x, const AxisList& axes, VarOptions options,       \
                                  Here where = Here::current()) {                                 \
    return name(x, axes, options.keepdims, options.ddof, where);                                  \
  }                                                                                               \
  template <int = 0>                                                                              \
  [[nodiscard]] Array name(const Array& x, const VarOver& over, Here where = Here::current()) {   \
    return name(x, over.axis, over.keepdims, over.ddof, where);                                   \
  }
RICCI_VARIANCE(var)
RICCI_VARIANCE(stddev)
#undef RICCI_VARIANCE
/// The value below which a share q of the elements lies, linear between neighbours; over one axis,
/// or all elements.
[[nodiscard]] Array quantile(const Array& x, double q, std::optional<std::int64_t> axis = {},
                             bool keep_dims = false, Here where = Here::current());
[[nodiscard]] Array median(const Array& x, std::optional<std::int64_t> axis = {},
                           bool keep_dims = false, Here where = Here::current());
[[nodiscard]] Array argmax(const Array& x, std::int64_t axis = -1, bool keep_dims = false,
                           Here where = Here::current());
[[nodiscard]] Array argmin(const Array& x, std::int64_t axis = -1, bool keep_dims = false,
                           Here where = Here::current());
[[nodiscard]] Array sort(const Array& x, std::int64_t axis = -1, bool descending = false,
                         Here where = Here::current());
[[nodiscard]] Array argsort(const Array& x, std::int64_t axis = -1, bool descending = false,
                            Here where = Here::current());
/// {values, indices} of the k largest along the last axis.
[[nodiscard]] std::pair<Array, Array> topk(const Array& x, std::int64_t k,
                                           Here where = Here::current());
template <std::integral T>
[[nodiscard]] std::pair<Array, Array> top_k(const Array& x, T k, Here where = Here::current()) {
  return topk(x, static_cast<std::int64_t>(k), where);
}
[[nodiscard]] Array cumsum(const Array& x, std::int64_t axis = -1, Here where = Here::current());
[[nodiscard]] Array cumprod(const Array& x, std::int64_t axis = -1, Here where = Here::current());

/// Matrix product; vectors are rows on the left and columns on the right, leading axes a batch.
[[nodiscard]] Array matmul(const Array& a, const Array& b, Here where = Here::current());
/// Σ a·b of vectors; matmul for more axes.
[[nodiscard]] Array dot(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array matvec(const Array& a, const Array& x, Here where = Here::current());
[[nodiscard]] Array outer(const Array& a, const Array& b, Here where = Here::current());
/// Products summed over the letters that are missing behind the arrow: "ij,jk->ik". A letter twice
/// in one operand is its diagonal, "ii->i"; "..." stands for axes without letters, which are
/// broadcast.
[[nodiscard]] Array einsum(std::string_view letters, const std::vector<Array>& operands,
                           Here where = Here::current());
[[nodiscard]] Array einsum(std::string_view letters, const Array& a, Here where = Here::current());
[[nodiscard]] Array einsum(std::string_view letters, const Array& a, const Array& b,
                           Here where = Here::current());
[[nodiscard]] Array einsum(std::string_view letters, const Array& a, const Array& b, const Array& c,
                           Here where = Here::current());
[[nodiscard]] Array einsum(std::string_view letters, const Array& a, const Array& b, const Array& c,
                           const Array& d, Here where = Here::current());
[[nodiscard]] Array solve(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array inv(const Array& a, Here where = Here::current());
[[nodiscard]] Array det(const Array& a, Here where = Here::current());
[[nodiscard]] Array cholesky(const Array& a, Here where = Here::current());
/// {eigenvalues, eigenvectors} of symmetric matrices.
[[nodiscard]] std::pair<Array, Array> eigh(const Array& a, Here where = Here::current());
/// Σ a[i, i]
[[nodiscard]] Array trace(const Array& a, Here where = Here::current());

}  // namespace ricci
