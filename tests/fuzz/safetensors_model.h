// Any bytes are a file of tensors or refused; what is accepted survives writing and reading.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>

#include "ricci/io/safetensors.h"
#include "ricci/support/error.h"

namespace ricci::testing {

/// The most that reading a file may take in one piece: a tensor has 50 bytes in the directory at
/// least, a key 6.
[[nodiscard]] inline std::int64_t safetensors_room(std::size_t file_bytes,
                                                   std::int64_t most_decoded) {
  constexpr std::int64_t Least = 1 << 16;
  return Least + 32 * static_cast<std::int64_t>(file_bytes) + 4 * most_decoded;
}

/// One element of integers without a sign, which a file has in little-endian bytes.
[[nodiscard]] inline std::uint64_t unsigned_number(const io::StoredTensor& t, std::size_t i) {
  const auto size = static_cast<std::size_t>(t.type.block_bytes);
  std::uint64_t number = 0;
  for (std::size_t b = size; b-- > 0;) {
    number = number << 8 | std::to_integer<std::uint64_t>(t.bytes[i * size + b]);
  }
  return number;
}

/// Is there a byte that is no bool, or a number beyond those of i64? Nothing else is refused.
[[nodiscard]] inline bool holds_what_cannot_be_read(const io::StoredTensor& t) {
  if (t.type.dtype == DType::Bool) {
    return std::ranges::any_of(t.bytes, [](std::byte b) { return b > std::byte{1}; });
  }
  if (!t.type.widened) return false;
  bool beyond = false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(t.numel()); ++i) {
    beyond = beyond || unsigned_number(t, i) > std::uint64_t{INT64_MAX};
  }
  return beyond;
}

/// Reads a tensor that can be read, and looks at what must be so.
inline void load_any(const io::StoredTensor& t) {
  const bool refuses = holds_what_cannot_be_read(t);
  Tensor read;
  try {
    read = io::load(t);
  } catch (const UserError&) {
    if (!refuses) throw;
    return;
  }
  if (refuses) throw std::runtime_error("what no dtype holds is read");
  if (!t.type.widened) return;
  const auto numbers = read.numbers<std::int64_t>();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::cmp_not_equal(numbers[i], unsigned_number(t, i))) {
      throw std::runtime_error("a number without a sign is read as another");
    }
  }
}

/// std::runtime_error when something is wrong with what was accepted. Tensors of up to
/// `most_decoded` elements are loaded.
inline void read_any_safetensors(std::span<const std::byte> bytes, std::int64_t most_decoded) {
  io::Safetensors file;
  try {
    file = io::parse_safetensors(bytes);
  } catch (const UserError&) {
    return;
  }
  for (const io::StoredTensor& t : file.tensors) {
    if (file.find_tensor(t.name) != &t) throw std::runtime_error("a tensor is not found");
    if (t.type.can_be_read() && t.numel() <= most_decoded) load_any(t);
  }
  const std::vector<std::byte> written = io::safetensors_bytes(file);
  const io::Safetensors again = io::parse_safetensors(written);
  if (io::safetensors_bytes(again) != written) throw std::runtime_error("writing is not stable");
  if (again.metadata != file.metadata) throw std::runtime_error("metadata is lost");
  if (again.tensors.size() != file.tensors.size()) throw std::runtime_error("tensors are lost");
  for (const io::StoredTensor& a : file.tensors) {
    const io::StoredTensor* b = again.find_tensor(a.name);
    if (b == nullptr || a.type != b->type || a.dims != b->dims ||
        !std::ranges::equal(a.bytes, b->bytes)) {
      throw std::runtime_error("a tensor does not survive");
    }
  }
}

}  // namespace ricci::testing
