// The laws of text for text that is long and deep: pieces and how often they are repeated.
#include <cstddef>
#include <cstdint>
#include <span>

#include "fuzz/text_laws.h"
#include "fuzz/text_shapes.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ricci::testing;
  const std::span bytes(data, size);
  (void)check_text_laws(text_of_shapes(bytes, shape_size(bytes)));
  return 0;
}
