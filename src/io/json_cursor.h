// Reads JSON front to back, and only JSON: what RFC 8259 has no word for is refused, with the byte.
// Nothing is built on the way, so that a reader takes memory for what it keeps alone; nesting is
// bounded, and a key that stands twice in one object is refused.
//
//   JsonCursor json(text);
//   json.object([&](const std::string& key) {
//     if (key == "shape") json.array([&] { dims.push_back(json.integer()); });
//     else json.skip();
//   });
//   json.end();
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace ricci::io {

class JsonCursor {
 public:
  /// `base` is the file offset of text[0]. Nested deeper than MostJsonNesting is refused.
  explicit JsonCursor(std::string_view text, std::size_t base = 0) : text_(text), base_(base) {}

  /// Calls `member` with every key, behind which it reads the value, or skips it.
  void object(const std::function<void(const std::string& key)>& member);
  /// Calls `element` before every element, which it reads, or skips.
  void array(const std::function<void()>& element);
  [[nodiscard]] std::string string();
  /// A whole number from 0 on, without fraction or exponent.
  [[nodiscard]] std::int64_t integer();
  /// Any value.
  void skip();
  /// UserError unless nothing but space is left.
  void end();

  /// Of what comes next.
  [[nodiscard]] std::size_t offset();
  /// UserError(file.json) at what was read last, or comes next.
  [[noreturn]] void fault(const std::string& message) const;

 private:
  [[nodiscard]] char peek();
  void expect(char c);
  void skip_space();
  void skip_digits();
  void skip_number();
  void word(std::string_view expected);
  void escape(std::string& out);
  [[nodiscard]] std::uint32_t hex4();
  void enter();

  std::string_view text_;
  std::size_t base_ = 0;
  std::size_t at_ = 0;
  int depth_ = 0;
};

inline constexpr int MostJsonNesting = 64;

}  // namespace ricci::io
