// Tensors as files of weights hold them: a directory of names, sizes and element types, and bytes
// that are looked at when they are asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/quant/format.h"
#include "ricci/type/tensor.h"

namespace ricci::io {

/// What elements are: a dtype, a block format, or a type that is known by name and size only.
struct StoredType {
  std::string_view name;
  std::int64_t block_length = 1;  ///< elements
  std::int64_t block_bytes = 0;
  std::optional<DType> dtype = std::nullopt;
  std::optional<quant::Format> format = std::nullopt;
  /// Of unsigned integers that are no dtype: the one their values are read as, as NumPy's are.
  std::optional<DType> widened = std::nullopt;

  [[nodiscard]] static StoredType of(DType dtype) {
    return {ricci::name(dtype), 1, size_of(dtype), dtype};
  }
  [[nodiscard]] static StoredType of(quant::Format format) {
    const quant::FormatInfo& f = quant::info(format);
    return {f.name, f.block_length, f.block_bytes, std::nullopt, format};
  }
  [[nodiscard]] bool can_be_read() const noexcept { return dtype || format || widened; }
  bool operator==(const StoredType&) const = default;
};

struct StoredTensor {
  std::string name;
  StoredType type;
  StaticDims dims;  ///< outermost first; blocks lie along the last
  std::span<const std::byte> bytes;
  std::size_t offset = 0;  ///< of the bytes in their file

  [[nodiscard]] std::int64_t numel() const;
};

/// Bytes that `dims` of a type take; nothing when they do not fit in 64 bits, or rows are no whole
/// number of blocks.
[[nodiscard]] std::optional<std::int64_t> stored_bytes(const StoredType& type,
                                                       const StaticDims& dims);

/// The tensor: elements of a dtype as they are, without a copy where `owner` keeps the bytes and
/// they lie so that they can be used; block formats decoded to f32. UserError(file.tensor_type)
/// for types that are known by name only, UserError(file.tensor_range) for a number of 64 bits
/// without a sign that i64 does not hold.
[[nodiscard]] Tensor load(const StoredTensor& stored,
                          const std::shared_ptr<const void>& owner = {});

}  // namespace ricci::io
