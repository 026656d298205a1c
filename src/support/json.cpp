#include "support/json.h"

#include <cmath>

#include <fmt/format.h>

#include "ricci/support/text.h"

namespace ricci {

std::string quote_json(std::string_view text) {
  std::string out = "\"";
  std::size_t well_formed = valid_utf8_prefix(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (i == well_formed) {  // a document is UTF-8 throughout
      out += "\\ufffd";
      well_formed = i + 1 + valid_utf8_prefix(text.substr(i + 1));
    } else if (byte < 0x20) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      if (byte == '"' || byte == '\\') out += '\\';
      out += text[i];
    }
  }
  return out + '"';
}

std::string number_json(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

}  // namespace ricci
