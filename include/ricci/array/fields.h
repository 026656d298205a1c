// The fields of plain structs and their names, without a macro: up to 48 of them, found by how many
// initialisers a struct takes and bound by structured bindings.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace ricci::detail {

/// Initialises a field of any type; never defined.
struct AnyField {
  template <class T>
  operator T() const;  // NOLINT: that is the point
};

template <class T, class... Given>
consteval std::size_t count_fields() {
  if constexpr (requires { T{Given{}..., AnyField{}}; }) {
    return count_fields<T, Given..., AnyField>();
  } else {
    return sizeof...(Given);
  }
}
/// Initialises a base of T, and nothing else; never defined.
template <class T>
struct AnyBase {
  template <class U>
    requires(std::is_base_of_v<U, T> && !std::is_same_v<U, T>)
  operator U() const;  // NOLINT: that is the point
};
/// A base takes an initialiser as a field does, and is none.
template <class T>
inline constexpr bool HasBase = requires { T{AnyBase<T>{}}; };

template <std::size_t>
using AnyFieldAt = AnyField;
template <class T, std::size_t... Before, std::size_t... After>
consteval bool starts_c_array(std::index_sequence<Before...>, std::index_sequence<After...>) {
  return requires { T{AnyFieldAt<Before>{}..., {}}; } &&
         !requires { T{AnyFieldAt<Before>{}..., {}, AnyFieldAt<After>{}...}; };
}
template <class T, std::size_t Count, std::size_t... I>
consteval bool has_c_array(std::index_sequence<I...>) {
  return (
      starts_c_array<T>(std::make_index_sequence<I>(), std::make_index_sequence<Count - 1 - I>()) ||
      ...);
}
/// A C array takes an initialiser an element, and all of them are used up by one pair of braces.
template <class T>
inline constexpr bool HasCArray =
    has_c_array<T, count_fields<T>()>(std::make_index_sequence<count_fields<T>()>());

/// 0 for a struct whose fields cannot be told apart; `tie_fields` says so.
template <class T>
inline constexpr std::size_t FieldCount = HasBase<T> || HasCArray<T> ? 0 : count_fields<T>();

inline constexpr std::size_t MostFields = 48;

template <std::size_t N>
struct FieldsOf;
#define RICCI_FIELDS(n, ...)          \
  template <>                         \
  struct FieldsOf<n> {                \
    template <class T>                \
    static constexpr auto tie(T& s) { \
      auto& [__VA_ARGS__] = s;        \
      return std::tie(__VA_ARGS__);   \
    }                                 \
  };
