// Arrays in other shapes: what moves elements without changing them.
#pragma once

#include <cstdint>
#include <source_location>
#include <utility>
#include <vector>

#include "ricci/array/math.h"

namespace ricci {

/// The same elements in another shape; one size may be -1.
[[nodiscard]] Array reshape(const Array& x, const Dims& shape, Here where = Here::current());
/// Axes from `first` on as one.
[[nodiscard]] Array flatten(const Array& x, std::int64_t first = 0, Here where = Here::current());
/// Axes in another order; without one, reversed.
[[nodiscard]] Array transpose(const Array& x, const Axes& perm = {}, Here where = Here::current());
[[nodiscard]] Array swapaxes(const Array& x, std::int64_t a, std::int64_t b,
                             Here where = Here::current());
[[nodiscard]] Array moveaxis(const Array& x, std::int64_t from, std::int64_t to,
                             Here where = Here::current());
/// Without axes of size 1: one, or all.
[[nodiscard]] Array squeeze(const Array& x, const AxisList& axes = {},
                            Here where = Here::current());
[[nodiscard]] Array expand_dims(const Array& x, std::int64_t axis, Here where = Here::current());
[[nodiscard]] Array unsqueeze(const Array& x, std::int64_t axis, Here where = Here::current());
[[nodiscard]] Array broadcast_to(const Array& x, const Dims& shape, Here where = Here::current());
[[nodiscard]] Array concat(const std::vector<Array>& arrays, std::int64_t axis = 0,
                           Here where = Here::current());
[[nodiscard]] Array concatenate(const std::vector<Array>& arrays, std::int64_t axis = 0,
                                Here where = Here::current());
[[nodiscard]] Array stack(const std::vector<Array>& arrays, std::int64_t axis = 0,
                          Here where = Here::current());
/// Equal parts along an axis.
[[nodiscard]] std::vector<Array> split(const Array& x, std::int64_t parts, std::int64_t axis = 0,
                                       Here where = Here::current());
[[nodiscard]] Array narrow(const Array& x, std::int64_t axis, const Dim& start, const Dim& len,
                           Here where = Here::current());
[[nodiscard]] Array tile(const Array& x, const std::vector<std::int64_t>& counts,
                         Here where = Here::current());
/// Every slice `count` times in a row.
[[nodiscard]] Array repeat(const Array& x, std::int64_t count, std::int64_t axis,
                           Here where = Here::current());
[[nodiscard]] Array roll(const Array& x, std::int64_t shift, std::int64_t axis = -1,
                         Here where = Here::current());
/// Mirrored along some axes, or all.
[[nodiscard]] Array flip(const Array& x, const AxisList& axes = {}, Here where = Here::current());
template <OneAxis T>
[[nodiscard]] Array flip(const Array& x, T axis, Here where = Here::current()) {
  return flip(x, one_axis(axis), where);
}
template <OneAxis T>
[[nodiscard]] Array squeeze(const Array& x, T axis, Here where = Here::current()) {
  return squeeze(x, one_axis(axis), where);
}
/// {before, after} for every axis, filled with a value.
[[nodiscard]] Array pad(const Array& x, const std::vector<std::pair<Dim, Dim>>& amounts,
                        const Array& value = 0, Here where = Here::current());
[[nodiscard]] Array tril(const Array& x, std::int64_t k = 0, Here where = Here::current());
[[nodiscard]] Array triu(const Array& x, std::int64_t k = 0, Here where = Here::current());
/// Slices of one axis by index; negative ones count from the end, as in x[indices].
[[nodiscard]] Array take(const Array& x, const Array& indices, std::int64_t axis = 0,
                         Here where = Here::current());
[[nodiscard]] Array take_along_axis(const Array& x, const Array& indices, std::int64_t axis = -1,
                                    Here where = Here::current());
[[nodiscard]] Array one_hot(const Array& indices, std::int64_t depth, DType dtype = DType::F32,
                            Here where = Here::current());

}  // namespace ricci
