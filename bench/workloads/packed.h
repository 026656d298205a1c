// Products with weights in few bits, and the same products in f32 that they are compared with.
#pragma once

#include "workloads/workload.h"

namespace ricci::bench {

/// x [1, 4096] and x [64, 4096] times a weight [4096, 4096] in q4_k, in int8 blocks, and in f32.
[[nodiscard]] Workload q4_k_row(Scale scale);
[[nodiscard]] Workload q4_k_rows(Scale scale);
[[nodiscard]] Workload int8_row(Scale scale);
[[nodiscard]] Workload int8_rows(Scale scale);
[[nodiscard]] Workload f32_row(Scale scale);
[[nodiscard]] Workload f32_rows(Scale scale);
/// 256 rows that pick one of 8 experts [1024, 1024] each, in q4_k and in f32.
[[nodiscard]] Workload q4_k_experts(Scale scale);
[[nodiscard]] Workload f32_experts(Scale scale);
/// Codes [1, 4096] and [64, 4096] times codes [4096, 4096], as codes.
[[nodiscard]] Workload code_row(Scale scale);
[[nodiscard]] Workload code_rows(Scale scale);
/// q4_k_row with x rounded to 8 bits.
[[nodiscard]] Workload q4_k_int8_row(Scale scale);

}  // namespace ricci::bench
