// One long row of items sorted by all threads: by digits of eight bits, lowest first. Every pass
// counts the digits of each part of the row, finds from all counts where the digits of a part
// belong, and moves the parts' items there. A stable order is only one, whoever moves what.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "ricci/compiler/device/thread_pool.h"

#include "backend/cpu/host/sort_keys.h"

namespace ricci::cpu {

class SharedSort {
 public:
  static constexpr std::int64_t Digits = 256;
  using Counts = std::array<std::uint32_t, Digits>;

  explicit SharedSort(std::int64_t count)
      : count_(count), parts_(std::clamp<std::int64_t>(count / PartItems, 1, MostParts)) {}

  [[nodiscard]] std::int64_t parts() const { return parts_; }
  [[nodiscard]] std::int64_t begin(std::int64_t part) const { return part * count_ / parts_; }
  [[nodiscard]] std::int64_t end(std::int64_t part) const { return begin(part + 1); }

  /// Sorts items in the order of their positions; gives whichever of the two arrays holds them.
  /// `counts` has room for every part.
  template <class Item>
  [[nodiscard]] Item* run(ThreadPool& pool, Item* items, Item* spare, Counts* counts) const {
    constexpr int KeyBits = std::is_same_v<Item, std::uint64_t> ? 32 : 64;
    for (int shift = 0; shift < KeyBits; shift += 8) {
      const auto digit = [shift](const Item& item) { return (key_of(item) >> shift) & 0xFFU; };
      pool.run(parts_, [&](std::int64_t part) {
        Counts own{};
        for (std::int64_t i = begin(part); i < end(part); ++i) ++own[digit(items[i])];
        counts[part] = own;
      });
      if (!to_places({counts, static_cast<std::size_t>(parts_)})) continue;
      pool.run(parts_, [&](std::int64_t part) {
        move(std::span<const Item>(items + begin(part), items + end(part)), spare, counts[part],
             digit);
      });
      std::swap(items, spare);
    }
    return items;
  }

 private:
  static constexpr std::int64_t PartItems = 1 << 15;
  static constexpr std::int64_t MostParts = 64;

  // Moves items to the places of their digits, a cache line at a time: as many lines as there are
  // digits would leave the cache before the next item comes.
  template <class Item, class Digit>
  static void move(std::span<const Item> items, Item* to, const Counts& first, const Digit& digit) {
    constexpr std::uint32_t Line = 64 / sizeof(Item);
    alignas(64) std::array<std::array<Item, Line>, Digits> lines;
    Counts next = first;
    const auto write = [&](std::size_t d, std::uint32_t line, std::uint32_t end) {
      for (std::uint32_t i = std::max(line, first[d]); i < end; ++i) to[i] = lines[d][i % Line];
    };
    for (const Item& item : items) {
      const auto d = static_cast<std::size_t>(digit(item));
      const std::uint32_t at = next[d]++;
      lines[d][at % Line] = item;
      if (at % Line + 1 == Line) write(d, at + 1 - Line, at + 1);
    }
    for (std::size_t d = 0; d < Digits; ++d) write(d, next[d] / Line * Line, next[d]);
  }

  // Counts become the places of each part's first items; false when all items share a digit.
  [[nodiscard]] bool to_places(std::span<Counts> counts) const {
    std::uint32_t start = 0;
    for (std::size_t d = 0; d < Digits; ++d) {
      const std::uint32_t first = start;
      for (Counts& c : counts) start += std::exchange(c[d], start);
      if (start - first == count_) return false;
    }
    return true;
  }

  std::int64_t count_;
  std::int64_t parts_;
};

}  // namespace ricci::cpu
