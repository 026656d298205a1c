// Numbers come out the same whatever rounding mode, flushing of subnormals or traps the caller has
// set: every entry where we compute holds one of these.
#pragma once

#include <cfenv>
#include <cstdint>

namespace ricci {

/// While it lives, this thread computes in the default environment: to nearest, subnormals kept, no
/// traps. Then the caller's is as it was, raised flags included. Where nothing has to change it
/// only looks, which takes some nanoseconds.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() noexcept;
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;
  ~DefaultFloatEnvironment();

 private:
#if defined(__x86_64__)
  std::uint32_t vector_;   // MXCSR: control and flags of SSE, AVX and AVX-512
  std::uint16_t control_;  // of the x87
  std::uint16_t status_;
#else
  std::fenv_t before_;
#endif
};

}  // namespace ricci
