#include "support/float_environment.h"

#if defined(__x86_64__)

#include <array>

#include <xmmintrin.h>

namespace ricci {
namespace {

constexpr std::uint32_t VectorFlags = 0x3f;
constexpr std::uint32_t DefaultVector = 0x1f80;   // all masked, to nearest, subnormals kept
constexpr std::uint16_t DefaultControl = 0x037f;  // all masked, to nearest, 64 bits
constexpr std::uint16_t StatusFlags = 0x3f;

// What FNSTENV stores and FLDENV loads.
struct Environment {
  std::uint16_t control, unused0;
  std::uint16_t status, unused1;
  std::array<std::uint32_t, 5> rest;
};
static_assert(sizeof(Environment) == 28);

// The instructions without a wait: a flag raised before its trap was enabled must not strike here.
std::uint16_t control_word() noexcept {
  std::uint16_t word = 0;
  __asm__ volatile("fnstcw %0" : "=m"(word));
  return word;
}
std::uint16_t status_word() noexcept {
  std::uint16_t word = 0;
  __asm__ volatile("fnstsw %0" : "=m"(word));
  return word;
}

void set_words(std::uint16_t control, std::uint16_t status) noexcept {
  Environment e;
  __asm__ volatile("fnstenv %0" : "=m"(e));
  e.control = control;
  e.status = static_cast<std::uint16_t>((e.status & ~StatusFlags) | (status & StatusFlags));
  __asm__ volatile("fldenv %0" : : "m"(e));
}

}  // namespace

DefaultFloatEnvironment::DefaultFloatEnvironment() noexcept
    : vector_(_mm_getcsr()), control_(control_word()), status_(status_word()) {
  if ((vector_ & ~VectorFlags) != DefaultVector) _mm_setcsr(DefaultVector);
  if (control_ != DefaultControl) set_words(DefaultControl, 0);
}

DefaultFloatEnvironment::~DefaultFloatEnvironment() {
  if (control_word() != control_ || ((status_word() ^ status_) & StatusFlags) != 0) {
    set_words(control_, status_);
  }
  if (_mm_getcsr() != vector_) _mm_setcsr(vector_);
}

}  // namespace ricci

#else

namespace ricci {

DefaultFloatEnvironment::DefaultFloatEnvironment() noexcept {
  std::fegetenv(&before_);
  std::fesetenv(FE_DFL_ENV);
}

DefaultFloatEnvironment::~DefaultFloatEnvironment() { std::fesetenv(&before_); }

}  // namespace ricci

#endif
