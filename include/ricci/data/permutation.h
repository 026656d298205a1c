// An order of 0 … n - 1 that takes no memory: where each of them goes is computed when it is asked.
//
//   const Permutation order(data.size(), seed);
//   order(0);                                    // which comes first
#pragma once

#include <array>
#include <cstdint>

namespace ricci {

/// The same count and seed give the same order, on every machine. It is a Feistel network on the
/// bits of a number, walked until it is below the count: some ten nanoseconds a number.
class Permutation {
 public:
  Permutation(std::int64_t count, std::uint64_t seed);

  [[nodiscard]] std::int64_t size() const noexcept { return count_; }
  /// For i in [0, size).
  [[nodiscard]] std::int64_t operator()(std::int64_t i) const noexcept;

 private:
  static constexpr int Rounds = 8;
  [[nodiscard]] std::uint64_t once(std::uint64_t x) const noexcept;

  std::int64_t count_;
  int half_bits_ = 4;
  std::array<std::uint64_t, Rounds> keys_{};
};

}  // namespace ricci
