#include "backend/cpu/kernels/vector_kernels.h"

namespace ricci::cpu {
namespace {

const VectorKernels& best_kernels() noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0) {
    return vector_avx512::kernels;
  }
  // Every machine with AVX2 and FMA converts half floats too.
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) {
    return vector_avx2::kernels;
  }
#endif
  return vector_base::kernels;
}

// For vectors as wide as those of the best table.
bool has_vnni() noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (&best_kernels() == &vector_avx512::kernels) return __builtin_cpu_supports("avx512vnni") != 0;
  if (&best_kernels() == &vector_avx2::kernels) return __builtin_cpu_supports("avxvnni") != 0;
#endif
  return false;
}

}  // namespace

const IntegerKernels& integer_kernels() noexcept {
  static const bool vnni = has_vnni();
  return vnni ? vector_kernels().integers_vnni : vector_kernels().integers;
}

const NarrowKernels& bf16_kernels() noexcept {
#if defined(__x86_64__)
  static const bool pairs =
      &best_kernels() == &vector_avx512::kernels && __builtin_cpu_supports("avx512bf16") != 0;
  if (pairs) return vector_kernels().bf16_pairs;
#endif
  return vector_kernels().bf16;
}

const Int8Dots& int8_dots() noexcept {
  static const bool vnni = has_vnni();
  return vnni ? vector_kernels().packed.int8_dots_vnni : vector_kernels().packed.int8_dots;
}

const VectorKernels& vector_kernels() noexcept {
  static const VectorKernels& best = best_kernels();
  return best;
}

}  // namespace ricci::cpu