// clang-format off
RICCI_FIELDS(1, f0)
RICCI_FIELDS(2, f0, f1)
RICCI_FIELDS(3, f0, f1, f2)
RICCI_FIELDS(4, f0, f1, f2, f3)
RICCI_FIELDS(5, f0, f1, f2, f3, f4)
RICCI_FIELDS(6, f0, f1, f2, f3, f4, f5)
RICCI_FIELDS(7, f0, f1, f2, f3, f4, f5, f6)
RICCI_FIELDS(8, f0, f1, f2, f3, f4, f5, f6, f7)
RICCI_FIELDS(9, f0, f1, f2, f3, f4, f5, f6, f7, f8)
RICCI_FIELDS(10, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9)
RICCI_FIELDS(11, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10)
RICCI_FIELDS(12, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11)
RICCI_FIELDS(13, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12)
RICCI_FIELDS(14, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13)
RICCI_FIELDS(15, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14)
RICCI_FIELDS(16, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15)
RICCI_FIELDS(17, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16)
RICCI_FIELDS(18, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17)
RICCI_FIELDS(19, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18)
RICCI_FIELDS(20, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19)
RICCI_FIELDS(21, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20)
RICCI_FIELDS(22, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21)
RICCI_FIELDS(23, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22)
RICCI_FIELDS(24, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23)
RICCI_FIELDS(25, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24)
RICCI_FIELDS(26, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25)
RICCI_FIELDS(27, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26)
RICCI_FIELDS(28, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27)
RICCI_FIELDS(29, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28)
RICCI_FIELDS(30, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29)
RICCI_FIELDS(31, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30)
RICCI_FIELDS(32, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31)
RICCI_FIELDS(33, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32)
RICCI_FIELDS(34, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32, f33)
RICCI_FIELDS(35, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32, f33, f34)
RICCI_FIELDS(36, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32, f33, f34, f35)
RICCI_FIELDS(37, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32, f33, f34, f35, f36)
RICCI_FIELDS(38, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32, f33, f34, f35, f36, f37)
RICCI_FIELDS(39, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32, f33, f34, f35, f36, f37, f38)
RICCI_FIELDS(40, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32, f33, f34, f35, f36, f37, f38, f39)
RICCI_FIELDS(41, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32, f33, f34, f35, f36, f37, f38, f39, f40)
RICCI_FIELDS(42, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32, f33, f34, f35, f36, f37, f38, f39, f40, f41)
RICCI_FIELDS(43, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32, f33, f34, f35, f36, f37, f38, f39, f40, f41, f42)
RICCI_FIELDS(44, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32, f33, f34, f35, f36, f37, f38, f39, f40, f41, f42, f43)
RICCI_FIELDS(45, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32, f33, f34, f35, f36, f37, f38, f39, f40, f41, f42, f43, f44)
RICCI_FIELDS(46, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32, f33, f34, f35, f36, f37, f38, f39, f40, f41, f42, f43, f44, f45)
RICCI_FIELDS(47, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32, f33, f34, f35, f36, f37, f38, f39, f40, f41, f42, f43, f44, f45, f46)
RICCI_FIELDS(48, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32, f33, f34, f35, f36, f37, f38, f39, f40, f41, f42, f43, f44, f45, f46, f47)
// clang-format on
#undef RICCI_FIELDS
template <>
struct FieldsOf<0> {
  template <class T>
  static constexpr auto tie(T&) {
    return std::tuple<>();
  }
};

/// References to all fields of a plain struct.
template <class T>
constexpr auto tie_fields(T& s) {
  using Struct = std::remove_const_t<T>;
  constexpr std::size_t count = FieldCount<Struct>;
  static_assert(!HasBase<Struct>,
                "a struct of arrays has no base class: make it a field, or specialise "
                "ricci::TreeTraits");
  static_assert(!HasCArray<Struct>, "a struct of arrays has no C arrays: std::array<Array, N>");
  static_assert(count <= MostFields,
                "a struct of arrays has at most 48 fields: group some of them");
  return FieldsOf<count>::tie(s);
}

// A name is cut out of how the compiler writes a pointer to the field of an object that is never
// made.
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
template <class T>
struct NeverMade {
  T value;
  static const NeverMade<T> it;
};
template <class T>
struct FieldPointer {
  const T* pointer;
};
template <auto Pointer>
consteval const char* pointer_text() {
  return __PRETTY_FUNCTION__;
}
template <class T, std::size_t I>
consteval std::string_view find_field_name() {
  constexpr auto* pointer = &std::get<I>(tie_fields(NeverMade<T>::it.value));
  constexpr std::string_view text =
      pointer_text<FieldPointer<std::remove_cvref_t<decltype(*pointer)>>{pointer}>();
  constexpr std::string_view cut = text.substr(0, text.find_last_not_of(")}];. >") + 1);
  return cut.substr(cut.find_last_of(":.") + 1);
}
template <class T, std::size_t I>
inline constexpr std::string_view FieldName = find_field_name<T, I>();
#ifdef __clang__
#pragma clang diagnostic pop
#endif

template <class T>
consteval const char* type_text() {
  return __PRETTY_FUNCTION__;
}
template <class T>
consteval std::string_view find_type_name() {
  constexpr std::string_view text = type_text<T>();
  constexpr std::string_view from = text.substr(text.find("T = ") + 4);
  constexpr std::string_view name = from.substr(0, from.find_first_of(";]"));
  constexpr std::string_view plain = name.substr(0, name.find('<'));
  constexpr std::size_t scope = plain.rfind("::");
  return scope == std::string_view::npos ? name : name.substr(scope + 2);
}
/// A type's name without its namespaces.
template <class T>
inline constexpr std::string_view TypeName = find_type_name<T>();

}  // namespace ricci::detail
