// safetensors, the plain format of weights: a directory in JSON, then the bytes of the tensors.
// Files from outside are not trusted: a malformed one gives UserError(file) that names the byte,
// and reading it takes memory in proportion to the directory. Tensors stay where they are until
// they are loaded.
//
//   io::Safetensors model = io::read_safetensors("model.safetensors");     // mapped
//   Tensor w = io::load(*model.find_tensor("h.0.attn.weight"), model.owner);
//   io::write_safetensors("out.safetensors", {.metadata = {{"format", "pt"}}, .tensors = …});
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ricci/io/mapped_file.h"
#include "ricci/io/stored_tensor.h"

namespace ricci::io {

struct Safetensors {
  std::vector<std::pair<std::string, std::string>> metadata = {};  ///< in the order of the file
  std::vector<StoredTensor> tensors = {};                          ///< in the order of their bytes
  std::shared_ptr<const void> owner = {};                          ///< keeps the tensors' bytes

  /// Nothing when there is none of the name.
  [[nodiscard]] const std::string* find(std::string_view key) const;
  [[nodiscard]] const StoredTensor* find_tensor(std::string_view name) const;
};

/// The element type of a name in files (`F32`, `BF16`, …): what is no dtype here is known by its
/// size alone. Nothing for names the format has not.
[[nodiscard]] std::optional<StoredType> safetensors_type(std::string_view name);
/// The name of an element type; nothing when the format has no such elements.
[[nodiscard]] std::optional<std::string_view> safetensors_name(const StoredType& type);

struct SafetensorsOptions {
  std::int64_t max_file_bytes = MaxMappedBytes;
  std::int64_t max_header_bytes = 100'000'000;  ///< as the format has it
  std::int64_t max_tensors = 1'000'000;
  std::int64_t max_keys = 1'000'000;
  std::int64_t max_name_bytes = 4096;
};

/// Tensors view `bytes`, which must outlive them. As the format demands, their bytes are next to
/// each other, without gaps, and fill the file.
[[nodiscard]] Safetensors parse_safetensors(std::span<const std::byte> bytes,
                                            const SafetensorsOptions& options = {});
/// The file is mapped, and `owner` holds it.
[[nodiscard]] Safetensors read_safetensors(const std::string& path,
                                           const SafetensorsOptions& options = {});

/// In the order the format's own library writes: wide elements first, then by name, so that the
/// same tensors give the same bytes. UserError(file) for what could not be read back: names used
/// twice or not UTF-8, bytes that do not match sizes, types the format lacks.
[[nodiscard]] std::vector<std::byte> safetensors_bytes(const Safetensors& file);
/// Writes a temporary file, syncs it and renames it.
void write_safetensors(const std::string& path, const Safetensors& file);

}  // namespace ricci::io
