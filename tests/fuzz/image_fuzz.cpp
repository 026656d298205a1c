// Any bytes are a picture or refused, and no picture is larger than its limits.
#include <cstdint>
#include <cstdlib>

#include "ricci/io/image.h"
#include "ricci/support/error.h"

#include "fuzz/largest_allocation.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ricci;
  constexpr std::int64_t Most = 1 << 14;
  constexpr std::int64_t Decoders = 16 << 20;  // what libraries and one chunk of PNG may take
  const ricci::testing::LargestAllocation largest(Decoders + static_cast<std::int64_t>(size));
  for (const int channels : {0, 3}) {
    try {
      const Tensor picture =
          io::parse_image(std::as_bytes(std::span(data, size)),
                          {.channels = channels, .limits = {.max_side = 4096, .max_pixels = Most}});
      if (picture.rank() != 3 || picture.dims()[0] * picture.dims()[1] > Most) std::abort();
      if (channels != 0 && picture.dims()[2] != channels) std::abort();
    } catch (const UserError&) {
    }
  }
  return 0;
}
