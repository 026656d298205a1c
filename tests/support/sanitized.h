// Which sanitizer this build has. GCC tells by a macro, Clang when asked for a feature.
#pragma once

namespace ricci::testing {

#if defined(__has_feature)
#define RICCI_HAS_FEATURE(name) __has_feature(name)
#else
#define RICCI_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || RICCI_HAS_FEATURE(address_sanitizer)
inline constexpr bool HasAddressSanitizer = true;
#else
inline constexpr bool HasAddressSanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__) || RICCI_HAS_FEATURE(thread_sanitizer)
inline constexpr bool HasThreadSanitizer = true;
#else
inline constexpr bool HasThreadSanitizer = false;
#endif

#undef RICCI_HAS_FEATURE

/// Their shadow takes terabytes of addresses, their frames more of the stack, and they end the
/// process where an allocator would refuse: tests that limit any of it are left out.
inline constexpr bool SpaceIsTaken = HasAddressSanitizer || HasThreadSanitizer;

}  // namespace ricci::testing
