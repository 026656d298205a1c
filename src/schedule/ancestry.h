// Which groups a group waits for, directly or not; kept up to date while groups grow.
#pragma once

#include <cstdint>
#include <vector>

namespace ricci::schedule {

class Ancestry {
 public:
  /// Adds a group that waits for nothing.
  void grow() { sets_.emplace_back(); }

  [[nodiscard]] bool depends(std::size_t group, std::size_t on) const {
    return has(sets_[group], on);
  }

  /// `group` waits for `on`.
  void add(std::size_t group, std::size_t on) {
    if (has(sets_[group], on)) return;
    Bits more = sets_[on];
    set(more, on);
    for (std::size_t g = 0; g < sets_.size(); ++g) {
      if (g == group || has(sets_[g], group)) include(sets_[g], more);
    }
  }

  /// Does one of two groups wait for the other through a third?
  [[nodiscard]] bool linked_through_others(std::size_t a, std::size_t b) const {
    return links(a, b) || links(b, a);
  }

  /// `gone` becomes part of `into`.
  void merge(std::size_t into, std::size_t gone) {
    include(sets_[into], sets_[gone]);
    clear(sets_[into], into);
    clear(sets_[into], gone);
    Bits more = sets_[into];
    set(more, into);
    for (std::size_t g = 0; g < sets_.size(); ++g) {
      if (g == into || (!has(sets_[g], gone) && !has(sets_[g], into))) continue;
      clear(sets_[g], gone);
      include(sets_[g], more);
    }
    sets_[gone].clear();
  }

 private:
  using Bits = std::vector<std::uint64_t>;

  static bool has(const Bits& bits, std::size_t i) {
    return i / 64 < bits.size() && ((bits[i / 64] >> (i % 64)) & 1U) != 0;
  }
  static void set(Bits& bits, std::size_t i) {
    if (bits.size() <= i / 64) bits.resize(i / 64 + 1, 0);
    bits[i / 64] |= std::uint64_t{1} << (i % 64);
  }
  static void clear(Bits& bits, std::size_t i) {
    if (i / 64 < bits.size()) bits[i / 64] &= ~(std::uint64_t{1} << (i % 64));
  }
  static void include(Bits& to, const Bits& from) {
    if (to.size() < from.size()) to.resize(from.size(), 0);
    for (std::size_t w = 0; w < from.size(); ++w) to[w] |= from[w];
  }

  // Is there a third group that waits for `first` and that `last` waits for?
  [[nodiscard]] bool links(std::size_t first, std::size_t last) const {
    const Bits& between = sets_[last];
    for (std::size_t w = 0; w < between.size(); ++w) {
      for (std::uint64_t rest = between[w]; rest != 0; rest &= rest - 1) {
        const std::size_t g = w * 64 + static_cast<std::size_t>(__builtin_ctzll(rest));
        if (g != first && has(sets_[g], first)) return true;
      }
    }
    return false;
  }

  std::vector<Bits> sets_;
};

}  // namespace ricci::schedule
