// Losses that are compositions.
#pragma once

#include "ricci/build/build.h"

namespace ricci {

/// Cross entropy of softmax(logits) with probabilities instead of a class: [.., C] → [..].
///   loss = Σ_c targets_c·(log Σ_c' e^(logits_c' - m) - (logits_c - m)), m = max_c logits_c
/// Classes that cannot be (-inf) add nothing where their target is 0. Gradients go to both.
Value softmax_cross_entropy_dense(Value logits, Value targets,
                                  std::source_location loc = std::source_location::current());

}  // namespace ricci
