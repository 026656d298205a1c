#include "ricci/io/weights.h"

#include <algorithm>
#include <deque>

#include <fmt/format.h>

#include "ricci/io/gguf.h"
#include "ricci/io/safetensors.h"
#include "ricci/io/weight_file.h"
#include "ricci/support/text.h"

#include "io/checkpoint_sums.h"
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

std::size_t WeightMetadata::size() const noexcept {
  if (const auto* texts = std::get_if<Texts>(&content)) return texts->size();
  if (const auto* values = std::get_if<Values>(&content)) return values->keys.size();
  return 0;
}

WeightFile read_weight_file(const std::string& path, FileBytes how) {
  const MappedFile file(path, MaxMappedBytes, how,
                        [](auto front) { (void)weight_format_of(front); });
  try {
    switch (weight_format_of(file.bytes())) {
      case WeightFormat::Npz: return {parse_npz(file.bytes()), {}};
      case WeightFormat::Safetensors: {
        Safetensors parsed = parse_safetensors(file.bytes());
        require_sums_if_any(parsed, file.bytes());
        return {loaded(parsed.tensors, file.owner()),
                {WeightMetadata::Texts(std::move(parsed.metadata))}};
      }
      case WeightFormat::Gguf: {
        Gguf gguf = read_gguf(file, path);
        const auto is_block = [](const StoredTensor& t) { return t.type.format.has_value(); };
        return {loaded(gguf.tensors, gguf.owner),
                {WeightMetadata::Values{std::move(gguf.metadata), gguf.alignment}},
                std::ranges::any_of(gguf.tensors, is_block)};
      }
    }
  } catch (const UserError& e) {
    throw in_file(e, path);
  }
  return {};
}

NamedTensors read_weights(const std::string& path, FileBytes how) {
  return read_weight_file(path, how).tensors;
}

std::vector<std::string> losses_of(const WeightFile& file, WeightFormat format) {
  std::vector<std::string> out;
  const std::size_t keys = file.metadata.size();
  const std::size_t holds = format == WeightFormat::Safetensors ? 1 : 2;
  if (keys > 0 && (format == WeightFormat::Npz || file.metadata.content.index() != holds)) {
    out.push_back(fmt::format("{} {} of metadata {} left out", keys, keys == 1 ? "key" : "keys",
                              keys == 1 ? "is" : "are"));
  }
  const auto narrow = std::ranges::count_if(
      file.tensors, [](const auto& t) { return t.second.dtype() == DType::BF16; });
  if (format == WeightFormat::Npz && narrow > 0) {
    out.push_back(fmt::format("NPZ has no bf16: {} {} written as f32", narrow,
                              narrow == 1 ? "tensor is" : "tensors are"));
  }
  return out;
}

void write_weight_file(const std::string& path, const WeightFile& file) {
  std::deque<Tensor> plain;
  switch (weight_format(path)) {
    case WeightFormat::Npz: return write_npz(path, file.tensors);
    case WeightFormat::Safetensors: {
      Safetensors out{.tensors = stored(file.tensors, plain)};
      if (const auto* texts = std::get_if<WeightMetadata::Texts>(&file.metadata.content)) {
        out.metadata = *texts;
      }
      return write_safetensors(path, out);
    }
    case WeightFormat::Gguf: {
      Gguf out{.tensors = stored(file.tensors, plain)};
      if (const auto* values = std::get_if<WeightMetadata::Values>(&file.metadata.content)) {
        out.metadata = values->keys;
        out.alignment = values->alignment;
      }
      return write_gguf(path, out);
    }
  }
}

void write_weights(const std::string& path, const NamedTensors& tensors) {
  write_weight_file(path, {tensors, {}});
}

}  // namespace ricci::io
