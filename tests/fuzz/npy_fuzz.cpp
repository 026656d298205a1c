// Any bytes are an array or refused; an array survives writing and reading.
#include <cstdint>
#include <cstdlib>

#include "ricci/io/npy.h"
#include "ricci/support/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ricci;
  Tensor tensor;
  try {
    tensor = io::parse_npy(std::as_bytes(std::span(data, size)));
  } catch (const UserError&) {
    return 0;
  }
  if (!io::parse_npy(io::npy_bytes(tensor)).identical(tensor)) std::abort();
  return 0;
}
