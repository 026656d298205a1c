#include "ricci/train/checkpoint.h"

#include <memory>

#include "ricci/support/error.h"
#include "ricci/support/file.h"

#include "io/fault.h"
#include "train/checkpoint_file.h"

namespace ricci {
namespace {

void require_name(const std::string& path) {
  if (!path.ends_with(".npz") && !path.ends_with(".gguf")) return;
  throw UserError(Diagnostic{.code = ErrorCode::File,
                             .detail = "format",
                             .message = "a checkpoint is a safetensors file, whatever it is called",
                             .where = {.file = path, .line = 0, .column = 0, .text = {}},
                             .notes = {},
                             .help = "end its name with .safetensors, or with nothing"});
}

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  require_name(path);
  write_file(path, checkpoint_bytes(checkpoint));
}

Checkpoint read_checkpoint(const std::string& path) {
  auto bytes = std::make_shared<const std::vector<std::byte>>(read_file(path));
  try {
    return parse_checkpoint(std::move(bytes));
  } catch (const UserError& e) {
    throw io::in_file(e, path);
  }
}

const DataPosition& detail::position_in(const Checkpoint& found, const std::string& path) {
  if (found.info.data) return *found.info.data;
  throw UserError(Diagnostic{.code = ErrorCode::Name,
                             .detail = "checkpoint",
                             .message = "the checkpoint has no position in data",
                             .where = {.file = path, .line = 0, .column = 0, .text = {}},
                             .notes = {},
                             .help = "it was saved without a loader: restore it without one"});
}

}  // namespace ricci
