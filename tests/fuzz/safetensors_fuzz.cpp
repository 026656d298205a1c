// Any bytes are a file of tensors or refused, within the memory that is promised.
#include <cstdint>

#include "fuzz/largest_allocation.h"
#include "fuzz/safetensors_model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t MostDecoded = 1 << 14;
  const ricci::testing::LargestAllocation largest(
      ricci::testing::safetensors_room(size, MostDecoded));
  ricci::testing::read_any_safetensors(std::as_bytes(std::span(data, size)), MostDecoded);
  return 0;
}
