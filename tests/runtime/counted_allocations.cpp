#include "runtime/counted_allocations.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include <malloc.h>

// Clang's thread sanitizer comes with operators that cannot be replaced; it tells of allocations
// itself.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RICCI_ALLOCATIONS_ARE_TOLD
#include <sanitizer/allocator_interface.h>
#endif
#endif

namespace {

std::atomic<bool> on = false;
std::atomic<std::int64_t> calls = 0;
std::atomic<std::int64_t> bytes = 0;
std::atomic<std::int64_t> peak = 0;
thread_local std::int64_t until_failure = -1;  // 0: the next; negative: none
thread_local bool failed = false;

std::int64_t size_of(const volatile void* p) {
  return static_cast<std::int64_t>(malloc_usable_size(const_cast<void*>(p)));
}

void count(const volatile void* p) {
  if (p == nullptr || !on.load(std::memory_order_relaxed)) return;
  ++calls;
  const std::int64_t now = bytes += size_of(p);
  std::int64_t most = peak.load();
  while (most < now && !peak.compare_exchange_weak(most, now)) {
  }
}

void forget(const volatile void* p) {
  if (p != nullptr && on.load(std::memory_order_relaxed)) bytes -= size_of(p);
}

#ifdef RICCI_ALLOCATIONS_ARE_TOLD

constexpr bool CanFail = false;

[[maybe_unused]] const int installed =
    __sanitizer_install_malloc_and_free_hooks([](const volatile void* p, std::size_t) { count(p); },
                                              [](const volatile void* p) { forget(p); });

}  // namespace

#else

constexpr bool CanFail = true;

void* allocate(std::size_t size, std::size_t alignment) {
  if (until_failure >= 0 && until_failure-- == 0) {
    failed = true;
    return nullptr;
  }
  if (size == 0) size = 1;
  void* p = alignment <= alignof(std::max_align_t)
                ? std::malloc(size)
                : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  count(p);
  return p;
}

void release(void* p) noexcept {
  forget(p);
  std::free(p);
}

void* or_throw(void* p) {
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

constexpr std::size_t Plain = alignof(std::max_align_t);

}  // namespace

// The array and sized forms of the standard library call these.
void* operator new(std::size_t size) { return or_throw(allocate(size, Plain)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, Plain);
}
void* operator new(std::size_t size, std::align_val_t a) {
  return or_throw(allocate(size, static_cast<std::size_t>(a)));
}
void* operator new(std::size_t size, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }

#endif

namespace ricci::testing {

CountedAllocations::CountedAllocations() {
  calls = 0;
  bytes = 0;
  peak = 0;
  on = true;
}
CountedAllocations::~CountedAllocations() { on = false; }
std::int64_t CountedAllocations::count() const { return calls; }
std::int64_t CountedAllocations::peak_bytes() const { return peak; }
std::int64_t CountedAllocations::live_bytes() const { return bytes; }

FailingAllocation::FailingAllocation(std::int64_t before) {
  failed = false;
  until_failure = before;
}
FailingAllocation::~FailingAllocation() { until_failure = -1; }
bool FailingAllocation::has_failed() const { return failed; }
bool FailingAllocation::can_fail() { return CanFail; }

}  // namespace ricci::testing
