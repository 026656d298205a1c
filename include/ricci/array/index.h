// What stands between the brackets of an array: x[0], x(slice(1, 5, 2), newaxis, ellipsis).
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>

namespace ricci {

class Array;
namespace detail {
struct ArrayNode;
}

/// start:stop:step as in NumPy: negative places count from the end, those outside are moved to it.
struct Slice {
  std::optional<std::int64_t> start = {};
  std::optional<std::int64_t> stop = {};
  std::int64_t step = 1;
};
/// slice(5) is [:5], slice(1, 5) is [1:5], slice(1, {}, 2) is [1::2], slice() is [:].
[[nodiscard]] inline Slice slice() { return {}; }
[[nodiscard]] inline Slice slice(std::int64_t stop) { return {.start = {}, .stop = stop}; }
[[nodiscard]] inline Slice slice(std::optional<std::int64_t> start,
                                 std::optional<std::int64_t> stop, std::int64_t step = 1) {
  return {start, stop, step};
}

/// No place: slice(1, none) is [1:], slice(none, none, -1) is [::-1].
inline constexpr std::nullopt_t none = std::nullopt;

/// A new axis of size 1.
inline constexpr struct NewAxis {
} newaxis;
/// As many whole axes as are left.
inline constexpr struct Ellipsis {
} ellipsis;

/// One entry of an index, and where it was written.
struct Index {
  using Place = std::source_location;
  enum class Kind : std::uint8_t { None, Place, Range, New, Rest, Gather };

  Index() = default;
  template <std::integral T>
  Index(T i, Place w = Place::current())  // NOLINT: a number is an index
      : kind(Kind::Place), place(static_cast<std::int64_t>(i)), where(w) {}
  Index(Slice r, Place w = Place::current()) : kind(Kind::Range), range(r), where(w) {}  // NOLINT
  Index(NewAxis, Place w = Place::current()) : kind(Kind::New), where(w) {}              // NOLINT
  Index(Ellipsis, Place w = Place::current()) : kind(Kind::Rest), where(w) {}            // NOLINT
  Index(const Array& i, Place w = Place::current());                                     // NOLINT

  [[nodiscard]] Array indices() const;

  Kind kind = Kind::None;
  std::int64_t place = 0;
  Slice range = {};
  std::shared_ptr<detail::ArrayNode> node = {};  ///< of an array of indices, and which result
  std::uint32_t result = 0;
  std::source_location where = {};
};

}  // namespace ricci
