// The body of vector_kernels_<target>.cpp. Included once by each, with RICCI_VECTOR_TARGET (a
// namespace) and RICCI_VECTOR_BYTES defined. It must not use inline functions of other headers:
// the linker keeps one copy of those, and it might be the one with the wrong instructions.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "backend/cpu/kernels/vector_butterflies.h"
#include "backend/cpu/kernels/vector_fourier.h"
#include "backend/cpu/kernels/vector_kernels.h"
#include "backend/cpu/kernels/vector_lanes.h"
#include "backend/cpu/kernels/vector_narrow.h"
#include "backend/cpu/kernels/vector_panels.h"
#include "backend/cpu/kernels/vector_pool.h"
#include "backend/cpu/kernels/vector_product.h"
#include "backend/cpu/kernels/vector_scores.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {

#define RICCI_STRINGIZE(x) #x
#define RICCI_NAME(x) RICCI_STRINGIZE(x)
extern const VectorKernels kernels;
const VectorKernels kernels = {
    .name = RICCI_NAME(RICCI_VECTOR_TARGET),
    .f32 = product_kernels<float>(),
    .f64 = product_kernels<double>(),
    .u32 = product_kernels<std::uint32_t>(),
    .u64 = product_kernels<std::uint64_t>(),
    .scores = {take_scores, exp_shifted, cap_scores, add_products, score_gradient},
    .fourier_f32 = fourier_kernels<float>(),
    .fourier_f64 = fourier_kernels<double>(),
    .max_of_pairs = max_of_pairs,
    .max_of_pairs_backward = max_of_pairs_backward,
    .exp = exp_all,
    .widen_f16 = widen_f16,
    .widen_bf16 = widen_bf16,
    .narrow_f16 = narrow_f16,
    .narrow_bf16 = narrow_bf16,
};

}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
