#include "ricci/io/weights.h"

#include <deque>

#include <fmt/format.h>

#include "ricci/io/gguf.h"
#include "ricci/io/safetensors.h"
#include "ricci/support/text.h"

#include "io/fault.h"

namespace ricci::io {
namespace {

NamedTensors loaded(const std::vector<StoredTensor>& stored,
                    const std::shared_ptr<const void>& owner) {
  NamedTensors out;
  for (const StoredTensor& t : stored) out.emplace_back(t.name, load(t, owner));
  return out;
}

// Views of tensors, which `plain` keeps.
std::vector<StoredTensor> stored(const NamedTensors& tensors, std::deque<Tensor>& plain) {
  std::vector<StoredTensor> out;
  for (const auto& [name, tensor] : tensors) {
    const Tensor& t = plain.emplace_back(tensor.contiguous());
    out.push_back({name, StoredType::of(t.dtype()), t.type().static_dims(), t.bytes()});
  }
  return out;
}

}  // namespace

WeightFormat weight_format(std::string_view path) {
  if (path.ends_with(".npz")) return WeightFormat::Npz;
  if (path.ends_with(".safetensors")) return WeightFormat::Safetensors;
  if (path.ends_with(".gguf")) return WeightFormat::Gguf;
  throw UserError(Diagnostic{
      .code = ErrorCode::File,
      .detail = "format",
      .message = fmt::format("{} does not say which format it has", quote(shortened(path))),
      .where = {},
      .notes = {},
      .help = "end its name with .npz, .safetensors or .gguf"});
}

WeightFormat weight_format_of(std::span<const std::byte> front) {
  const std::string_view text = as_text(front);
  if (text.starts_with("GGUF")) return WeightFormat::Gguf;
  // An archive begins with its first entry, or, when it is empty, with its end.
  if (text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06")) return WeightFormat::Npz;
  // A length, then JSON.
  if (text.size() > 8 && text[8] == '{') return WeightFormat::Safetensors;
  file_fault("format", "this is no file of weights", 0, "NPZ, safetensors and GGUF files are read");
}

NamedTensors read_weights(const std::string& path) {
  const MappedFile file(path);
  try {
    switch (weight_format_of(file.bytes())) {
      case WeightFormat::Npz: return parse_npz(file.bytes());
      case WeightFormat::Safetensors:
        return loaded(parse_safetensors(file.bytes()).tensors, file.owner());
      case WeightFormat::Gguf: {
        const Gguf gguf = read_gguf(file, path);
        return loaded(gguf.tensors, gguf.owner);
      }
    }
  } catch (const UserError& e) {
    throw in_file(e, path);
  }
  return {};
}

void write_weights(const std::string& path, const NamedTensors& tensors) {
  std::deque<Tensor> plain;
  switch (weight_format(path)) {
    case WeightFormat::Npz: return write_npz(path, tensors);
    case WeightFormat::Safetensors:
      return write_safetensors(path, {.tensors = stored(tensors, plain)});
    case WeightFormat::Gguf: return write_gguf(path, {.tensors = stored(tensors, plain)});
  }
}

}  // namespace ricci::io
