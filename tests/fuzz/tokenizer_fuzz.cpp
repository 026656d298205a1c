// Any bytes are a tokenizer.json or refused; what is a tokenizer is the same when it is written and
// read again.
#include <cstdint>
#include <cstdlib>

#include "ricci/data/tokenizer.h"
#include "ricci/support/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ricci;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Tokenizer t = Tokenizer::from_json(text, {.max_tokens = 1 << 16, .max_token_bytes = 256});
    const std::string written = t.to_json();
    const Tokenizer again = Tokenizer::from_json(written);
    if (again.to_json() != written) std::abort();
    const std::vector<std::int32_t> tokens = t.encode(text);
    if (again.encode(text) != tokens) std::abort();
    (void)t.decode(tokens);
  } catch (const UserError&) {
  }
  // Whatever the bytes, they come back.
  static const Tokenizer plain;
  if (plain.decode(plain.encode(text)) != text) std::abort();
  return 0;
}
