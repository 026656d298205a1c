// Numbers on the command line. The option parser takes what does not fit for the largest number and
// a leading zero for octal; these checks refuse both first.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "ricci/support/text.h"

namespace ricci::tool {

/// Reads digits, all of `text`; false when it is anything else or does not fit.
template <class T>
[[nodiscard]] bool read_whole(std::string_view text, T& value) {
  const bool octal = text.size() > 1 && text.front() == '0';
  if (text.empty() || octal || text.find_first_not_of("0123456789") != std::string_view::npos) {
    return false;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// A check of an option: a whole number that T can hold, not below zero.
template <class T>
[[nodiscard]] std::string check_whole(const std::string& text) {
  T value{};
  if (read_whole(text, value)) return "";
  return fmt::format("'{}' is not a whole number from 0 to {}", shortened(text, 40),
                     std::numeric_limits<T>::max());
}

/// The same above zero.
template <class T>
[[nodiscard]] std::string check_positive(const std::string& text) {
  T value{};
  if (read_whole(text, value) && value > 0) return "";
  return fmt::format("'{}' is not a whole number from 1 to {}", shortened(text, 40),
                     std::numeric_limits<T>::max());
}

}  // namespace ricci::tool
