#include "ir/value_text.h"

#include <bit>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "ricci/support/text.h"

namespace ricci {
namespace {

// Arithmetic on sizes; what it refuses is reported at a token.
template <class F>
Dim checked(const Lexer& lex, const Token& at, F&& f) {
  try {
    return f();
  } catch (const UserError& e) {
    if (e.code() == ErrorCode::Parse) throw;
    const Diagnostic& d = e.diagnostic();
    lex.fail(at, d.help.empty() ? "this size does not fit in 64 bits" : d.message, d.help);
  }
}

}  // namespace

AttrValue ValueText::attribute(int depth) {
  const Token t = lex_.peek();
  if (depth > MostNesting) {
    lex_.fail(t, "lists are nested too deeply", fmt::format("at most {} levels", MostNesting));
  }
  if (t.kind == TokenKind::String) return {lex_.unescape(lex_.next())};
  if (t.is_word("true") || t.is_word("false")) return {lex_.next().text == "true"};
  if (t.is_word("inf") || t.is_word("nan")) return {real()};
  if (t.is_word("hex")) return {hex_bytes()};
  if (lex_.accept('[')) return {attribute_list(']', depth)};
  if (t.kind == TokenKind::Word) return enumerator_or_dim(depth);
  return number_or_dim();
}

// The opening bracket is taken already.
std::vector<AttrValue> ValueText::attribute_list(char close, int depth) {
  std::vector<AttrValue> list;
  lex_.list(close, "in a list", [&] {
    lex_.check_limit(lex_.peek(), "list_length", limits_.list_length, list.size() + 1,
                     "this list has {} elements or more");
    list.push_back(attribute(depth + 1));
  });
  return list;
}

Bytes ValueText::hex_bytes() {
  lex_.next();
  const Token digits = lex_.next();
  if (digits.kind != TokenKind::String) lex_.fail(digits, "expected hex digits in quotes");
  auto bytes = from_hex(digits.text);
  if (!bytes) lex_.fail(digits, "hex needs an even number of hex digits");
  return {*std::move(bytes)};
}

AttrValue ValueText::enumerator_or_dim(int depth) {
  const Token word = lex_.next();
  if (lex_.accept('(')) {
    return {Enumerator{std::string(word.text), attribute_list(')', depth)}};
  }
  if (!lex_.peek().is('+') && !lex_.peek().is('-') && !lex_.peek().is('*')) {
    return {Enumerator{std::string(word.text), {}}};
  }
  return {dim_sum(dim_product(symbol(word)))};
}

AttrValue ValueText::number_or_dim() {
  const Token first = lex_.peek();
  const bool negative = lex_.accept('-');
  const Token t = lex_.peek();
  const bool number = t.kind == TokenKind::Number;
  const bool fraction =
      number && t.text.find_first_of(".eE") != std::string_view::npos && !t.text.starts_with("0x");
  if (fraction || t.is_word("inf") || t.is_word("nan")) {
    const Real r = real();
    return {negative ? Real(-r.value) : r};
  }
  if (!number && t.kind != TokenKind::Word) lex_.fail(first, "expected an attribute value");
  const Dim d = dim_sum(dim_product(signed_factor(negative)));
  if (const auto n = d.try_value()) return {*n};
  return {d};
}

Real ValueText::real() {
  const Token t = lex_.next();
  if (t.text == "inf") return std::numeric_limits<double>::infinity();
  if (t.text == "nan") return nan();
  double value = 0;
  const auto* end = t.text.data() + t.text.size();
  const auto [stop, error] = std::from_chars(t.text.data(), end, value);
  if (error != std::errc() || stop != end) {
    lex_.fail(t, fmt::format("'{}' is not a number f64 can hold", shortened(t.text, 40)));
  }
  return value;
}

Real ValueText::nan() {
  if (!lex_.accept('(')) return std::numeric_limits<double>::quiet_NaN();
  const Token bits = lex_.next();
  std::uint64_t payload = 0;
  const std::string_view digits = bits.text.substr(std::min<std::size_t>(2, bits.text.size()));
  const auto* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, payload, 16);
  const double value = std::bit_cast<double>(payload);
  if (!bits.text.starts_with("0x") || error != std::errc() || stop != end || value == value) {
    lex_.fail(bits, "expected the bits of a NaN, 0x…");
  }
  lex_.expect(')');
  return value;
}

std::int64_t ValueText::integer(bool negative) {
  const Token t = lex_.next();
  std::uint64_t magnitude = 0;
  const auto* end = t.text.data() + t.text.size();
  const auto [stop, error] = std::from_chars(t.text.data(), end, magnitude);
  const auto most =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) + (negative ? 1 : 0);
  if (t.kind != TokenKind::Number) {
    lex_.fail(t, fmt::format("expected a number before {}", quote(shortened(t.text, 40))));
  }
  if (error != std::errc() || stop != end || magnitude > most) {
    lex_.fail(t, fmt::format("'{}' is not a 64-bit integer", shortened(t.text, 40)));
  }
  return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
}

Dim ValueText::symbol(const Token& word) {
  try {
    return Dim::symbol(std::string(word.text));
  } catch (const UserError& e) {
    lex_.fail(word, e.diagnostic().message, e.diagnostic().help);
  }
}

// A number or symbol, with the sign that was read before it.
Dim ValueText::signed_factor(bool negative) {
  if (lex_.peek().kind == TokenKind::Number) return integer(negative);
  const Dim d = dim_factor();
  return negative ? Dim(-1) * d : d;
}

Type ValueText::type() {
  const Token name = lex_.next();
  const auto dtype =
      name.kind == TokenKind::Word ? dtype_from_name(name.text) : std::optional<DType>();
  if (!dtype) {
    lex_.fail(name, fmt::format("'{}' is not a dtype", shortened(name.text, 40)),
              "types look like f32[2, 3]");
  }
  Type out{*dtype, {}};
  lex_.expect('[');
  lex_.list(']', "in a shape", [&] {
    const Token at = lex_.peek();
    if (out.dims.size() == MostRank) {
      lex_.fail(at, fmt::format("a type has at most {} axes", MostRank));
    }
    out.dims.push_back(dim());
    if (out.dims.back().is_static() && out.dims.back().value() < 0) {
      lex_.fail(at, "a size cannot be negative");
    }
  });
  return out;
}

Dim ValueText::dim() {
  const bool negative = lex_.accept('-');
  return dim_sum(dim_product(signed_factor(negative)));
}

Dim ValueText::dim_factor() {
  if (lex_.peek().kind == TokenKind::Word) return symbol(lex_.next());
  return integer();
}

// What is written out counts, so that no text makes more work than it has terms.
Dim ValueText::dim_product(Dim d) {
  for (std::size_t factors = 1; lex_.accept('*'); ++factors) {
    const Token at = lex_.peek();
    if (factors == MostDimDegree) {
      lex_.fail(at, fmt::format("a term of a size has at most {} factors", MostDimDegree));
    }
    d = checked(lex_, at, [&] { return d * dim_factor(); });
  }
  return d;
}

Dim ValueText::dim_sum(Dim d) {
  for (std::size_t terms = 1; lex_.peek().is('+') || lex_.peek().is('-'); ++terms) {
    const bool minus = lex_.next().is('-');
    const Token at = lex_.peek();
    if (terms == MostDimTerms) {
      lex_.fail(at, fmt::format("a size has at most {} terms", MostDimTerms));
    }
    const Dim term = dim_product(dim_factor());
    d = checked(lex_, at, [&] { return minus ? d - term : d + term; });
  }
  return d;
}

}  // namespace ricci
