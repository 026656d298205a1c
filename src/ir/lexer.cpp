#include "ir/lexer.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/support/text.h"

namespace ricci {
namespace {

constexpr std::size_t MostLineShown = 120;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace

Lexer::Lexer(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {
  if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);  // a byte-order mark
  advance();
}

Token Lexer::next() {
  Token t = current_;
  advance();
  return t;
}

void Lexer::skip_blank() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') {
      ++line_;
      line_start_ = ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

void Lexer::advance() {
  skip_blank();
  current_ = {TokenKind::End, {}, line_, static_cast<std::uint32_t>(at_ - line_start_ + 1)};
  if (at_ >= text_.size()) return;
  const std::size_t start = at_;
  const char c = text_[at_];
  const auto take_while = [&](auto&& good) {
    while (at_ < text_.size() && good(text_[at_])) ++at_;
  };
  const auto finish = [&](TokenKind kind, std::size_t from, std::size_t to) {
    current_.kind = kind;
    current_.text = text_.substr(from, to - from);
  };
  if (is_letter(c)) {
    take_while([](char x) { return is_letter(x) || is_digit(x); });
    return finish(TokenKind::Word, start, at_);
  }
  if (c == '%') {
    ++at_;
    take_while([](char x) { return is_letter(x) || is_digit(x); });
    if (at_ == start + 1) fail(current_, "a value name must follow '%'");
    return finish(TokenKind::Value, start + 1, at_);
  }
  if (is_digit(c)) {
    take_while(is_digit);
    if (text_.substr(start, at_ - start) == "0" && at_ < text_.size() && text_[at_] == 'x') {
      ++at_;
      take_while([](char x) { return is_letter(x) || is_digit(x); });
      return finish(TokenKind::Number, start, at_);
    }
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      take_while(is_digit);
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      ++at_;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      take_while(is_digit);
    }
    return finish(TokenKind::Number, start, at_);
  }
  if (c == '"') {
    for (++at_; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    if (at_ >= text_.size() || text_[at_] != '"') fail(current_, "this string has no end");
    ++at_;
    return finish(TokenKind::String, start + 1, at_ - 1);
  }
  if (std::string_view("{}[]()=,:@+-*").find(c) != std::string_view::npos) {
    ++at_;
    return finish(TokenKind::Punct, start, at_);
  }
  const bool comment = c == '#' || c == ';' || c == '/';
  fail(current_,
       fmt::format("the character {} has no meaning here", quote(std::string_view(&text_[at_], 1))),
       comment ? "comments start with //" : "");
}

std::string Lexer::line_text(const Token& at) const {
  std::size_t start = 0;
  for (std::uint32_t l = 1; l < at.line; ++l) {
    const std::size_t end = text_.find('\n', start);
    if (end == std::string_view::npos) break;
    start = end + 1;
  }
  const std::size_t end = std::min(text_.find('\n', start), text_.size());
  std::string_view line = text_.substr(start, end - start);
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  // Control characters would reach the user's terminal.
  std::string shown(line.substr(0, MostLineShown));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return shown;
}

SourcePosition Lexer::position(const Token& at) const {
  return {.file = file_, .line = at.line, .column = at.column, .text = {}};
}

SourcePosition Lexer::place(const Token& at) const {
  SourcePosition where = position(at);
  where.text = line_text(at);
  return where;
}

void Lexer::fail(const Token& at, std::string message, std::string help) const {
  throw UserError(Diagnostic{.code = ErrorCode::Parse,
                             .detail = {},
                             .message = std::move(message),
                             .where = place(at),
                             .notes = {},
                             .help = std::move(help)});
}

std::string Lexer::unescape(const Token& string) const {
  std::string out;
  const std::string_view raw = string.text;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      out += raw[i];
      continue;
    }
    ++i;
    const char c = i < raw.size() ? raw[i] : '\0';
    if (c == 'n') {
      out += '\n';
    } else if (c == 't') {
      out += '\t';
    } else if (c == '"' || c == '\\') {
      out += c;
    } else if (c == 'x' && i + 2 < raw.size()) {
      const auto byte = from_hex(raw.substr(i + 1, 2));
      if (!byte) fail(string, "\\x needs two hex digits");
      out += static_cast<char>((*byte)[0]);
      i += 2;
    } else {
      fail(string, "unknown escape in a string", R"(use \n, \t, \", \\ or \xHH)");
    }
  }
  return out;
}

}  // namespace ricci
