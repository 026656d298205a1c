// Loops compiled twice: for the instructions every x86-64 has, and for AVX2 where there is one. No
// fused multiply-add is used, so both give the same bits.
//
//   vectorised([&]() RICCI_INLINE { for (…) y[i] += x[i]; });
#pragma once

#define RICCI_INLINE __attribute__((always_inline))

namespace ricci::cpu {

#if defined(__x86_64__)

template <class F>
[[gnu::target("avx2"), gnu::noinline]] void on_avx2(const F& f) {
  f();
}

[[nodiscard]] inline bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

template <class F>
void vectorised(const F& f) {
  if (has_avx2()) {
    on_avx2(f);
  } else {
    f();
  }
}

#else

template <class F>
void vectorised(const F& f) {
  f();
}

#endif

}  // namespace ricci::cpu
