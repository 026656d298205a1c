// While it lives, a single allocation of more than so many bytes ends the process. Only sanitizers
// tell of allocations; elsewhere nothing is watched.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RICCI_ALLOCATIONS_ARE_TOLD
#include <sanitizer/allocator_interface.h>
#endif
#endif

namespace ricci::testing {

class LargestAllocation {
 public:
  explicit LargestAllocation(std::int64_t bytes) {
    watch();
    limit() = bytes;
  }
  ~LargestAllocation() { limit() = INT64_MAX; }
  LargestAllocation(const LargestAllocation&) = delete;
  LargestAllocation& operator=(const LargestAllocation&) = delete;

 private:
  static std::atomic<std::int64_t>& limit() {
    static std::atomic<std::int64_t> bytes = INT64_MAX;
    return bytes;
  }
  static void watch() {
#ifdef RICCI_ALLOCATIONS_ARE_TOLD
    [[maybe_unused]] static const int installed = __sanitizer_install_malloc_and_free_hooks(
        [](const volatile void*, std::size_t size) {
          if (static_cast<std::int64_t>(size) > limit()) std::abort();
        },
        [](const volatile void*) {});
#endif
  }
};

}  // namespace ricci::testing
