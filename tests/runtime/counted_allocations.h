// Counts what goes through operator new while it is switched on. The test binary replaces the
// global operators with ones that count; everything the library allocates goes through them.
#pragma once

#include <cstdint>

namespace ricci::testing {

class CountedAllocations {
 public:
  CountedAllocations();
  ~CountedAllocations();
  CountedAllocations(const CountedAllocations&) = delete;
  CountedAllocations& operator=(const CountedAllocations&) = delete;

  /// Since it was made, on all threads.
  [[nodiscard]] std::int64_t count() const;
  /// The most bytes that were allocated and not freed at one time, compared with its beginning.
  [[nodiscard]] std::int64_t peak_bytes() const;
};

}  // namespace ricci::testing
