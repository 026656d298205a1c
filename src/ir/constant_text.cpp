#include "ir/constant_text.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "ricci/support/checked.h"
#include "ricci/support/text.h"

#include "type/elements.h"

namespace ricci {
namespace {

constexpr std::size_t DeepestList = 64;

// Parts of a complex number, and the bits of a NaN, are plain elements.
ElementText parse_element(Lexer& lex, bool plain = false) {
  ElementText e;
  if (lex.peek().is('-')) {
    lex.next();
    e.negative = true;
  }
  e.token = lex.next();
  const bool complex = !plain && e.token.is('(');
  if (!complex && e.token.kind != TokenKind::Number && e.token.kind != TokenKind::Word) {
    lex.fail(e.token, "expected an element of a constant");
  }
  const bool payload = e.token.is_word("nan") && lex.peek().is('(');
  if (payload) lex.next();
  if (!complex && !payload) return e;
  e.parts.push_back(parse_element(lex, true));
  if (complex) {
    if (!lex.next().is(',')) lex.fail(e.token, "a complex number is written (re, im)");
    e.parts.push_back(parse_element(lex, true));
  }
  if (!lex.next().is(')')) lex.fail(e.token, "expected ')'");
  return e;
}

void parse_list(Lexer& lex, ConstantText& out, std::size_t depth) {
  const Token open = lex.next();
  if (depth >= DeepestList) lex.fail(open, "lists are nested too deeply");
  std::int64_t count = 0;
  const bool first_visit = out.shape.size() <= depth;
  if (first_visit) out.shape.push_back(-1);
  while (!lex.peek().is(']')) {
    if (lex.peek().is('[')) {
      if (count > 0 && out.shape.size() == depth + 1) {
        lex.fail(lex.peek(), "rows of a constant differ in depth");
      }
      parse_list(lex, out, depth + 1);
    } else {
      if (out.shape.size() > depth + 1) lex.fail(lex.peek(), "rows of a constant differ in depth");
      out.elements.push_back(parse_element(lex));
    }
    ++count;
    if (lex.peek().is(',')) {
      lex.next();
    } else if (!lex.peek().is(']')) {
      lex.fail(lex.peek(), "expected ',' or ']' in a constant");
    }
  }
  lex.next();
  if (out.shape[depth] == -1) out.shape[depth] = count;
  if (out.shape[depth] != count) lex.fail(open, "rows of a constant differ in length");
}

template <class F>
F read_float(const Lexer& lex, const ElementText& e) {
  if (e.token.is_word("inf")) {
    const F inf = std::numeric_limits<F>::infinity();
    return e.negative ? -inf : inf;
  }
  F value{};
  const std::string_view text = e.token.text;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (e.token.kind != TokenKind::Number || error != std::errc() ||
      stop != text.data() + text.size()) {
    lex.fail(e.token, fmt::format("'{}' is not a number", text.substr(0, 40)));
  }
  return e.negative ? -value : value;
}

std::uint64_t read_bits(const Lexer& lex, const ElementText& e) {
  std::uint64_t bits = 0;
  const std::string_view text = e.token.text;
  const auto* end = text.data() + text.size();
  const bool hex = text.starts_with("0x") && !e.negative;
  const auto [stop, error] = std::from_chars(text.data() + (hex ? 2 : 0), end, bits, 16);
  if (!hex || error != std::errc() || stop != end) lex.fail(e.token, "expected bits, 0x…");
  return bits;
}

// A NaN by its bits, in the element's own width.
template <class T>
T read_nan(const Lexer& lex, const ElementText& e) {
  if (e.parts.empty()) {
    if constexpr (std::is_floating_point_v<T>) {
      const T nan = std::numeric_limits<T>::quiet_NaN();
      return e.negative ? -nan : nan;
    } else {
      return T(std::numeric_limits<double>::quiet_NaN());
    }
  }
  const std::uint64_t bits = read_bits(lex, e.parts[0]);
  T value{};
  if constexpr (sizeof(T) < 8) {
    if ((bits >> (8 * sizeof(T))) != 0) lex.fail(e.token, "too many bits");
  }
  std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
  if (static_cast<double>(value) == static_cast<double>(value)) {
    lex.fail(e.token, "these bits are not a NaN");
  }
  return value;
}

template <class T>
T read_as(const Lexer& lex, const ElementText& e) {
  if constexpr (std::is_same_v<T, bool>) {
    if (e.token.is_word("true") || e.token.text == "1") return true;
    if (e.token.is_word("false") || e.token.text == "0") return false;
    lex.fail(e.token, "expected true or false");
  } else if constexpr (detail::is_complex_type<T>) {
    using Part = typename T::value_type;
    if (e.parts.size() == 2 && !e.negative) {
      return T(read_as<Part>(lex, e.parts[0]), read_as<Part>(lex, e.parts[1]));
    }
    return T(read_as<Part>(lex, e), 0);
  } else if constexpr (std::is_integral_v<T>) {
    std::uint64_t magnitude = 0;
    const std::string_view text = e.token.text;
    const auto* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, magnitude);
    const bool parsed = e.token.kind == TokenKind::Number && error == std::errc() && stop == end;
    const auto limit = static_cast<std::uint64_t>(std::numeric_limits<T>::max()) +
                       (e.negative && std::is_signed_v<T> ? 1 : 0);
    if (!parsed || magnitude > limit || (e.negative && !std::is_signed_v<T> && magnitude != 0)) {
      lex.fail(e.token, fmt::format("{}{} does not fit in {}", e.negative ? "-" : "",
                                    text.substr(0, 40), name(dtype_of<T>)));
    }
    return static_cast<T>(e.negative ? 0 - magnitude : magnitude);
  } else {
    if (e.token.is_word("nan")) return read_nan<T>(lex, e);
    if constexpr (std::is_floating_point_v<T>) {
      return read_float<T>(lex, e);
    } else {
      return T(read_float<double>(lex, e));
    }
  }
}

std::vector<std::byte> read_elements(const Lexer& lex, const ConstantText& text, DType dtype) {
  std::vector<std::byte> bytes;
  with_element_type(dtype, [&]<class T>() {
    for (const ElementText& e : text.elements) {
      const T v = read_as<T>(lex, e);
      const auto* p = reinterpret_cast<const std::byte*>(&v);
      bytes.insert(bytes.end(), p, p + sizeof(T));
    }
  });
  return bytes;
}

}  // namespace

