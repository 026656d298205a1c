#include "io/json_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "ricci/support/text.h"

#include "io/fault.h"
#include "io/json_cursor.h"
#include "support/float_environment.h"

namespace ricci::io {
namespace {

constexpr std::array<std::string_view, 6> KindNames = {"null",     "true or false", "a number",
                                                       "a string", "an array",      "an object"};

std::string_view name_of(JsonValue::Kind kind) { return KindNames[static_cast<std::size_t>(kind)]; }

// How many bytes a character of UTF-8 takes at the front of a text; 0 where there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool too_short = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second >= 0xA0;
  return too_short || surrogate || (first == 0xF4 && second >= 0x90) ? 0 : length;
}

}  // namespace

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text), cursor_(text) {}

  JsonValue read_all() {
    JsonValue out = read();
    cursor_.end();
    return out;
  }

 private:
  JsonValue read() {
    JsonValue out;
    out.offset_ = cursor_.offset();
    const char first = out.offset_ < text_.size() ? text_[out.offset_] : '\0';
    switch (first) {
      case '{':
        out.kind_ = JsonValue::Kind::Object;
        cursor_.object([&](const std::string& key) { out.members_.emplace_back(key, read()); });
        return out;
      case '[':
        out.kind_ = JsonValue::Kind::Array;
        cursor_.array([&] { out.elements_.push_back(read()); });
        return out;
      case '"':
        out.kind_ = JsonValue::Kind::String;
        out.text_ = cursor_.string();
        return out;
      default: break;
    }
    cursor_.skip();  // a word or a number, or a fault
    if (first == 't' || first == 'f') {
      out.kind_ = JsonValue::Kind::Bool;
      out.boolean_ = first == 't';
    } else if (first != 'n') {
      out.kind_ = JsonValue::Kind::Number;
      const std::size_t end = text_.find_first_of(" \t\r\n,]}", out.offset_);
      out.text_ =
          text_.substr(out.offset_, end == std::string_view::npos ? end : end - out.offset_);
    }
    return out;
  }

  std::string_view text_;
  JsonCursor cursor_;
};

JsonValue parse_json(std::string_view text) { return JsonReader(text).read_all(); }

void JsonValue::fault(const std::string& message) const { file_fault("json", message, offset_); }

const JsonValue& JsonValue::require(Kind kind) const {
  if (kind_ != kind) fault(fmt::format("{} is expected, not {}", name_of(kind), name_of(kind_)));
  return *this;
}

bool JsonValue::boolean() const { return require(Kind::Bool).boolean_; }

double JsonValue::number() const {
  double value = 0;
  const std::string& text = require(Kind::Number).text_;
  const DefaultFloatEnvironment floats;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    fault(fmt::format("{} is no number that a double holds", quote(shortened(text))));
  }
  return value;
}

std::int64_t JsonValue::integer() const {
  std::int64_t value = 0;
  const std::string& text = require(Kind::Number).text_;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    fault(fmt::format("{} is no whole number", quote(shortened(text))));
  }
  return value;
}

const std::string& JsonValue::string() const { return require(Kind::String).text_; }

const std::vector<JsonValue>& JsonValue::array() const { return require(Kind::Array).elements_; }

const std::vector<std::pair<std::string, JsonValue>>& JsonValue::object() const {
  return require(Kind::Object).members_;
}

const JsonValue* JsonValue::find(std::string_view key) const {
  for (const auto& [name, value] : object()) {
    if (name == key) return value.is_null() ? nullptr : &value;
  }
  return nullptr;
}

const JsonValue& JsonValue::at(std::string_view key) const {
  if (const JsonValue* value = find(key)) return *value;
  fault(fmt::format("there is no {}", quote(key)));
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text.front();
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out + '"';
}

std::string json_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

}  // namespace ricci::io
