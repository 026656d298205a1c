// Floating-point environments that a caller may have set, and whether it finds its own again.
#pragma once

#include <cfenv>
#include <cstdint>
#include <functional>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ricci::testing {

struct Environment {
  const char* name;
  void (*set)();
};

#if defined(__x86_64__)
inline std::uint32_t float_control() { return _mm_getcsr(); }
inline void flush_subnormals() { _mm_setcsr(_mm_getcsr() | 0x8040U); }
inline void flush_and_round_up() {
  std::fesetround(FE_UPWARD);
  flush_subnormals();
}
#else
inline std::uint32_t float_control() {
  return static_cast<std::uint32_t>(std::fetestexcept(FE_ALL_EXCEPT));
}
inline void flush_subnormals() {}
inline void flush_and_round_up() { std::fesetround(FE_UPWARD); }
#endif

inline const std::vector<Environment>& environments() {
  static const std::vector<Environment> all = {
      {"upward", [] { std::fesetround(FE_UPWARD); }},
      {"downward", [] { std::fesetround(FE_DOWNWARD); }},
      {"toward zero", [] { std::fesetround(FE_TOWARDZERO); }},
      {"subnormals flushed", flush_subnormals},
      {"flushed and upward", flush_and_round_up},
      {"a flag raised", [] { std::feraiseexcept(FE_OVERFLOW); }},
#if defined(__GLIBC__) && defined(__x86_64__)
      {"every exception traps",
       [] {
         std::feclearexcept(FE_ALL_EXCEPT);
         feenableexcept(FE_ALL_EXCEPT);
       }},
#endif
  };
  return all;
}

// Runs `work` in an environment; was it as before when that was done?
inline bool is_kept(const Environment& e, const std::function<void()>& work) {
  std::fenv_t before;
  std::fegetenv(&before);
  e.set();
  const std::uint32_t was = float_control();
  const int rounding = std::fegetround();
  const int flags = std::fetestexcept(FE_ALL_EXCEPT);
  work();
  const bool kept = float_control() == was && std::fegetround() == rounding &&
                    std::fetestexcept(FE_ALL_EXCEPT) == flags;
  std::fesetenv(&before);
  return kept;
}

}  // namespace ricci::testing
