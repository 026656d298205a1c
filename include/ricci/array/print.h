// Arrays as text, and text with arrays in it.
//
//   print("{:4} loss {:.4f}", step, loss);          // a line; numbers, texts and arrays
//   std::string s = formatted("{}", x);
//   x = debug_print("x is {}", x);                  // printed when it is computed, inside jit too
//
// What stands behind the colon is for the numbers, of an array each of its elements.
#pragma once

#include <concepts>
#include <cstdint>
#include <ostream>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "ricci/array/array.h"

namespace ricci {

/// How arrays are printed where nobody says it, as numpy.set_printoptions has it.
struct ArrayPrintOptions {
  int precision = 8;              ///< digits behind the point at most
  std::int64_t threshold = 1000;  ///< of more elements only the first and last are shown
  std::int64_t edge_items = 3;    ///< so many at each end of an axis
  std::int64_t line_width = 75;
};
/// For the whole process.
void set_print_options(const ArrayPrintOptions& options);
[[nodiscard]] ArrayPrintOptions print_options();

/// Types and shapes as they print: `f32[2, 3]`, `[2, 3]`, `f32`.
std::ostream& operator<<(std::ostream& out, const Type& type);
std::ostream& operator<<(std::ostream& out, const Dims& shape);
std::ostream& operator<<(std::ostream& out, DType dtype);
/// The elements, as those of an Array.
std::ostream& operator<<(std::ostream& out, const Tensor& values);
template <std::same_as<Dim> T>  // not of what becomes one
std::ostream& operator<<(std::ostream& out, const T& size) {
  return out << std::string_view(size.to_string());
}

namespace detail {

using PrintArgument = std::variant<std::int64_t, double, bool, std::string, Array>;

template <class T>
[[nodiscard]] PrintArgument print_argument(const T& value) {
  if constexpr (std::same_as<T, bool>) {
    return value;
  } else if constexpr (std::integral<T>) {
    return static_cast<std::int64_t>(value);
  } else if constexpr (std::floating_point<T>) {
    return static_cast<double>(value);
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    return std::string(std::string_view(value));
  } else if constexpr (std::same_as<T, Type> || std::same_as<T, Dim>) {
    return value.to_string();
  } else if constexpr (std::same_as<T, Dims>) {
    return to_string(value);
  } else if constexpr (std::same_as<T, DType>) {
    return std::string(name(value));
  } else {
    static_assert(std::convertible_to<const T&, Array>,
                  "print takes numbers, texts and arrays; the arrays of a struct one by one");
    return Array(value);
  }
}

[[nodiscard]] std::string format_text(std::string_view format,
                                      const std::vector<PrintArgument>& arguments,
                                      std::source_location where);
/// One array; an empty format is NumPy's own.
[[nodiscard]] std::string format_array(const Array& x, std::string_view format);
void print_line(const std::string& text);

/// A format and where it stands.
struct FormatText {
  std::string_view text;
  std::source_location where;
  template <std::convertible_to<std::string_view> T>
  FormatText(const T& t,  // NOLINT: it is one
             std::source_location w = std::source_location::current())
      : text(t), where(w) {}
};

}  // namespace detail

/// The format with `{}` replaced by the arguments, in order. UserError(attr) when it does not fit
/// them.
template <class... A>
[[nodiscard]] std::string formatted(detail::FormatText format, const A&... arguments) {
  return detail::format_text(format.text, {detail::print_argument(arguments)...}, format.where);
}

/// The same to stdout, and a new line.
template <class... A>
void print(detail::FormatText format, const A&... arguments) {
  detail::print_line(formatted(format, arguments...));
}

/// x itself, printed (with one `{}` for it) each time it is computed: what is never used is never
/// printed. Inside `vmap` the whole batch is printed, where something is differentiated its values.
[[nodiscard]] Array debug_print(std::string_view format, const Array& x,
                                Here where = Here::current());

}  // namespace ricci
