// Any bytes are an archive of arrays or refused, within the memory that is promised.
#include <cstdint>

#include "fuzz/largest_allocation.h"
#include "fuzz/npz_archive.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t Limit = 1 << 20;
  const ricci::testing::LargestAllocation largest(ricci::testing::npz_room(size, Limit));
  ricci::testing::read_any_npz(std::as_bytes(std::span(data, size)), Limit);
  return 0;
}
