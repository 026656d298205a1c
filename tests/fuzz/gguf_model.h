// Any bytes are a model or refused; what is accepted survives writing and reading, and what can be
// decoded is.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>

#include "ricci/io/gguf.h"
#include "ricci/support/error.h"

namespace ricci::testing {

/// The most that reading a file may take in one piece: a key has 13 bytes at least, and becomes a
/// name and a value, twice as many of them where a list grows; tensors are decoded to a limit.
[[nodiscard]] inline std::int64_t gguf_room(std::size_t file_bytes, std::int64_t most_decoded) {
  constexpr std::int64_t Least = 1 << 16;
  return Least + 32 * static_cast<std::int64_t>(file_bytes) + 4 * most_decoded;
}

inline bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

/// Reads bytes as a file. std::runtime_error when something is wrong with what was accepted.
/// Tensors of up to `most_decoded` elements are decoded.
inline void read_any_gguf(std::span<const std::byte> bytes, std::int64_t most_decoded) {
  io::Gguf gguf;
  try {
    gguf = io::parse_gguf(bytes);
  } catch (const UserError&) {
    return;
  }
  for (const auto& [key, value] : gguf.metadata) {
    if (gguf.find(key) != &value) throw std::runtime_error("a key is not found");
    (void)io::to_text(value);
  }
  for (const io::StoredTensor& t : gguf.tensors) {
    if (t.type.can_be_read() && t.numel() <= most_decoded) (void)io::load(t);
  }
  // Padding to a large alignment is as large as that.
  if (gguf.alignment > 256) return;
  const std::vector<std::byte> written = io::gguf_bytes(gguf);
  const io::Gguf again = io::parse_gguf(written);
  if (io::gguf_bytes(again) != written) throw std::runtime_error("writing is not stable");
  if (again.tensors.size() != gguf.tensors.size()) throw std::runtime_error("tensors are lost");
  for (std::size_t i = 0; i < gguf.tensors.size(); ++i) {
    const io::StoredTensor& a = gguf.tensors[i];
    const io::StoredTensor& b = again.tensors[i];
    if (a.name != b.name || a.type != b.type || a.dims != b.dims || !same_bytes(a.bytes, b.bytes)) {
      throw std::runtime_error("a tensor does not survive");
    }
  }
  if (again.metadata.size() != gguf.metadata.size()) throw std::runtime_error("keys are lost");
}

}  // namespace ricci::testing
