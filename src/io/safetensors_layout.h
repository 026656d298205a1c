// What the reader and the writer of safetensors share. Layout: the length of the directory, 64
// bits, little-endian; the directory, an object in JSON that spaces may follow; the bytes of the
// tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ricci/io/stored_tensor.h"

namespace ricci::io {

inline constexpr std::size_t SafetensorsFront = 8;  ///< bytes of the length
inline constexpr std::string_view SafetensorsMetadata = "__metadata__";

/// An element type and its name. Pointers into the list are ordered as the list is.
struct SafetensorsType {
  std::string_view name;
  StoredType type;
};
/// Bytes that a tensor takes in such a file; nothing when they do not fit in 64 bits, or are no
/// whole number.
[[nodiscard]] std::optional<std::int64_t> safetensors_size(const StoredType& type,
                                                           const StaticDims& dims);
/// Null when the format has no such elements.
[[nodiscard]] const SafetensorsType* find_safetensors_type(const StoredType& type);

}  // namespace ricci::io
