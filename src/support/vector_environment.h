// The half of the floating-point environment that compiled kernels depend on, for runs that are so
// short that looking at the other half would be felt. See support/float_environment.h.
#pragma once

#include "support/float_environment.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ricci {

#if defined(__x86_64__)

/// `DefaultFloatEnvironment` for code that computes in vector registers alone: neither C++ that may
/// use `long double` nor libraries, whose functions may ask the x87 for the rounding mode.
class DefaultVectorEnvironment {
 public:
  DefaultVectorEnvironment() noexcept : before_(_mm_getcsr()) {
    constexpr unsigned Flags = 0x3f;
    constexpr unsigned Default = 0x1f80;  // all masked, to nearest, subnormals kept
    if ((before_ & ~Flags) != Default) _mm_setcsr(Default);
  }
  DefaultVectorEnvironment(const DefaultVectorEnvironment&) = delete;
  DefaultVectorEnvironment& operator=(const DefaultVectorEnvironment&) = delete;
  ~DefaultVectorEnvironment() {
    if (_mm_getcsr() != before_) _mm_setcsr(before_);
  }

 private:
  unsigned before_;
};

#else

using DefaultVectorEnvironment = DefaultFloatEnvironment;

#endif

}  // namespace ricci
