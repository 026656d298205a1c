// Splits the text form into tokens with positions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ricci/support/error.h"

namespace ricci {

enum class TokenKind : std::uint8_t {
  End,
  Word,    ///< identifier
  Value,   ///< %name, without the sign in `text`
  Number,  ///< digits with optional fraction and exponent; no sign
  String,  ///< quoted; `text` is the raw inside
  Punct,   ///< one of { } [ ] ( ) = , : @ + - *
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::string_view text;
  std::uint32_t line = 1;
  std::uint32_t column = 1;

  [[nodiscard]] bool is(char c) const {
    return kind == TokenKind::Punct && text.size() == 1 && text[0] == c;
  }
  [[nodiscard]] bool is_word(std::string_view w) const {
    return kind == TokenKind::Word && text == w;
  }
};

class Lexer {
 public:
  Lexer(std::string_view text, std::string file);

  [[nodiscard]] const Token& peek() const { return current_; }
  Token next();
  /// Throws UserError(parse) at a token.
  [[noreturn]] void fail(const Token& at, std::string message, std::string help = {}) const;
  [[nodiscard]] SourcePosition position(const Token& at) const;
  /// The same with the line's text, for messages.
  [[nodiscard]] SourcePosition place(const Token& at) const;
  /// The characters a String token stands for.
  [[nodiscard]] std::string unescape(const Token& string) const;

 private:
  void advance();
  void skip_blank();
  [[nodiscard]] std::string line_text(const Token& at) const;

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  std::size_t line_start_ = 0;
  Token current_;
};

}  // namespace ricci
