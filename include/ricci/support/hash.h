// Deterministic 64-bit hashing: the same value gives the same hash in every run and process.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ricci {

/// Folds values into a running 64-bit hash.
class Hasher {
 public:
  Hasher& add(std::uint64_t v) noexcept {
    state_ = mix(state_ ^ (v + 0x9E3779B97F4A7C15ULL + (state_ << 6) + (state_ >> 2)));
    return *this;
  }
  Hasher& add(double v) noexcept { return add(std::bit_cast<std::uint64_t>(v)); }
  Hasher& add(std::string_view s) noexcept { return add(std::as_bytes(std::span(s))); }
  Hasher& add(std::span<const std::byte> bytes) noexcept;
  [[nodiscard]] std::uint64_t value() const noexcept { return state_; }

 private:
  static std::uint64_t mix(std::uint64_t x) noexcept {
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9ULL;
    x ^= x >> 27;
    x *= 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
  }
  std::uint64_t state_ = 0x243F6A8885A308D3ULL;
};

}  // namespace ricci
