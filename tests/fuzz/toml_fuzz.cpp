// Any bytes are settings of `ricci train` or refused in a few words; settings are the same when
// they are written and read again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ricci/support/error.h"

#include "train/settings.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ricci;
  tool::RunSettings settings;
  try {
    tool::read_toml_text(settings, {reinterpret_cast<const char*>(data), size}, "run.toml");
  } catch (const UserError& e) {
    const std::string_view said = e.what();
    if (said.empty() || said.size() > 10'000) std::abort();
    return 0;
  }
  const std::string written = tool::to_toml(settings);
  tool::RunSettings again;
  tool::read_toml_text(again, written, "run.toml");
  if (tool::to_toml(again) != written) std::abort();
  return 0;
}
