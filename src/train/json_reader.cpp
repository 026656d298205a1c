#include "train/json_reader.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "support/float_environment.h"

namespace ricci {

std::string_view JsonReader::raw() {
  const std::size_t from = cursor_.offset();
  cursor_.skip();
  const std::size_t to = cursor_.offset();
  std::string_view value = text_.substr(from, to - from);
  return value.substr(0, value.find_last_not_of(" \t\r\n") + 1);
}

double JsonReader::number() {
  const DefaultFloatEnvironment floats;
  const std::string_view value = raw();
  if (value == "null") return std::numeric_limits<double>::quiet_NaN();
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size()) {
    cursor_.fault("a number is expected");
  }
  return number;
}

std::int64_t JsonReader::integer() {
  const double value = number();
  constexpr double Largest = 9007199254740992.0;  // where doubles stop having every whole number
  if (value != std::floor(value) || std::fabs(value) > Largest || std::isnan(value)) {
    cursor_.fault("a whole number is expected");
  }
  return static_cast<std::int64_t>(value);
}

}  // namespace ricci
