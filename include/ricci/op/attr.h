// Attributes as data. An op is a plain struct; `AttrCodec` turns each of its fields into an
// `AttrValue` and back, and from that one conversion come printing, parsing, hashing, documentation
// and keyword arguments, with no code per op.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ricci/support/error.h"
#include "ricci/type/real.h"
#include "ricci/type/tensor.h"
#include "ricci/type/type.h"

namespace ricci {

/// An axis; builders and the parser accept negatives, a graph holds the non-negative one.
struct Axis {
  std::int64_t value = -1;
  constexpr Axis() = default;
  constexpr Axis(std::int64_t v) : value(v) {}               // NOLINT: a number is an axis
  constexpr Axis(int v) : value(v) {}                        // NOLINT
  constexpr operator std::int64_t() const { return value; }  // NOLINT
  [[nodiscard]] std::size_t index() const { return static_cast<std::size_t>(value); }
  constexpr bool operator==(const Axis&) const = default;
};
using Axes = std::vector<Axis>;

/// A shape that may be absent. Unlike std::optional it takes a list: `.shape = {2, 3}`.
struct OptionalDims : std::optional<Dims> {
  using std::optional<Dims>::optional;
  OptionalDims() = default;
  OptionalDims(std::optional<Dims> dims) : std::optional<Dims>(std::move(dims)) {}    // NOLINT
  OptionalDims(std::initializer_list<Dim> dims) : std::optional<Dims>(Dims(dims)) {}  // NOLINT
  bool operator==(const OptionalDims& other) const { return base() == other.base(); }

 private:
  [[nodiscard]] const std::optional<Dims>& base() const { return *this; }
};

/// Opaque bytes, printed as hex.
struct Bytes {
  std::vector<std::byte> data;
  bool operator==(const Bytes&) const = default;
};

/// The generic form of an attribute: what braces in the text form can hold.
struct AttrValue;

/// `mean`, `sliding_window(4)`: a name with optional arguments.
struct Enumerator {
  std::string name;
  std::vector<AttrValue> args;
  bool operator==(const Enumerator&) const;
};

struct AttrValue {
  std::variant<std::monostate, bool, std::int64_t, Real, std::string, Enumerator,
               std::vector<AttrValue>, Dim, Type, Bytes, std::shared_ptr<const Tensor>>
      value;

  [[nodiscard]] bool absent() const noexcept {
    return std::holds_alternative<std::monostate>(value);
  }
  template <class T>
  [[nodiscard]] const T* get() const noexcept {
    return std::get_if<T>(&value);
  }
  /// As the text form writes it.
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] std::uint64_t hash() const;
  bool operator==(const AttrValue& other) const;
};

struct NamedAttr {
  std::string name;
  AttrValue value;
};

/// Thrown by a codec when a value is of the wrong kind; the caller adds op, field and place.
struct AttrMismatch {
  std::string expected;
};

/// Conversion between a field's C++ type and AttrValue. Specialised per field type; enums get it
/// from their `enumerator_names`.
template <class T>
struct AttrCodec;

template <class T>
[[nodiscard]] AttrValue to_attr(const T& v) {
  return AttrCodec<T>::to(v);
}
template <class T>
[[nodiscard]] T from_attr(const AttrValue& v) {
  return AttrCodec<T>::from(v);
}

#define RICCI_DECLARE_CODEC(T)         \
  template <>                          \
  struct AttrCodec<T> {                \
    static AttrValue to(const T& v);   \
    static T from(const AttrValue& v); \
    static std::string describe();     \
  }
RICCI_DECLARE_CODEC(bool);
RICCI_DECLARE_CODEC(std::int64_t);
RICCI_DECLARE_CODEC(Real);
RICCI_DECLARE_CODEC(std::string);
RICCI_DECLARE_CODEC(DType);
RICCI_DECLARE_CODEC(Dim);
RICCI_DECLARE_CODEC(Axis);
RICCI_DECLARE_CODEC(Type);
RICCI_DECLARE_CODEC(Bytes);
RICCI_DECLARE_CODEC(Tensor);

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E e) { enumerator_names(e); };

/// An enum whose spellings are listed once, by `constexpr auto enumerator_names(E)`.
template <NamedEnum E>
[[nodiscard]] constexpr std::string_view name_of(E e) {
  return enumerator_names(E{})[static_cast<std::size_t>(e)];
}
template <NamedEnum E>
[[nodiscard]] constexpr std::optional<E> enum_from_name(std::string_view name) {
  constexpr auto names = enumerator_names(E{});
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<E>(i);
  }
  return std::nullopt;
}

template <NamedEnum E>
struct AttrCodec<E> {
  static AttrValue to(const E& e) { return {Enumerator{std::string(name_of(e)), {}}}; }
  static E from(const AttrValue& v) {
    if (const auto* e = v.get<Enumerator>(); e != nullptr && e->args.empty()) {
      if (const auto found = enum_from_name<E>(e->name)) return *found;
    }
    throw AttrMismatch{describe()};
  }
  static std::string describe() {
    std::string out = "one of";
    for (const std::string_view n : enumerator_names(E{})) (out += ' ') += n;
    return out;
  }
};

template <class T>
struct AttrCodec<std::optional<T>> {
  static AttrValue to(const std::optional<T>& v) { return v ? to_attr(*v) : AttrValue{}; }
  static std::optional<T> from(const AttrValue& v) {
    if (v.absent()) return std::nullopt;
    return from_attr<T>(v);
  }
  static std::string describe() { return AttrCodec<T>::describe() + ", or absent"; }
};

template <>
struct AttrCodec<OptionalDims> : AttrCodec<std::optional<Dims>> {};

template <class T>
struct AttrCodec<std::vector<T>> {
  static AttrValue to(const std::vector<T>& vs) {
    std::vector<AttrValue> out;
    out.reserve(vs.size());
    for (const T& v : vs) out.push_back(to_attr(v));
    return {std::move(out)};
  }
  static std::vector<T> from(const AttrValue& v) {
    const auto* list = v.get<std::vector<AttrValue>>();
    if (list == nullptr) throw AttrMismatch{describe()};
    std::vector<T> out;
    out.reserve(list->size());
    for (const AttrValue& e : *list) out.push_back(from_attr<T>(e));
    return out;
  }
  static std::string describe() { return "list of " + AttrCodec<T>::describe(); }
};

}  // namespace ricci
