// Any bytes are an archive of arrays or refused; arrays survive writing and reading.
#include <cstdint>
#include <cstdlib>

#include "ricci/io/npy.h"
#include "ricci/support/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ricci;
  io::NamedTensors arrays;
  try {
    arrays = io::parse_npz(std::as_bytes(std::span(data, size)), {.max_total_bytes = 1 << 24});
  } catch (const UserError&) {
    return 0;
  }
  const io::NamedTensors again = io::parse_npz(io::npz_bytes(arrays));
  if (again.size() != arrays.size()) std::abort();
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (again[i].first != arrays[i].first) std::abort();
    if (!again[i].second.identical(arrays[i].second)) std::abort();
  }
  return 0;
}
