// Matrix products by oneDNN, on the calling thread.
#pragma once

#include <cstdint>

namespace ricci::cpu {

/// C [m, n] = A B, or += with `accumulate`; row-major. A is stored as Aᵀ when `a_transposed`, with
/// `a_step` elements from one stored row to the next; likewise B.
struct GemmCall {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const float* a = nullptr;
  std::int64_t a_step = 0;
  bool a_transposed = false;
  const float* b = nullptr;
  std::int64_t b_step = 0;
  bool b_transposed = false;
  float* c = nullptr;
  std::int64_t c_step = 0;
  bool accumulate = false;
};

void gemm(const GemmCall& g);

}  // namespace ricci::cpu
