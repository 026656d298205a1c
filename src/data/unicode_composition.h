// Unicode's tables of characters that are composed of others, all in ascending order.
#pragma once

#include <cstdint>
#include <span>

namespace ricci {

struct Composition {
  char32_t code, first, second;  ///< no second: another spelling of the first
};
/// Those that are written as one character.
[[nodiscard]] std::span<const Composition> composed_characters() noexcept;
/// Those that are written as what they are composed of.
[[nodiscard]] std::span<const Composition> characters_taken_apart() noexcept;

/// Marks on the character before them. Of different classes their order says nothing.
struct MarkClass {
  char32_t first, last;
  std::uint32_t kind;
};
[[nodiscard]] std::span<const MarkClass> classes_of_marks() noexcept;

}  // namespace ricci
