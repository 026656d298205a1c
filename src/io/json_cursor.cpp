#include "io/json_cursor.h"

#include <unordered_set>

#include <fmt/format.h>

#include "ricci/support/checked.h"
#include "ricci/support/text.h"

#include "io/fault.h"

namespace ricci::io {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& out, std::uint32_t code) {
  const auto byte = [&](std::uint32_t b) { out += static_cast<char>(b); };
  const auto more = [&](std::uint32_t shift) { byte(0x80U | ((code >> shift) & 0x3FU)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0U | (code >> 6));
    more(0);
  } else if (code < 0x10000) {
    byte(0xE0U | (code >> 12));
    more(6);
    more(0);
  } else {
    byte(0xF0U | (code >> 18));
    more(12);
    more(6);
    more(0);
  }
}

}  // namespace

void JsonCursor::fault(const std::string& message) const {
  file_fault("json", message, base_ + at_);
}

void JsonCursor::skip_space() {
  while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string::npos) {
    ++at_;
  }
}

char JsonCursor::peek() {
  skip_space();
  if (at_ == text_.size()) fault("the JSON text ends too early");
  return text_[at_];
}

std::size_t JsonCursor::offset() {
  skip_space();
  return base_ + at_;
}

void JsonCursor::expect(char c) {
  const char found = peek();
  if (found != c) fault(fmt::format("{} is expected, not {}", quote({&c, 1}), quote({&found, 1})));
  ++at_;
}

void JsonCursor::end() {
  skip_space();
  if (at_ != text_.size()) fault("there is more behind the JSON value");
}

void JsonCursor::enter() {
  if (++depth_ > MostJsonNesting) {
    fault(fmt::format("the JSON text nests more than {} deep", MostJsonNesting));
  }
}

void JsonCursor::object(const std::function<void(const std::string& key)>& member) {
  enter();
  expect('{');
  std::unordered_set<std::string> keys;
  if (peek() == '}') {
    ++at_;
  } else {
    for (;;) {
      (void)peek();
      const std::size_t start = at_;
      const auto [key, is_new] = keys.insert(string());
      if (!is_new) {
        at_ = start;
        fault(fmt::format("the key {} is there twice", quote(shortened(*key))));
      }
      expect(':');
      member(*key);
      if (peek() != ',') break;
      ++at_;
    }
    expect('}');
  }
  --depth_;
}

void JsonCursor::array(const std::function<void()>& element) {
  enter();
  expect('[');
  if (peek() == ']') {
    ++at_;
  } else {
    for (;;) {
      element();
      if (peek() != ',') break;
      ++at_;
    }
    expect(']');
  }
  --depth_;
}

std::uint32_t JsonCursor::hex4() {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = at_ < text_.size() ? text_[at_] : ' ';
    const char lower = static_cast<char>(c | 0x20);
    const bool letter = lower >= 'a' && lower <= 'f';
    if (!is_digit(c) && !letter) fault("\\u wants four hex digits");
    value = value * 16 + static_cast<std::uint32_t>(letter ? lower - 'a' + 10 : c - '0');
    ++at_;
  }
  return value;
}

// Behind the backslash.
void JsonCursor::escape(std::string& out) {
  constexpr std::string_view Names = "\"\\/bfnrt";
  constexpr std::string_view Values = "\"\\/\b\f\n\r\t";
  const char c = at_ < text_.size() ? text_[at_] : ' ';
  if (const std::size_t k = Names.find(c); k != std::string_view::npos) {
    ++at_;
    out += Values[k];
    return;
  }
  if (c != 'u') fault("there is no such escape in JSON");
  ++at_;
  std::uint32_t code = hex4();
  if (code >= 0xDC00 && code < 0xE000) fault("half a surrogate pair stands alone");
  if (code >= 0xD800 && code < 0xDC00) {
    if (text_.substr(at_, 2) != "\\u") fault("half a surrogate pair stands alone");
    at_ += 2;
    const std::uint32_t low = hex4();
    if (low < 0xDC00 || low >= 0xE000) fault("half a surrogate pair stands alone");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  append_utf8(out, code);
}

std::string JsonCursor::string() {
  expect('"');
  std::string out;
  for (;;) {
    const std::size_t plain = std::min(text_.find_first_of("\"\\", at_), text_.size());
    const std::string_view run = text_.substr(at_, plain - at_);
    for (std::size_t i = 0; i < run.size(); ++i) {
      if (static_cast<unsigned char>(run[i]) >= 0x20) continue;
      at_ += i;
      fault("a control character stands in a JSON string");
    }
    if (const std::size_t good = valid_utf8_prefix(run); good != run.size()) {
      at_ += good;
      fault("a JSON string is not UTF-8");
    }
    out += run;
    at_ = plain;
    if (at_ == text_.size()) fault("the JSON text ends within a string");
    if (text_[at_++] == '"') return out;
    escape(out);
  }
}

std::int64_t JsonCursor::integer() {
  if (!is_digit(peek())) fault("a whole number from 0 on is expected");
  const std::size_t start = at_;
  std::optional<std::int64_t> value = 0;
  for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
    value = value ? try_mul(*value, 10) : value;
    value = value ? try_add(*value, text_[at_] - '0') : value;
  }
  const bool more =
      at_ < text_.size() && std::string_view(".eE").find(text_[at_]) != std::string::npos;
  const bool padded = text_[start] == '0' && at_ - start > 1;
  if (value && !more && !padded) return *value;
  at_ = start;
  fault(padded ? "a JSON number begins with 0"
               : "a whole number from 0 on that fits in 64 bits is expected");
}

void JsonCursor::skip_digits() {
  if (at_ == text_.size() || !is_digit(text_[at_])) fault("a digit is expected");
  while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
}

void JsonCursor::skip_number() {
  const auto next_is = [&](std::string_view any) {
    return at_ < text_.size() && any.find(text_[at_]) != std::string_view::npos;
  };
  if (next_is("-")) ++at_;
  if (next_is("0")) {
    ++at_;
  } else {
    skip_digits();
  }
  if (next_is(".")) {
    ++at_;
    skip_digits();
  }
  if (next_is("eE")) {
    ++at_;
    if (next_is("+-")) ++at_;
    skip_digits();
  }
}

void JsonCursor::word(std::string_view expected) {
  if (text_.substr(at_, expected.size()) != expected) fault("this is no JSON value");
  at_ += expected.size();
}

void JsonCursor::skip() {
  switch (peek()) {
    case '{': return object([&](const std::string&) { skip(); });
    case '[': return array([&] { skip(); });
    case '"': return (void)string();
    case 't': return word("true");
    case 'f': return word("false");
    case 'n': return word("null");
    default: return skip_number();
  }
}

}  // namespace ricci::io
