// JSON with any numbers, which JsonCursor has none of but whole ones.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "io/json_cursor.h"

namespace ricci {

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text), cursor_(text) {}

  void object(const std::function<void(const std::string& key)>& member) { cursor_.object(member); }
  void array(const std::function<void()>& element) { cursor_.array(element); }
  [[nodiscard]] std::string string() { return cursor_.string(); }
  /// `null` is NaN.
  [[nodiscard]] double number();
  [[nodiscard]] std::int64_t integer();
  void skip() { cursor_.skip(); }
  void end() { cursor_.end(); }

 private:
  // The next value as it is written.
  [[nodiscard]] std::string_view raw();

  std::string_view text_;
  io::JsonCursor cursor_;
};

}  // namespace ricci
