// What networks are made of: activations are with the element-wise functions, here are layers'
// functions and losses.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <vector>

#include "ricci/array/math.h"
#include "ricci/build/windows.h"

namespace ricci {

/// x [N, C_in, H, W], w [C_out, C_in/groups, kH, kW]
[[nodiscard]] Array conv2d(const Array& x, const Array& w, const Conv2dOptions& options = {},
                           Here where = Here::current());
/// The same with a bias, [C_out].
[[nodiscard]] Array conv2d(const Array& x, const Array& w, const Array& bias,
                           const Conv2dOptions& options = {}, Here where = Here::current());

struct Conv1dOptions {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
};
/// x [N, C_in, L], w [C_out, C_in/groups, k]
[[nodiscard]] Array conv1d(const Array& x, const Array& w, const Conv1dOptions& options = {},
                           Here where = Here::current());
struct ConvTranspose2dOptions {
  Pair stride = 1;
  Pair padding = 0;
  Pair output_padding = 0;
  Pair dilation = 1;
  std::int64_t groups = 1;
};
/// x [N, C_in, H, W], w [C_in, C_out/groups, kH, kW]
[[nodiscard]] Array conv_transpose2d(const Array& x, const Array& w,
                                     const ConvTranspose2dOptions& options = {},
                                     Here where = Here::current());

[[nodiscard]] Array max_pool2d(const Array& x, Pair window, const PoolOptions& options = {},
                               Here where = Here::current());
[[nodiscard]] Array avg_pool2d(const Array& x, Pair window, const PoolOptions& options = {},
                               Here where = Here::current());

/// Means over equal windows, as many as `size` says; sizes that do not divide the image's are
/// refused.
[[nodiscard]] Array adaptive_avg_pool2d(const Array& x, Pair size, Here where = Here::current());

[[nodiscard]] Array softmax(const Array& x, std::int64_t axis = -1, Here where = Here::current());
[[nodiscard]] Array log_softmax(const Array& x, std::int64_t axis = -1,
                                Here where = Here::current());
/// The mean over examples of the cross entropy of softmax(logits), [.., C], with classes, [..], or
/// with probabilities, [.., C].
[[nodiscard]] Array cross_entropy(const Array& logits, const Array& target,
                                  Here where = Here::current());
/// The mean of (a - b)².
[[nodiscard]] Array mse(const Array& a, const Array& b, Here where = Here::current());
[[nodiscard]] Array mse_loss(const Array& a, const Array& b, Here where = Here::current());
/// The mean of |a - b|.
[[nodiscard]] Array l1_loss(const Array& a, const Array& b, Here where = Here::current());
/// The mean of (a - b)²/2 where that is within `delta`, of delta·(|a - b| - delta/2) elsewhere.
[[nodiscard]] Array huber_loss(const Array& a, const Array& b, double delta = 1,
                               Here where = Here::current());
/// The mean of -log of the class's probability, of logarithms of probabilities [.., C] and classes
/// [..].
[[nodiscard]] Array nll_loss(const Array& log_probabilities, const Array& classes,
                             Here where = Here::current());
/// Of probabilities and targets in [0, 1]; the second of what the sigmoid is taken of, which is
/// exact where that is large.
[[nodiscard]] Array binary_cross_entropy(const Array& p, const Array& target,
                                         Here where = Here::current());
[[nodiscard]] Array binary_cross_entropy_with_logits(const Array& logits, const Array& target,
                                                     Here where = Here::current());
/// The mean over examples of Σ target·(log target - log p), of logarithms of p.
[[nodiscard]] Array kl_div(const Array& log_p, const Array& target, Here where = Here::current());
[[nodiscard]] Array cosine_similarity(const Array& a, const Array& b, std::int64_t axis = -1,
                                      double eps = 1e-8, Here where = Here::current());
/// x over its norm along an axis, which is taken as eps at least.
[[nodiscard]] Array normalize(const Array& x, std::int64_t axis = -1, double eps = 1e-12,
                              Here where = Here::current());
/// Zero mean and unit variance along the last axis, without a weight.
[[nodiscard]] Array layer_norm(const Array& x, double eps = 1e-5, Here where = Here::current());
/// The first half of an axis times the sigmoid of the second.
[[nodiscard]] Array glu(const Array& x, std::int64_t axis = -1, Here where = Here::current());
/// Rows of a table by number.
[[nodiscard]] Array embedding(const Array& indices, const Array& table,
                              Here where = Here::current());

struct AttentionOptions {
  bool causal = false;
  std::optional<double> scale = {};  ///< absent: 1/√width
};
/// softmax(scale·q kᵀ) v for [batch, heads, places, width]; fewer heads of k and v are shared.
[[nodiscard]] Array scaled_dot_product_attention(const Array& q, const Array& k, const Array& v,
                                                 const AttentionOptions& options = {},
                                                 Here where = Here::current());

/// x·w + b
[[nodiscard]] Array linear(const Array& x, const Array& w, const Array& b,
                           Here where = Here::current());

}  // namespace ricci
