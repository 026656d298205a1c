#include <bit>

#include "ricci/data/dataset.h"

namespace ricci {
namespace {

std::uint64_t mixed(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace

Permutation::Permutation(std::int64_t count, std::uint64_t seed) : count_(count < 0 ? 0 : count) {
  // Not fewer than eight bits: a network on very few has too few orders to choose from.
  const auto bits =
      static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count_ > 1 ? count_ - 1 : 1)));
  half_bits_ = bits <= 8 ? 4 : (bits + 1) / 2;
  std::uint64_t state = mixed(seed + 0x9E3779B97F4A7C15ULL);
  for (std::uint64_t& key : keys_) {
    state += 0x9E3779B97F4A7C15ULL;
    key = mixed(state);
  }
}

std::uint64_t Permutation::once(std::uint64_t x) const noexcept {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = x >> half_bits_;
  std::uint64_t right = x & mask;
  for (const std::uint64_t key : keys_) {
    const std::uint64_t next = left ^ (mixed(right + key) & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

// The network permutes more numbers than there are; going on from those that are too large until
// one is not gives a permutation of the others.
std::int64_t Permutation::operator()(std::int64_t i) const noexcept {
  auto x = static_cast<std::uint64_t>(i);
  do {
    x = once(x);
  } while (x >= static_cast<std::uint64_t>(count_));
  return static_cast<std::int64_t>(x);
}

}  // namespace ricci
