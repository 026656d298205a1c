// A file of weights with all that is in it, whatever its format: tensors, and what they come with.
//
//   io::WeightFile file = io::read_weight_file("model.safetensors");
//   for (auto& [name, tensor] : file.tensors) …
//   io::write_weight_file("smaller.safetensors", file);      // with the metadata it had
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ricci/io/gguf.h"
#include "ricci/io/npy.h"
#include "ricci/io/weights.h"

namespace ricci::io {

/// Of safetensors, which has texts, and of GGUF, which has values of every kind; NPZ has none.
struct WeightMetadata {
  using Texts = std::vector<std::pair<std::string, std::string>>;
  struct Values {
    std::vector<std::pair<std::string, GgufValue>> keys;
    std::uint32_t alignment = 32;
  };
  std::variant<std::monostate, Texts, Values> content;

  [[nodiscard]] std::size_t size() const noexcept;
};

struct WeightFile {
  NamedTensors tensors;
  WeightMetadata metadata;
  bool has_blocks = false;  ///< some tensors were in block formats, which are decoded
};

/// As `read_weights`.
[[nodiscard]] WeightFile read_weight_file(const std::string& path,
                                          FileBytes how = FileBytes::Mapped);

/// What a format has no place for, a sentence each: metadata of another format, dtypes that become
/// others. Empty where a file of this format has all of it.
[[nodiscard]] std::vector<std::string> losses_of(const WeightFile& file, WeightFormat format);

/// With its metadata where the format has such. The file appears when it is complete.
void write_weight_file(const std::string& path, const WeightFile& file);

}  // namespace ricci::io
