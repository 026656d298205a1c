// Ops that walk along an axis: recurrences over time, long attention, sorting, running totals; and
// random numbers, which have no input to walk along.
#pragma once

#include "workloads/workload.h"

namespace ricci::bench {

/// Gradients of selective_scan in x, delta, a, b, c: batch 2, length 256, 256 channels, 16 states.
[[nodiscard]] Workload selective_scan_grad(Scale scale);
/// Gradients of gated_delta_net in q, k, v, g, beta: batch 1, length 256, 4 heads of 64.
[[nodiscard]] Workload gated_delta_grad(Scale scale);
/// Gradients of causal attention in q, k and v: batch 2, 8 heads, length 512, head 64.
[[nodiscard]] Workload attention_grad(Scale scale);
/// Causal attention: batch 1, 8 heads, length 2048, head 64.
[[nodiscard]] Workload attention_2048(Scale scale);
/// Its gradients in q, k and v.
[[nodiscard]] Workload attention_2048_grad(Scale scale);
/// A million numbers in order, and where each was.
[[nodiscard]] Workload sort_million(Scale scale);
/// The largest 50 of each of 256 rows of 32000, and where they are.
[[nodiscard]] Workload top_k_50(Scale scale);
/// Running sums of 4096x2048 along the last axis, and along the first.
[[nodiscard]] Workload cumsum_rows(Scale scale);
[[nodiscard]] Workload cumsum_columns(Scale scale);
/// Four million normal random numbers.
[[nodiscard]] Workload rng_normal_4m(Scale scale);

}  // namespace ricci::bench
