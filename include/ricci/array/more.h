// What NumPy, JAX and PyTorch have besides: other names of functions there are, and functions that
// are a few others. Arguments are in the order in which those libraries have them.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <utility>
#include <vector>

#include "ricci/array/math.h"
#include "ricci/array/shape.h"

namespace ricci {

// Other names.
[[nodiscard]] Array absolute(const Array& x, Here where = Here::current());
[[nodiscard]] Array negative(const Array& x, Here where = Here::current());
[[nodiscard]] Array multiply(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array subtract(const Array& a, const Array& b, Here where = Here::current());
/// a / b of floats; integers are refused (`floor_divide`, `trunc_divide`).
[[nodiscard]] Array divide(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array equal(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array not_equal(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array greater(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array greater_equal(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array less(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array less_equal(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array arctan(const Array& x, Here where = Here::current());
[[nodiscard]] Array arcsin(const Array& x, Here where = Here::current());
[[nodiscard]] Array arccos(const Array& x, Here where = Here::current());
[[nodiscard]] Array arctan2(const Array& y, const Array& x, Here where = Here::current());
[[nodiscard]] Array conj(const Array& x, Here where = Here::current());
[[nodiscard]] Array real(const Array& x, Here where = Here::current());
[[nodiscard]] Array swish(const Array& x, Here where = Here::current());
[[nodiscard]] Array cat(const std::vector<Array>& arrays, std::int64_t axis = 0,
                        Here where = Here::current());
[[nodiscard]] Array permute(const Array& x, const Axes& perm, Here where = Here::current());
[[nodiscard]] Array view(const Array& x, const Dims& shape, Here where = Here::current());
[[nodiscard]] Array ravel(const Array& x, Here where = Here::current());
[[nodiscard]] Array detach(const Array& x, Here where = Here::current());
[[nodiscard]] Array clamp(const Array& x, const Array& low, const Array& high,
                          Here where = Here::current());
[[nodiscard]] Array mm(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array bmm(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array mv(const Array& a, const Array& x, Here where = Here::current());

// Element by element.
/// The quotient, rounded down.
[[nodiscard]] Array floor_divide(const Array& a, const Array& b, Here where = Here::current());
/// The quotient, rounded towards 0, as C's /.
[[nodiscard]] Array trunc_divide(const Array& a, const Array& b, Here where = Here::current());
/// What is left of a, exactly: of the sign of a, as C's %.
[[nodiscard]] Array fmod(const Array& a, const Array& b, Here where = Here::current());
/// What is left of a, exactly: of the sign of b, as Python's % and that of arrays.
[[nodiscard]] Array remainder(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array log10(const Array& x, Here where = Here::current());
/// log(eᵃ + eᵇ)
[[nodiscard]] Array logaddexp(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array leaky_relu(const Array& x, double slope = 0.01, Here where = Here::current());
[[nodiscard]] Array relu6(const Array& x, Here where = Here::current());
/// a + t·(b - a)
[[nodiscard]] Array lerp(const Array& a, const Array& b, const Array& t,
                         Here where = Here::current());
[[nodiscard]] Array nan_to_num(const Array& x, double value = 0, Here where = Here::current());
/// |a - b| ≤ atol + rtol·|b|
[[nodiscard]] Array isclose(const Array& a, const Array& b, double rtol = 1e-5, double atol = 1e-8,
                            Here where = Here::current());
[[nodiscard]] Array masked_fill(const Array& x, const Array& mask, const Array& value,
                                Here where = Here::current());
/// Computed at once.
[[nodiscard]] bool allclose(const Array& a, const Array& b, double rtol = 1e-5, double atol = 1e-8,
                            Here where = Here::current());
[[nodiscard]] bool array_equal(const Array& a, const Array& b, Here where = Here::current());

// Over axes.
[[nodiscard]] Array average(const Array& x, const Array& weights, std::int64_t axis = -1,
                            Here where = Here::current());
[[nodiscard]] Array count_nonzero(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                                  Here where = Here::current());
/// The largest less the smallest.
[[nodiscard]] Array ptp(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                        Here where = Here::current());
[[nodiscard]] Array nansum(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                           Here where = Here::current());
[[nodiscard]] Array nanmean(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                            Here where = Here::current());
[[nodiscard]] Array percentile(const Array& x, double q, std::optional<std::int64_t> axis = {},
                               bool keep_dims = false, Here where = Here::current());
[[nodiscard]] Array cummax(const Array& x, std::int64_t axis = -1, Here where = Here::current());
[[nodiscard]] Array cummin(const Array& x, std::int64_t axis = -1, Here where = Here::current());
/// x[1:] - x[:-1], n times.
[[nodiscard]] Array diff(const Array& x, std::int64_t n = 1, std::int64_t axis = -1,
                         Here where = Here::current());

// Shapes and places.
[[nodiscard]] Array vstack(const std::vector<Array>& arrays, Here where = Here::current());
[[nodiscard]] Array hstack(const std::vector<Array>& arrays, Here where = Here::current());
/// At most `parts` parts along an axis, the last one smaller where it does not go up.
[[nodiscard]] std::vector<Array> chunk(const Array& x, std::int64_t parts, std::int64_t axis = 0,
                                       Here where = Here::current());
/// Parts that start at these places, as numpy.split has them.
[[nodiscard]] std::vector<Array> split(const Array& x, const std::vector<std::int64_t>& starts,
                                       std::int64_t axis = 0, Here where = Here::current());
/// The slices of an axis, without it.
[[nodiscard]] std::vector<Array> unbind(const Array& x, std::int64_t axis = 0,
                                        Here where = Here::current());
[[nodiscard]] Array fliplr(const Array& x, Here where = Here::current());
[[nodiscard]] Array flipud(const Array& x, Here where = Here::current());
/// Turned by quarters, counter-clockwise in the first two axes.
[[nodiscard]] Array rot90(const Array& x, std::int64_t times = 1, Here where = Here::current());
/// A matrix with a vector on a diagonal, or the diagonal of a matrix.
[[nodiscard]] Array diag(const Array& x, std::int64_t k = 0, Here where = Here::current());
/// The diagonal of the last two axes.
[[nodiscard]] Array diagonal(const Array& x, std::int64_t k = 0, Here where = Here::current());
[[nodiscard]] Array index_select(const Array& x, std::int64_t axis, const Array& indices,
                                 Here where = Here::current());
/// A box of `sizes` from computed places on; those outside are moved to where it fits.
[[nodiscard]] Array dynamic_slice(const Array& x, const std::vector<Array>& starts,
                                  const std::vector<std::int64_t>& sizes,
                                  Here where = Here::current());
/// x with `update` from computed places on; moved to where it fits.
[[nodiscard]] Array dynamic_update_slice(const Array& x, const Array& update,
                                         const std::vector<Array>& starts,
                                         Here where = Here::current());
/// The places of what is not 0, one array an axis. Without a size it is computed at once, and not
/// for what is being traced; with one, so many places, the rest of them `fill`.
[[nodiscard]] std::vector<Array> nonzero(const Array& x, std::optional<std::int64_t> size = {},
                                         std::int64_t fill = 0, Here where = Here::current());
/// How often each of 0 … length - 1 is there.
[[nodiscard]] Array bincount(const Array& x, std::int64_t length, Here where = Here::current());
/// For each value how many of a sorted vector are below it (or not above it: `right`).
[[nodiscard]] Array searchsorted(const Array& sorted, const Array& values, bool right = false,
                                 Here where = Here::current());
/// Between points of a curve with rising xp; level outside of them.
[[nodiscard]] Array interp(const Array& x, const Array& xp, const Array& fp,
                           Here where = Here::current());

// Products and matrices.
[[nodiscard]] Array inner(const Array& a, const Array& b, Here where = Here::current());
/// Σ conj(a)·b over all elements.
[[nodiscard]] Array vdot(const Array& a, const Array& b, Here where = Here::current());
/// Summed over the last `axes` of a and the first of b.
[[nodiscard]] Array tensordot(const Array& a, const Array& b, std::int64_t axes = 2,
                              Here where = Here::current());
[[nodiscard]] Array kron(const Array& a, const Array& b, Here where = Here::current());
/// Of vectors of 3 along the last axis.
[[nodiscard]] Array cross(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array matrix_power(const Array& a, std::int64_t n, Here where = Here::current());
[[nodiscard]] Array lstsq(const Array& a, const Array& b, Here where = Here::current());
/// {sign, log |det|}
[[nodiscard]] std::pair<Array, Array> slogdet(const Array& a, Here where = Here::current());

/// The names that stand in `linalg` elsewhere.
namespace linalg {
using ricci::cholesky;
using ricci::det;
using ricci::eigh;
using ricci::inv;
using ricci::lstsq;
using ricci::matrix_power;
using ricci::norm;
using ricci::slogdet;
using ricci::solve;
}  // namespace linalg

}  // namespace ricci
