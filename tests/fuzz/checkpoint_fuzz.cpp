// Any bytes are a checkpoint or refused, those whose sums were made to fit too; what is one
// survives writing and reading.
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "ricci/support/error.h"

#include "io/checkpoint_sums.h"
#include "train/checkpoint_file.h"

namespace {

void read_any(std::vector<std::byte> bytes) {
  using namespace ricci;
  Checkpoint found;
  try {
    found = parse_checkpoint(std::make_shared<const std::vector<std::byte>>(std::move(bytes)));
  } catch (const UserError& e) {
    if (e.code() != ErrorCode::File) std::abort();
    return;
  }
  std::vector<std::byte> written;
  try {
    written = checkpoint_bytes(found);
  } catch (const UserError&) {
    return;
  }
  const Checkpoint again =
      parse_checkpoint(std::make_shared<const std::vector<std::byte>>(written));
  if (checkpoint_bytes(again) != written) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> given = std::as_bytes(std::span(data, size));
  std::vector<std::byte> bytes(given.begin(), given.end());
  read_any(bytes);
  try {
    ricci::io::seal_sums(bytes);
  } catch (const ricci::UserError&) {
    return 0;
  }
  read_any(std::move(bytes));
  return 0;
}