ConstantText parse_constant_text(Lexer& lex) {
  ConstantText out;
  out.first = lex.peek();
  if (lex.peek().is_word("hex")) {
    lex.next();
    out.form = ConstantText::Form::Hex;
    out.hex = lex.next();
    if (out.hex.kind != TokenKind::String) lex.fail(out.hex, "expected hex digits in quotes");
  } else if (lex.peek().is('[')) {
    parse_list(lex, out, 0);
  } else {
    if (lex.peek().is_word("splat")) {
      lex.next();
      out.form = ConstantText::Form::Splat;
    }
    out.elements.push_back(parse_element(lex));
  }
  return out;
}

Tensor read_constant(const Lexer& lex, const ConstantText& text, const Type& type) {
  if (!type.is_static()) lex.fail(text.first, "a constant cannot have symbolic sizes");
  if (text.form == ConstantText::Form::Hex) {
    const auto bytes = from_hex(text.hex.text);
    if (!bytes) lex.fail(text.hex, "hex needs an even number of hex digits");
    return Tensor::from_bytes(type, *bytes).canonical();
  }
  const std::vector<std::byte> bytes = read_elements(lex, text, type.dtype);
  if (text.form == ConstantText::Form::Splat) {
    if (product(type.dims).is(0)) return Tensor::splat(type, 0);
    const Tensor one = Tensor::from_bytes({type.dtype, {}}, bytes);
    return one.broadcast_to(type.static_dims()).canonical();
  }
  // An empty list says nothing about the sizes inside it; the type does.
  const bool empty = text.elements.empty() && product(type.dims).is(0);
  if (!empty && type.static_dims() != text.shape) {
    lex.fail(text.first,
             fmt::format("the list has shape {}, but the type is {}",
                         to_string(Dims(text.shape.begin(), text.shape.end())), type.to_string()));
  }
  return Tensor::from_bytes(type, bytes).canonical();
}

}  // namespace ricci
