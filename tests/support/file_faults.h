// What tests of file readers share: bytes from text, and the code a malformed file is refused with.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "ricci/support/error.h"

namespace ricci::testing {

[[nodiscard]] inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// The full code of the UserError `f` throws; empty when it throws none.
template <class F>
[[nodiscard]] std::string fault_of(F&& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.diagnostic().full_code();
  }
  return {};
}

}  // namespace ricci::testing
