// Losses.
#pragma once

#include "ricci/op/fields.h"

namespace ricci::op {

/// The negative log-likelihood of a class under softmax(logits). Logits of -inf are classes that
/// cannot be; a slice that is all -inf gives NaN.
///   logits [.., C], labels [..] class numbers, m = max_c logits_c:
///   loss = log Σ_c e^(logits_c - m) - (logits_label - m)
struct SoftmaxCrossEntropyWithLogits {
  static constexpr OpInfo info{
      .name = "softmax_cross_entropy_with_logits",
      .operands = "logits, labels",
      .results = "loss",
      .traits = Trait::Faults,
      .help = "the negative log-likelihood of a class under softmax(logits)",
      .formula = "logits [.., C], labels [..]: loss = log Σ_c e^(logits_c - m) - "
                 "(logits_label - m), m = max_c logits_c",
      .constraints = "c1 shape: logits have rank 1 or more, and at least one class\n"
                     "c2 shape: labels have the shape of logits without the classes\n"
                     "c3 dtype: logits are floating\n"
                     "c4 dtype: labels are integers, or f32 or f64 holding integers",
      .no_gradient = "labels",
      .vjp = RuleSource::Written,
      .batch = RuleSource::Written};
  static void fields(auto&, auto&&) {}
  bool operator==(const SoftmaxCrossEntropyWithLogits&) const = default;
};

/// The gradient of softmax_cross_entropy_with_logits in its logits.
///   dlogits[.., c] = (softmax(logits)_c - [c = label]) · d_loss
struct SoftmaxCrossEntropyBackward {
  static constexpr OpInfo info{
      .name = "softmax_cross_entropy_backward",
      .operands = "logits, labels, d_loss",
      .results = "dlogits",
      .traits = Trait::Faults,
      .help = "the gradient of softmax_cross_entropy_with_logits in its logits",
      .formula = "dlogits[.., c] = (softmax(logits)_c - [c = label]) · d_loss",
      .constraints = "c1 shape: logits have rank 1 or more, and at least one class\n"
                     "c2 shape: labels have the shape of logits without the classes\n"
                     "c3 dtype: logits are floating\n"
                     "c4 dtype: labels are integers, or f32 or f64 holding integers\n"
                     "c5 shape: d_loss has the shape of labels\n"
                     "c6 dtype: d_loss has the dtype of logits",
      .no_gradient = "labels",
      .batch = RuleSource::Written};
  static void fields(auto&, auto&&) {}
  bool operator==(const SoftmaxCrossEntropyBackward&) const = default;
};

}  // namespace ricci::op
