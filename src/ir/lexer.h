// Splits the text form into tokens with positions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ricci/support/error.h"
#include "ricci/support/limits.h"

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
  /// UserError(parse) when the text is longer than `limits` allow or no UTF-8.
  Lexer(std::string_view text, std::string file, const Limits& limits);

  [[nodiscard]] const Token& peek() const { return current_; }
  Token next();
  /// Takes the next token when it is this character.
  bool accept(char c);
  /// The same, and UserError(parse) when it is another.
  void expect(char c);
  /// Calls `item()` for what stands between commas, up to `close`, which is taken as well. Nothing
  /// at all may stand there; `what` it is says the message when something else does.
  template <class F>
  void list(char close, std::string_view what, F&& item) {
    if (accept(close)) return;
    do {
      if (peek().is(close)) fail_after_comma(close);
      item();
    } while (accept(','));
    if (!accept(close)) fail_in_list(close, what);
  }
  /// Throws UserError(parse) at a token.
  [[noreturn]] void fail(const Token& at, std::string message, std::string help = {}) const;
  /// The same when there are more of something than a limit allows.
  void check_limit(const Token& at, std::string_view limit, std::int64_t most, std::size_t count,
                   std::string_view what) const;
  [[nodiscard]] SourcePosition position(const Token& at) const;
  /// The same with the line's text, for messages.
  [[nodiscard]] SourcePosition place(const Token& at) const;
  /// The characters a String token stands for.
  [[nodiscard]] std::string unescape(const Token& string) const;

 private:
  void advance();
  void skip_blank();
  void check_text() const;
  void string_token(std::size_t start);
  [[noreturn]] void fail_after_comma(char close) const;
  [[noreturn]] void fail_in_list(char close, std::string_view what) const;
  [[nodiscard]] std::string line_text(const Token& at) const;

  std::string_view text_;
  std::string file_;
  std::int64_t most_name_bytes_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  std::size_t line_start_ = 0;
  Token current_;
};

}  // namespace ricci
