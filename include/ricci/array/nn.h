// What networks are made of: activations are with the element-wise functions, here are layers'
// functions and losses.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <vector>

#include "ricci/array/math.h"

namespace ricci {

/// One number for height and width, or two: `2`, `{2, 1}`.
struct Pair {
  std::int64_t height = 0;
  std::int64_t width = 0;
  constexpr Pair(int both) : height(both), width(both) {}                  // NOLINT
  constexpr Pair(std::int64_t both) : height(both), width(both) {}         // NOLINT
  constexpr Pair(std::int64_t h, std::int64_t w) : height(h), width(w) {}  // NOLINT
};

struct Conv2dOptions {
  Pair stride = 1;
  Pair padding = 0;
  Pair dilation = 1;
  std::int64_t groups = 1;
};
/// x [N, C_in, H, W], w [C_out, C_in/groups, kH, kW]
[[nodiscard]] Array conv2d(const Array& x, const Array& w, const Conv2dOptions& options = {},
                           Here where = Here::current());
/// The same with a bias, [C_out].
[[nodiscard]] Array conv2d(const Array& x, const Array& w, const Array& bias,
                           const Conv2dOptions& options = {}, Here where = Here::current());

struct PoolOptions {
  std::optional<Pair> stride = {};  ///< absent: the window
  Pair padding = 0;
};
[[nodiscard]] Array max_pool2d(const Array& x, Pair window, const PoolOptions& options = {},
                               Here where = Here::current());
[[nodiscard]] Array avg_pool2d(const Array& x, Pair window, const PoolOptions& options = {},
                               Here where = Here::current());

[[nodiscard]] Array softmax(const Array& x, std::int64_t axis = -1, Here where = Here::current());
[[nodiscard]] Array log_softmax(const Array& x, std::int64_t axis = -1,
                                Here where = Here::current());
/// The mean over examples of the cross entropy of softmax(logits), [.., C], with classes, [..], or
/// with probabilities, [.., C].
[[nodiscard]] Array cross_entropy(const Array& logits, const Array& target,
                                  Here where = Here::current());
/// The mean of (a - b)².
[[nodiscard]] Array mse(const Array& a, const Array& b, Here where = Here::current());
/// x·w + b
[[nodiscard]] Array linear(const Array& x, const Array& w, const Array& b,
                           Here where = Here::current());

}  // namespace ricci
