// Losses beyond those of ricci/array/nn.h: means over all examples.
#pragma once

#include <cstdint>
#include <optional>

#include "ricci/array/array.h"

namespace ricci::nn {

struct CrossEntropyOptions {
  double label_smoothing = 0;  ///< the share of a target that all classes get alike
  /// Examples of this class count for nothing, in the mean either: padding.
  std::optional<std::int64_t> ignored = {};
};
/// Of softmax(logits), [.., C], with classes, [..].
[[nodiscard]] Array cross_entropy(const Array& logits, const Array& classes,
                                  const CrossEntropyOptions& options, Here where = Here::current());

struct FocalOptions {
  double gamma = 2;     ///< how much less easy examples count
  double alpha = 0.25;  ///< the weight of class 1, and one less it of class 0; negative: none
};
/// Cross entropy of σ(logits) with targets in {0, 1}, times α·(1 - p)^γ (Lin et al., 2017).
[[nodiscard]] Array focal_loss(const Array& logits, const Array& target,
                               const FocalOptions& options = {}, Here where = Here::current());
/// max(0, ‖anchor - positive‖ - ‖anchor - negative‖ + margin), of vectors along the last axis.
[[nodiscard]] Array triplet_loss(const Array& anchor, const Array& positive, const Array& negative,
                                 double margin = 1, Here where = Here::current());
/// max(0, 1 - target·score), targets in {-1, 1}.
[[nodiscard]] Array hinge_loss(const Array& score, const Array& target,
                               Here where = Here::current());
/// -log of a normal density without its constant: (log var + (mean - target)²/var)/2, the variance
/// taken as eps at least.
[[nodiscard]] Array gaussian_nll_loss(const Array& mean, const Array& target, const Array& var,
                                      double eps = 1e-6, Here where = Here::current());
/// e^log_rate - target·log_rate
[[nodiscard]] Array poisson_nll_loss(const Array& log_rate, const Array& target,
                                     Here where = Here::current());
/// Rows of a and b, [n, width], that belong together must be found among all: cross entropy of
/// cosine similarities over a temperature, both ways (Radford et al., 2021).
[[nodiscard]] Array contrastive_loss(const Array& a, const Array& b, double temperature = 0.07,
                                     Here where = Here::current());

}  // namespace ricci::nn
