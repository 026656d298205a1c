// The body of vector_kernels_<target>.cpp. Included once by each, with RICCI_VECTOR_TARGET (a
// namespace) and RICCI_VECTOR_BYTES defined. It must not use inline functions of other headers:
// the linker keeps one copy of those, and it might be the one with the wrong instructions.
#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 says so of the lanes that its own intrinsics leave open.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#endif

#include "backend/cpu/kernels/vector_butterflies.h"
#include "backend/cpu/kernels/vector_codes.h"
#include "backend/cpu/kernels/vector_delta_chunk.h"
#include "backend/cpu/kernels/vector_factors.h"
#include "backend/cpu/kernels/vector_fourier.h"
#include "backend/cpu/kernels/vector_fourier_short.h"
#include "backend/cpu/kernels/vector_integers.h"
#include "backend/cpu/kernels/vector_kernels.h"
#include "backend/cpu/kernels/vector_lanes.h"
#include "backend/cpu/kernels/vector_narrow.h"
#include "backend/cpu/kernels/vector_narrow_panels.h"
#include "backend/cpu/kernels/vector_packed.h"
#include "backend/cpu/kernels/vector_packed_dots.h"
#include "backend/cpu/kernels/vector_packed_int8.h"
#include "backend/cpu/kernels/vector_pairs.h"
#include "backend/cpu/kernels/vector_panels.h"
#include "backend/cpu/kernels/vector_pool.h"
#include "backend/cpu/kernels/vector_product.h"
#include "backend/cpu/kernels/vector_recurrence.h"
#include "backend/cpu/kernels/vector_scores.h"
#include "backend/cpu/kernels/vector_tiny.h"

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
    .f16 = narrow_kernels<FromF16>(),
    .bf16 = narrow_kernels<FromBf16>(),
    .bf16_pairs = Bf16Pairs,
    .small_matrices = small_matrix_kernels(),
    .scores = {take_scores, exp_shifted, cap_scores, add_products, score_gradient},
    .fourier_f32 = fourier_kernels<float>(),
    .fourier_f64 = fourier_kernels<double>(),
    .packed = {.q4_0 = decode_q4_0,
               .q8_0 = decode_q8_0,
               .q4_k = decode_q4_k,
               .q5_k = decode_q5_k,
               .q6_k = decode_q6_k,
               .dots = PackedDots,
               .int8_dots = PackedInt8Dots,
               .int8_dots_vnni = PackedInt8DotsVnni,
               .sum_sixteens = sum_sixteens,
               .add_int8_rows = add_int8_rows,
               .int8 = decode_int8,
               .int4 = decode_int4,
               .e4m3 = decode_e4m3,
               .e5m2 = decode_e5m2},
    .integers = Integers,
    .integers_vnni = IntegersVnni,
    .recurrence_f32 = recurrence_kernels<float>(),
    .recurrence_f64 = recurrence_kernels<double>(),
    .max_of_pairs = max_of_pairs,
    .max_of_pairs_backward = max_of_pairs_backward,
    .exp = exp_all,
    .widen_f16 = widen_f16,
    .widen_bf16 = widen_bf16,
    .narrow_f16 = narrow_f16,
    .narrow_bf16 = narrow_bf16,
};

}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
