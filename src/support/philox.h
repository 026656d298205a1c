// Philox4x32-10, the counter-based generator behind every random op: a word depends on the seed and
// on its own position only, so any element can be drawn alone, in any order, on any device.
#pragma once

#include <array>
#include <cstdint>

namespace ricci {

using PhiloxBlock = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

inline constexpr std::array<std::uint32_t, 2> PhiloxMultipliers = {0xD2511F53, 0xCD9E8D57};
inline constexpr std::array<std::uint32_t, 2> PhiloxWeyl = {0x9E3779B9, 0xBB67AE85};

/// Ten rounds on a 128-bit counter (word 0 is the lowest).
[[nodiscard]] constexpr PhiloxBlock philox4x32(PhiloxBlock counter, PhiloxKey key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{PhiloxMultipliers[0]} * counter[0];
    const std::uint64_t p1 = std::uint64_t{PhiloxMultipliers[1]} * counter[2];
    const auto high0 = static_cast<std::uint32_t>(p0 >> 32);
    const auto high1 = static_cast<std::uint32_t>(p1 >> 32);
    counter = {high1 ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
               high0 ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key = {key[0] + PhiloxWeyl[0], key[1] + PhiloxWeyl[1]};
  }
  return counter;
}

/// The endless sequence of 32-bit words of one random node, readable at any position.
class PhiloxStream {
 public:
  static constexpr std::uint64_t KeyFactor = 0x9E3779B97F4A7C15ULL;

  /// A node's stream is keyed by the run's seed and the node's key.
  constexpr PhiloxStream(std::uint64_t global_seed, std::uint64_t key) noexcept {
    const std::uint64_t s = global_seed + key * KeyFactor;
    key_ = {static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(s >> 32)};
  }

  [[nodiscard]] constexpr PhiloxKey key() const noexcept { return key_; }
  [[nodiscard]] constexpr std::uint32_t word(std::uint64_t position) const noexcept {
    const std::uint64_t step = position / 4;
    const PhiloxBlock counter{static_cast<std::uint32_t>(step),
                              static_cast<std::uint32_t>(step >> 32), 0, 0};
    return philox4x32(counter, key_)[position % 4];
  }
  /// A number in [0, 1) with 24 bits, from one word.
  [[nodiscard]] constexpr double uniform24(std::uint64_t position) const noexcept {
    return static_cast<double>(word(position) >> 8) * 0x1p-24;
  }
  /// A number in [0, 1) with 53 bits, from the words at `position` (high) and after it (low).
  [[nodiscard]] constexpr double uniform53(std::uint64_t position) const noexcept {
    const std::uint64_t wide = (std::uint64_t{word(position)} << 32) | word(position + 1);
    return static_cast<double>(wide >> 11) * 0x1p-53;
  }

 private:
  PhiloxKey key_{};
};

}  // namespace ricci
