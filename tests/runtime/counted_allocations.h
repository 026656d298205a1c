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
  /// Allocated and not freed since its beginning; negative when more was freed.
  [[nodiscard]] std::int64_t live_bytes() const;
};

/// While it lives, one allocation of this thread finds no memory: the one after `before` others.
/// Where a sanitizer has operators of its own, none does: see `can_fail`.
class FailingAllocation {
 public:
  explicit FailingAllocation(std::int64_t before);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  [[nodiscard]] bool has_failed() const;
  [[nodiscard]] static bool can_fail();
};

}  // namespace ricci::testing
