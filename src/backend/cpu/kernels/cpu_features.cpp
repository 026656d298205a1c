#include "backend/cpu/kernels/cpu_features.h"

#include <algorithm>
#include <array>
#include <span>

namespace ricci::cpu {
namespace {

struct Feature {
  std::string_view name;
  bool present;
};

#if defined(__x86_64__)
// The compiler wants a literal for each.
#define RICCI_FEATURE(name) Feature{name, __builtin_cpu_supports(name) != 0}

std::span<const Feature> features() noexcept {
  static const auto all = [] {
    __builtin_cpu_init();
    return std::array{
        RICCI_FEATURE("sse3"),         RICCI_FEATURE("ssse3"),
        RICCI_FEATURE("sse4.1"),       RICCI_FEATURE("sse4.2"),
        RICCI_FEATURE("popcnt"),       RICCI_FEATURE("lzcnt"),
        RICCI_FEATURE("movbe"),        RICCI_FEATURE("bmi"),
        RICCI_FEATURE("bmi2"),         RICCI_FEATURE("avx"),
        RICCI_FEATURE("avx2"),         RICCI_FEATURE("fma"),
        RICCI_FEATURE("f16c"),         RICCI_FEATURE("aes"),
        RICCI_FEATURE("vaes"),         RICCI_FEATURE("pclmul"),
        RICCI_FEATURE("vpclmulqdq"),   RICCI_FEATURE("gfni"),
        RICCI_FEATURE("avxvnni"),      RICCI_FEATURE("avx512f"),
        RICCI_FEATURE("avx512bw"),     RICCI_FEATURE("avx512cd"),
        RICCI_FEATURE("avx512dq"),     RICCI_FEATURE("avx512vl"),
        RICCI_FEATURE("avx512ifma"),   RICCI_FEATURE("avx512vbmi"),
        RICCI_FEATURE("avx512vbmi2"),  RICCI_FEATURE("avx512vnni"),
        RICCI_FEATURE("avx512bitalg"), RICCI_FEATURE("avx512vpopcntdq"),
        RICCI_FEATURE("avx512bf16"),   RICCI_FEATURE("avx512fp16"),
    };
  }();
  return all;
}
#undef RICCI_FEATURE
#else
std::span<const Feature> features() noexcept { return {}; }
#endif

const Feature* find(std::string_view name) noexcept {
  const auto found = std::ranges::find(features(), name, &Feature::name);
  return found == features().end() ? nullptr : &*found;
}

}  // namespace

bool can_check_feature(std::string_view name) noexcept { return find(name) != nullptr; }

bool cpu_has(std::string_view name) noexcept {
  const Feature* feature = find(name);
  return feature == nullptr || feature->present;
}

}  // namespace ricci::cpu
