// Orders of elements as orders of unsigned integers, with the position behind the key: such items
// are all different, so any sort is a stable one.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "backend/cpu/host/element.h"
#include "backend/cpu/host/simd.h"

namespace ricci::cpu {

/// A key of 64 bits with a position.
struct WideItem {
  std::uint64_t key;
  std::uint64_t position;
  auto operator<=>(const WideItem&) const = default;
};

/// The item of an element type: elements of up to 32 bits share one word with their position.
template <class T>
inline constexpr bool has_narrow_key = sizeof(T) <= 4;
template <class T>
using ItemOf = std::conditional_t<has_narrow_key<T>, std::uint64_t, WideItem>;

/// What orders elements: an unsigned integer.
template <class T>
using KeyOf = std::conditional_t<has_narrow_key<T>, std::uint32_t, std::uint64_t>;

/// An unsigned integer in the order of the element: NaN above all numbers, -0.0 equal to 0.0. No
/// branch, so that loops over it have a vector form.
template <class T>
[[nodiscard]] RICCI_INLINE inline KeyOf<T> ascending_key(T v) noexcept {
  using Bits = KeyOf<T>;
  constexpr int Last = std::numeric_limits<Bits>::digits - 1;
  constexpr Bits Top = Bits{1} << Last;
  if constexpr (is_any_float<T>) {
    using F = Number<T>;
    constexpr Bits Infinity = std::bit_cast<Bits>(std::numeric_limits<F>::infinity());
    const auto bits = std::bit_cast<Bits>(element_cast<F>(v) + F(0));  // -0.0 becomes 0.0
    const auto ordered = static_cast<Bits>(bits ^ ((Bits{0} - (bits >> Last)) | Top));
    const auto nan = static_cast<Bits>((bits & ~Top) > Infinity ? 1 : 0);
    return static_cast<Bits>(ordered | (Bits{0} - nan));
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Bits>(static_cast<Bits>(v) ^ Top);
  } else {
    return static_cast<Bits>(v);
  }
}

/// The same, turned round where the largest comes first.
template <class T>
[[nodiscard]] RICCI_INLINE inline KeyOf<T> ordered_key(T v, bool descending) noexcept {
  return static_cast<KeyOf<T>>(ascending_key(v) ^ (KeyOf<T>{0} - KeyOf<T>{descending}));
}

template <class T>
[[nodiscard]] ItemOf<T> item_of(T v, std::int64_t position, bool descending) noexcept {
  const auto key = ordered_key(v, descending);
  const auto at = static_cast<std::uint64_t>(position);
  if constexpr (has_narrow_key<T>) {
    return (std::uint64_t{key} << 32) | at;
  } else {
    return {key, at};
  }
}

[[nodiscard]] inline std::int64_t position_of(std::uint64_t item) noexcept {
  return static_cast<std::int64_t>(item & 0xFFFFFFFFU);
}
[[nodiscard]] inline std::int64_t position_of(const WideItem& item) noexcept {
  return static_cast<std::int64_t>(item.position);
}

[[nodiscard]] inline std::uint64_t key_of(std::uint64_t item) noexcept { return item >> 32; }
[[nodiscard]] inline std::uint64_t key_of(const WideItem& item) noexcept { return item.key; }

namespace detail {
// A stable radix sort by digits of some bits, lowest first; digits all items share are left out.
template <int DigitBits, class Item>
Item* radix_sort(Item* items, Item* spare, std::size_t count) {
  constexpr int KeyBits = std::is_same_v<Item, std::uint64_t> ? 32 : 64;
  constexpr int Passes = (KeyBits + DigitBits - 1) / DigitBits;
  constexpr std::size_t Digits = std::size_t{1} << DigitBits;
  const auto digit = [](const Item& item, int pass) {
    return (key_of(item) >> (pass * DigitBits)) & (Digits - 1);
  };
  std::array<std::array<std::uint32_t, Digits>, Passes> next{};
  for (std::size_t i = 0; i < count; ++i) {
    for (int pass = 0; pass < Passes; ++pass) {
      ++next[static_cast<std::size_t>(pass)][digit(items[i], pass)];
    }
  }
  for (int pass = 0; pass < Passes; ++pass) {
    auto& places = next[static_cast<std::size_t>(pass)];
    if (places[digit(items[0], pass)] == count) continue;
    std::uint32_t start = 0;
    for (std::uint32_t& p : places) start += std::exchange(p, start);
    for (std::size_t i = 0; i < count; ++i) spare[places[digit(items[i], pass)]++] = items[i];
    std::swap(items, spare);
  }
  return items;
}
}  // namespace detail

/// Sorts items made in the order of their positions; gives whichever of the two arrays holds them.
template <class Item>
[[nodiscard]] Item* sort_items(Item* items, Item* spare, std::size_t count) {
  constexpr std::size_t FewItems = 128;
  constexpr std::size_t ManyItems = 8192;
  if (count < FewItems || count > 0xFFFFFFFFU) {
    std::sort(items, items + count);
    return items;
  }
  if (count < ManyItems) return detail::radix_sort<8>(items, spare, count);
  return detail::radix_sort<11>(items, spare, count);
}

/// How many items `least_items` looks at together, and room it needs.
inline constexpr std::int64_t LeastItemsRun = 16;
[[nodiscard]] constexpr std::int64_t least_items_room(std::int64_t kept) {
  return 2 * kept + LeastItemsRun;
}

/// Brings the `kept` least of the items `make(0) … make(count - 1)` to the front of `room`, in
/// order. `next(begin, key)` gives where the first run from `begin` on starts that may have a key
/// below that one: it may skip whole runs, and no others.
template <class Item, class Make, class Next>
void least_items(Item* room, std::int64_t count, std::int64_t kept, const Make& make,
                 const Next& next) {
  const std::int64_t most = least_items_room(kept);
  std::int64_t held = 0;
  bool full = false;  // `limit` is then the largest that may stay
  Item limit{};
  const auto drop = [&] {
    std::nth_element(room, room + kept - 1, room + held);
    held = kept;
  };
  for (std::int64_t begin = 0; begin < count; begin += LeastItemsRun) {
    // Behind the limit, an item with its key is larger.
    if (full) begin = next(begin, key_of(limit));
    const std::int64_t end = std::min(count, begin + LeastItemsRun);
    for (std::int64_t i = begin; i < end; ++i) {
      const Item item = make(i);
      if (full && limit < item) continue;
      room[held++] = item;
      if (held < most) continue;
      drop();
      limit = room[kept - 1];
      full = true;
    }
  }
  if (held > kept) drop();
  std::sort(room, room + held);
}

}  // namespace ricci::cpu
