// Variables of the environment. A program that runs with more rights than who started it does not
// obey what that one set: no variable is there then.
#pragma once

#include <cstdlib>

namespace ricci {

/// The value; null where there is none, and in programs that are setuid, setgid or have
/// capabilities.
[[nodiscard]] inline const char* environment_variable(const char* name) noexcept {
  return ::secure_getenv(name);
}

}  // namespace ricci
