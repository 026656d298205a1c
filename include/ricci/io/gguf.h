// GGUF, the format of quantised models: metadata of every kind and tensors in block formats or
// plain dtypes. Files from outside are not trusted: a malformed one gives UserError(file) that
// names the byte, and reading it takes memory in proportion to the part before the tensors. Those
// stay where they are until they are loaded.
//
//   io::Gguf model = io::read_gguf("model.gguf");            // mapped
//   Tensor w = io::load(*model.find_tensor("blk.0.ffn_up.weight"), model.owner);
//   io::write_gguf("out.gguf", {.metadata = {{"general.name", "tiny"}}, .tensors = …});
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ricci/io/mapped_file.h"
#include "ricci/io/stored_tensor.h"

namespace ricci::io {

/// Elements of one kind. The kinds have the order of their tags in files, here as in `GgufValue`.
struct GgufArray {
  using Elements =
      std::variant<std::vector<std::uint8_t>, std::vector<std::int8_t>, std::vector<std::uint16_t>,
                   std::vector<std::int16_t>, std::vector<std::uint32_t>, std::vector<std::int32_t>,
                   std::vector<float>, std::vector<bool>, std::vector<std::string>,
                   std::vector<GgufArray>, std::vector<std::uint64_t>, std::vector<std::int64_t>,
                   std::vector<double>>;
  Elements elements;

  [[nodiscard]] std::size_t size() const;
};

using GgufValue = std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t,
                               std::uint32_t, std::int32_t, float, bool, std::string, GgufArray,
                               std::uint64_t, std::int64_t, double>;

/// `u32`, `string`, `f32[4]`.
[[nodiscard]] std::string kind_of(const GgufValue& value);
/// The value as text; long strings and arrays are cut to about so many characters.
[[nodiscard]] std::string to_text(const GgufValue& value, std::size_t most = 80);

struct Gguf {
  std::uint32_t version = 3;  ///< as it was read; files are written as version 3
  std::uint32_t alignment = 32;
  std::vector<std::pair<std::string, GgufValue>> metadata = {};  ///< in the order of the file
  std::vector<StoredTensor> tensors = {};
  std::shared_ptr<const void> owner = {};  ///< keeps the tensors' bytes

  /// Nothing when there is none of the name.
  [[nodiscard]] const GgufValue* find(std::string_view key) const;
  [[nodiscard]] const StoredTensor* find_tensor(std::string_view name) const;
};

/// The element type of a number in files; nothing for numbers no type has.
[[nodiscard]] std::optional<StoredType> gguf_type(std::uint32_t number);
/// The number of an element type; nothing when the format has no such elements.
[[nodiscard]] std::optional<std::uint32_t> gguf_number(const StoredType& type);

struct GgufOptions {
  std::int64_t max_file_bytes = MaxMappedBytes;
  std::int64_t max_keys = 1'000'000;
  std::int64_t max_tensors = 1'000'000;
  std::int64_t max_name_bytes = 4096;  ///< of a key or a tensor's name
  /// A file that says it is one part of several (`split.count`) is read with the others, which lie
  /// in its folder under names like model-00002-of-00003.gguf; limits are for all of them together.
  bool join_parts = true;
};
/// How deep arrays of arrays nest at most.
inline constexpr int MostGgufNesting = 8;

/// Versions 1 to 3, little-endian. Tensors view `bytes`, which must outlive them.
[[nodiscard]] Gguf parse_gguf(std::span<const std::byte> bytes, const GgufOptions& options = {});
/// The file is mapped, and `owner` holds it. Any part of a model in several files gives the whole
/// model: the tensors of all parts, and the keys of the first and those it lacks, without the keys
/// that say which part it is. UserError(file.gguf_part) that names the file when a part is not what
/// its name says, UserError(file) when one is missing.
[[nodiscard]] Gguf read_gguf(const std::string& path, const GgufOptions& options = {});
/// The same for a file that is open; `path` is where its other parts are.
[[nodiscard]] Gguf read_gguf(const MappedFile& file, const std::string& path,
                             const GgufOptions& options = {});

/// Version 3 with the alignment of `gguf`; its tensors may lie anywhere in memory, offsets are made
/// here. The key `general.alignment` is written when the alignment is not 32. UserError(file) for
/// what could not be read back: names used twice, bytes that do not match sizes, types GGUF lacks.
[[nodiscard]] std::vector<std::byte> gguf_bytes(const Gguf& gguf);
/// Writes a temporary file, syncs it and renames it.
void write_gguf(const std::string& path, const Gguf& gguf);

}  // namespace ricci::io
