// Text inside JSON documents, which are otherwise written with fmt.
#pragma once

#include <string>
#include <string_view>

namespace ricci {

/// A JSON string, with its quotes.
[[nodiscard]] std::string quote_json(std::string_view text);

/// A JSON number that reads back to the same f64; `null` for what JSON has no number for.
[[nodiscard]] std::string number_json(double value);

}  // namespace ricci
