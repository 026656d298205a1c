// Any bytes are an archive of arrays or refused; arrays survive writing and reading, and take no
// more than the limit.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>

#include "ricci/io/npy.h"
#include "ricci/support/error.h"

namespace ricci::testing {

/// The most that reading an archive may take at once besides its own bytes: what it gives, twice
/// the largest array, and some room for names and headers.
[[nodiscard]] inline std::int64_t npz_room(std::size_t archive_bytes, std::int64_t limit) {
  constexpr std::int64_t Headers = 1 << 18;
  // A directory record has 46 bytes at least, and becomes a name, a type and two records.
  return 3 * limit + Headers + 64 * static_cast<std::int64_t>(archive_bytes);
}

/// Reads bytes as an archive. std::runtime_error when something is wrong with what was accepted.
inline void read_any_npz(std::span<const std::byte> bytes, std::int64_t limit) {
  io::NamedTensors arrays;
  try {
    arrays = io::parse_npz(bytes, {.max_total_bytes = limit});
  } catch (const UserError&) {
    return;
  }
  std::int64_t total = 0;
  for (const auto& [name, tensor] : arrays) total += tensor.numel() * size_of(tensor.dtype());
  if (total > limit) throw std::runtime_error("the arrays take more than the limit");
  const io::NamedTensors again = io::parse_npz(io::npz_bytes(arrays));
  if (again.size() != arrays.size()) throw std::runtime_error("arrays are lost");
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (again[i].first != arrays[i].first || !again[i].second.identical(arrays[i].second)) {
      throw std::runtime_error("an array does not survive");
    }
  }
}

}  // namespace ricci::testing
