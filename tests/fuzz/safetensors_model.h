// Any bytes are a file of tensors or refused; what is accepted survives writing and reading.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>

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
    if (!t.type.can_be_read() || t.numel() > most_decoded) continue;
    try {
      (void)io::load(t);
    } catch (const UserError&) {
      // Bytes that are no bools, numbers beyond those of i64.
      if (t.type.dtype != DType::Bool && !t.type.widened) throw;
    }
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
