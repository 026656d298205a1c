// Texts in Unicode's form NFC: what can be written in several ways is written in one.
#pragma once

#include <string>
#include <string_view>

namespace ricci {

/// Bytes that are no UTF-8 stay as they are.
[[nodiscard]] std::string normalized_nfc(std::string_view text);

}  // namespace ricci
