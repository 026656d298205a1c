// Arrays for the libraries of formatting: fmt::format("{:.3f}", x), where <fmt/format.h> is
// included before this, and std::format, where there is one. What stands behind the colon is for
// each element.
#pragma once

#include <string>
#include <string_view>

#include "ricci/array/print.h"

#if __has_include(<format>)
#include <format>
#endif

namespace ricci::detail {

/// Reads a format up to its end, and hands it to the elements.
struct ArrayFormatter {
  std::string text;

  template <class Context>
  constexpr auto parse(Context& context) {
    auto it = context.begin();
    while (it != context.end() && *it != '}') text += *it++;
    return it;
  }
  template <class Context>
  auto format(const Array& x, Context& context) const {
    auto out = context.out();
    for (const char c : format_array(x, text)) *out++ = c;
    return out;
  }
};

}  // namespace ricci::detail

#ifdef FMT_VERSION
template <>
struct fmt::formatter<ricci::Array> : ricci::detail::ArrayFormatter {};
#endif
#ifdef __cpp_lib_format
template <>
struct std::formatter<ricci::Array> : ricci::detail::ArrayFormatter {};
#endif
