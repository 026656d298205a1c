// Any text is parsed or refused; what parses is well formed and survives printing, reading and
// cheap passes. A dictionary of the language's words is in text_parser.dict.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/text_laws.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)ricci::testing::check_text_laws({reinterpret_cast<const char*>(data), size});
  return 0;
}
