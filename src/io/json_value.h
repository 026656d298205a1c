// A JSON text as a value, for small ones whose fields come in any order: configurations, requests.
// Every value knows where it stands, so that what is wrong with it can be said with its place.
//
//   const JsonValue config = parse_json(text);
//   const std::int64_t layers = config.at("n_layer").integer();
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ricci::io {

class JsonValue {
 public:
  enum class Kind : std::uint8_t { Null, Bool, Number, String, Array, Object };

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] bool is_null() const noexcept { return kind_ == Kind::Null; }
  /// The byte of the text it begins at.
  [[nodiscard]] std::size_t offset() const noexcept { return offset_; }

  // UserError(file.json) with the byte where it is something else.
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] double number() const;
  /// A number without a fraction that an i64 holds.
  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] const std::string& string() const;
  [[nodiscard]] const std::vector<JsonValue>& array() const;
  [[nodiscard]] const std::vector<std::pair<std::string, JsonValue>>& object() const;

  /// A member of an object; null when there is none, or when it is null itself.
  [[nodiscard]] const JsonValue* find(std::string_view key) const;
  /// The same, which must be there: UserError(file.json).
  [[nodiscard]] const JsonValue& at(std::string_view key) const;

  /// UserError(file.json) at its place.
  [[noreturn]] void fault(const std::string& message) const;

 private:
  friend class JsonReader;
  [[nodiscard]] const JsonValue& require(Kind kind) const;

  Kind kind_ = Kind::Null;
  bool boolean_ = false;
  std::size_t offset_ = 0;
  std::string text_;  // of a string, or a number as it is written
  std::vector<JsonValue> elements_;
  std::vector<std::pair<std::string, JsonValue>> members_;
};

/// UserError(file.json) with the byte where the text is no JSON.
[[nodiscard]] JsonValue parse_json(std::string_view text);

/// A text as a JSON string, in quotes. What is not UTF-8 is replaced by U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);
/// A number that comes back to the same bits; null for what JSON has no number for.
[[nodiscard]] std::string json_number(double value);

}  // namespace ricci::io
