// More of what NumPy, JAX and PyTorch have, each a few functions of ricci/array/{math,shape,nn}.h:
// arguments, values and orders are those of these libraries.
#pragma once

#include <cstdint>
#include <source_location>
#include <utility>
#include <vector>

#include "ricci/array/math.h"
#include "ricci/array/random.h"

namespace ricci {

// Element by element.
/// The cube root, negative below 0.
[[nodiscard]] Array cbrt(const Array& x, Here where = Here::current());
/// |a| with the sign of b, which -0 has too.
[[nodiscard]] Array copysign(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array signbit(const Array& x, Here where = Here::current());
[[nodiscard]] Array deg2rad(const Array& x, Here where = Here::current());
[[nodiscard]] Array rad2deg(const Array& x, Here where = Here::current());
/// x less its whole part, of the sign of x.
[[nodiscard]] Array frac(const Array& x, Here where = Here::current());
/// 0 below 0, 1 above, `at_zero` at 0.
[[nodiscard]] Array heaviside(const Array& x, const Array& at_zero, Here where = Here::current());
/// The larger of two, of which a NaN is none.
[[nodiscard]] Array fmax(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array fmin(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array isposinf(const Array& x, Here where = Here::current());
[[nodiscard]] Array isneginf(const Array& x, Here where = Here::current());
/// log(p / (1 - p))
[[nodiscard]] Array logit(const Array& p, Here where = Here::current());
/// sin(πx)/(πx), 1 at 0.
[[nodiscard]] Array sinc(const Array& x, Here where = Here::current());
/// x·log(y), 0 where x is 0.
[[nodiscard]] Array xlogy(const Array& x, const Array& y, Here where = Here::current());
/// The coefficient of the highest power first.
[[nodiscard]] Array polyval(const Array& coefficients, const Array& x,
                            Here where = Here::current());

// Over axes.
[[nodiscard]] Array nanmax(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                           Here where = Here::current());
[[nodiscard]] Array nanmin(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                           Here where = Here::current());
[[nodiscard]] Array nanvar(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                           Here where = Here::current());
[[nodiscard]] Array nanstd(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                           Here where = Here::current());
/// {smallest, largest}
[[nodiscard]] std::pair<Array, Array> aminmax(const Array& x, const AxisList& axes = {},
                                              bool keep_dims = false, Here where = Here::current());
/// log of the mean of eˣ.
[[nodiscard]] Array logmeanexp(const Array& x, const AxisList& axes = {}, bool keep_dims = false,
                               Here where = Here::current());
/// The area under points that are `dx` apart.
[[nodiscard]] Array trapezoid(const Array& y, double dx = 1, std::int64_t axis = -1,
                              Here where = Here::current());
/// Covariances of the rows of x, [variables, observations], over n - 1; and correlations.
[[nodiscard]] Array cov(const Array& x, Here where = Here::current());
[[nodiscard]] Array corrcoef(const Array& x, Here where = Here::current());

// Shapes.
/// At least so many axes, new ones in front; the third of atleast_3d is behind.
[[nodiscard]] Array atleast_1d(const Array& x, Here where = Here::current());
[[nodiscard]] Array atleast_2d(const Array& x, Here where = Here::current());
[[nodiscard]] Array atleast_3d(const Array& x, Here where = Here::current());
[[nodiscard]] std::vector<Array> broadcast_arrays(const std::vector<Array>& arrays,
                                                  Here where = Here::current());
/// Vectors as columns, matrices side by side.
[[nodiscard]] Array column_stack(const std::vector<Array>& arrays, Here where = Here::current());
/// Behind each other along a third axis.
[[nodiscard]] Array dstack(const std::vector<Array>& arrays, Here where = Here::current());
/// `parts` parts along an axis, the first of them longer by one where it does not go up.
[[nodiscard]] std::vector<Array> array_split(const Array& x, std::int64_t parts,
                                             std::int64_t axis = 0, Here where = Here::current());
/// An axis as several: unflatten(x, 0, {2, 3}).
[[nodiscard]] Array unflatten(const Array& x, std::int64_t axis, const Dims& sizes,
                              Here where = Here::current());
/// The last two axes exchanged.
[[nodiscard]] Array matrix_transpose(const Array& x, Here where = Here::current());
/// Matrices along the diagonal, zeros elsewhere.
[[nodiscard]] Array block_diag(const std::vector<Array>& blocks, Here where = Here::current());
/// Powers of a vector as columns, the highest first.
[[nodiscard]] Array vander(const Array& x, std::int64_t columns, Here where = Here::current());
/// [..., C·r·r, H, W] → [..., C, H·r, W·r], and back.
[[nodiscard]] Array pixel_shuffle(const Array& x, std::int64_t r, Here where = Here::current());
[[nodiscard]] Array pixel_unshuffle(const Array& x, std::int64_t r, Here where = Here::current());

// Products.
/// x + a·b
[[nodiscard]] Array addmm(const Array& x, const Array& a, const Array& b,
                          Here where = Here::current());
/// Σ conj(a)·b along an axis.
[[nodiscard]] Array vecdot(const Array& a, const Array& b, std::int64_t axis = -1,
                           Here where = Here::current());
/// The matrices' product, in the order that costs least.
[[nodiscard]] Array multi_dot(const std::vector<Array>& matrices, Here where = Here::current());
/// Distances of all rows of a [.., m, n] to all rows of b [.., k, n]: [.., m, k]. Gradients are 0
/// where rows are equal.
[[nodiscard]] Array cdist(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array pairwise_distance(const Array& a, const Array& b, double eps = 1e-6,
                                      Here where = Here::current());
/// log of the determinant; NaN where that is negative.
[[nodiscard]] Array logdet(const Array& a, Here where = Here::current());

// Networks.
[[nodiscard]] Array max_pool1d(const Array& x, std::int64_t window, std::int64_t stride = 0,
                               std::int64_t padding = 0, Here where = Here::current());
[[nodiscard]] Array avg_pool1d(const Array& x, std::int64_t window, std::int64_t stride = 0,
                               std::int64_t padding = 0, Here where = Here::current());
[[nodiscard]] Array softmin(const Array& x, std::int64_t axis = -1, Here where = Here::current());
[[nodiscard]] Array hardtanh(const Array& x, double low = -1, double high = 1,
                             Here where = Here::current());
[[nodiscard]] Array hardshrink(const Array& x, double lambda = 0.5, Here where = Here::current());
[[nodiscard]] Array softshrink(const Array& x, double lambda = 0.5, Here where = Here::current());
[[nodiscard]] Array tanhshrink(const Array& x, Here where = Here::current());
/// x above the threshold, `value` elsewhere.
[[nodiscard]] Array threshold(const Array& x, double at, double value,
                              Here where = Here::current());
/// x above 0, w·x below; w is one number, or one a channel, [C] for x [N, C, …].
[[nodiscard]] Array prelu(const Array& x, const Array& w, Here where = Here::current());
/// (x + √(x² + b))/2
[[nodiscard]] Array squareplus(const Array& x, double b = 4, Here where = Here::current());
/// Zero mean and unit variance along an axis.
[[nodiscard]] Array standardize(const Array& x, std::int64_t axis = -1, double eps = 1e-5,
                                Here where = Here::current());
/// Each channel of each example, [N, C, …], with zero mean and unit variance.
[[nodiscard]] Array instance_norm(const Array& x, double eps = 1e-5, Here where = Here::current());
/// softmax of logits with noise, at a temperature.
[[nodiscard]] Array gumbel_softmax(const Key& key, const Array& logits, double temperature = 1,
                                   std::int64_t axis = -1, Here where = Here::current());
/// The mean of (a - b)²/(2·beta) within beta, of |a - b| - beta/2 elsewhere.
[[nodiscard]] Array smooth_l1_loss(const Array& a, const Array& b, double beta = 1,
                                   Here where = Here::current());
/// The mean of max(0, margin - y·(a - b)), y 1 or -1.
[[nodiscard]] Array margin_ranking_loss(const Array& a, const Array& b, const Array& y,
                                        double margin = 0, Here where = Here::current());
/// The mean of max(0, margin + |anchor - positive| - |anchor - negative|) over rows.
[[nodiscard]] Array triplet_margin_loss(const Array& anchor, const Array& positive,
                                        const Array& negative, double margin = 1,
                                        Here where = Here::current());
/// The mean of (log v + (x - target)²/v)/2, v the variance, taken as 1e-6 at least.
[[nodiscard]] Array gaussian_nll_loss(const Array& x, const Array& target, const Array& variance,
                                      Here where = Here::current());

}  // namespace ricci
