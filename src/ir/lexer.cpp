#include "ir/lexer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "ricci/support/text.h"

namespace ricci {
namespace {

constexpr std::size_t MostLineShown = 120;
constexpr std::int64_t MostSource = std::numeric_limits<std::uint32_t>::max();

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace

Lexer::Lexer(std::string_view text, std::string file, const Limits& limits)
    : text_(text), file_(std::move(file)), most_name_bytes_(limits.name_bytes) {
  // Columns are counted in 32 bits, whatever the limit is raised to.
  const std::int64_t most = std::min<std::int64_t>(limits.source_bytes, MostSource);
  check_limit({}, "source_bytes", most, text_.size(), "the text has {} bytes");
  if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);  // a byte-order mark
  check_text();
  advance();
}

// What is not UTF-8 is refused once, so that nothing later shows or keeps half a character.
void Lexer::check_text() const {
  const std::size_t good = valid_utf8_prefix(text_);
  if (good == text_.size()) return;
  const std::string_view before = text_.substr(0, good);
  Token at;
  at.line = static_cast<std::uint32_t>(1 + std::ranges::count(before, '\n'));
  at.column = static_cast<std::uint32_t>(good - (before.rfind('\n') + 1) + 1);
  fail(at, fmt::format("the byte {} is not UTF-8", quote(text_.substr(good, 1))),
       "write such bytes in strings as \\xHH");
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
    check_limit(current_, "name_bytes", most_name_bytes_, to - from,
                kind == TokenKind::Number ? "this number has {} digits" : "this name has {} bytes");
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
  if (c == '"') return string_token(start);
  if (std::string_view("{}[]()=,:@+-*").find(c) != std::string_view::npos) {
    ++at_;
    return finish(TokenKind::Punct, start, at_);
  }
  const bool comment = c == '#' || c == ';' || c == '/';
  fail(current_,
       fmt::format("the character {} has no meaning here", quote(std::string_view(&text_[at_], 1))),
       comment ? "comments start with //" : "");
}

void Lexer::string_token(std::size_t start) {
  for (++at_; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n'; ++at_) {
    if (static_cast<unsigned char>(text_[at_]) < 0x20 && text_[at_] != '\t') {
      fail(current_, "a string holds a control character", "write it as \\xHH");
    }
    if (text_[at_] == '\\') ++at_;
  }
  if (at_ >= text_.size() || text_[at_] != '"') fail(current_, "this string has no end");
  ++at_;
  current_.kind = TokenKind::String;
  current_.text = text_.substr(start + 1, at_ - start - 2);
}

bool Lexer::accept(char c) {
  if (!current_.is(c)) return false;
  advance();
  return true;
}

void Lexer::expect(char c) {
  if (accept(c)) return;
  fail(current_,
       current_.kind == TokenKind::End
           ? fmt::format("expected '{}', but the text ends here", c)
           : fmt::format("expected '{}' before {}", c, quote(shortened(current_.text, 40))));
}

void Lexer::fail_after_comma(char close) const {
  fail(current_, fmt::format("'{}' follows a comma", close), "leave out the last comma");
}

void Lexer::fail_in_list(char close, std::string_view what) const {
  fail(current_, fmt::format("expected ',' or '{}' {}", close, what));
}

void Lexer::check_limit(const Token& at, std::string_view limit, std::int64_t most,
                        std::size_t count, std::string_view what) const {
  if (std::cmp_less_equal(count, std::max<std::int64_t>(most, 0))) return;
  fail(at, fmt::format("{}, but may have {}", fmt::format(fmt::runtime(what), count), most),
       raise_help(limit));
}

// The line around a token, cut to what a message can show.
std::string Lexer::line_text(const Token& at) const {
  std::size_t start = 0;
  for (std::uint32_t l = 1; l < at.line; ++l) {
    const std::size_t end = text_.find('\n', start);
    if (end == std::string_view::npos) break;
    start = end + 1;
  }
  const std::size_t end = std::min(text_.find('\n', start), text_.size());
  std::string_view line = text_.substr(start, end - start);
  std::size_t column = at.column;  // counted from 1, from the front of `line`
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) {
    line.remove_prefix(1);
    --column;
  }
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
  std::string shown;
  if (column > MostLineShown && column <= line.size()) {
    std::size_t cut = column - MostLineShown / 2;
    while (cut > 0 && (static_cast<unsigned char>(line[cut]) & 0xC0U) == 0x80) --cut;
    line.remove_prefix(cut);
    shown = "…";
  }
  shown += shortened(line, MostLineShown);
  // Control characters and halves of characters would reach the user's terminal.
  for (char& c : shown) c = static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  for (std::size_t bad = valid_utf8_prefix(shown); bad < shown.size();
       bad += 1 + valid_utf8_prefix(std::string_view(shown).substr(bad + 1))) {
    shown[bad] = '?';
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
