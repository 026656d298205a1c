#include "ir/constant_text.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "ricci/support/checked.h"
#include "ricci/support/limits.h"
#include "ricci/support/text.h"

#include "type/elements.h"

namespace ricci {
namespace {

struct PlainText {
  Token token;  // a number or a word
  bool negative = false;
  std::optional<Token> bits;  // in nan(0x…)
};

struct ElementText {
  PlainText real;
  std::optional<PlainText> imaginary;
};

PlainText parse_plain(Lexer& lex) {
  PlainText e;
  e.negative = lex.accept('-');
  e.token = lex.next();
  if (e.token.kind != TokenKind::Number && e.token.kind != TokenKind::Word) {
    lex.fail(e.token, "expected an element of a constant");
  }
  if (e.token.is_word("nan") && lex.accept('(')) {
    e.bits = lex.next();
    if (!lex.accept(')')) lex.fail(e.token, "expected ')'");
  }
  return e;
}

ElementText parse_element(Lexer& lex) {
  const Token open = lex.peek();
  if (!lex.accept('(')) return {parse_plain(lex), std::nullopt};
  ElementText e{parse_plain(lex), std::nullopt};
  if (!lex.accept(',')) lex.fail(open, "a complex number is written (re, im)");
  e.imaginary = parse_plain(lex);
  if (!lex.accept(')')) lex.fail(open, "expected ')'");
  return e;
}

// Calls `element()`, which takes one, at every element, and finds the shape of the nested lists.
template <class F>
void walk_list(Lexer& lex, StaticDims& shape, std::size_t depth, F&& element) {
  const Token open = lex.next();
  if (depth >= MostRank) {
    lex.fail(open, "lists are nested too deeply", fmt::format("at most {} levels", MostRank));
  }
  std::int64_t count = 0;
  if (shape.size() <= depth) shape.push_back(-1);
  lex.list(']', "in a constant", [&] {
    const bool nested = lex.peek().is('[');
    const bool deeper = shape.size() > depth + 1;
    if (nested ? count > 0 && !deeper : deeper) {
      lex.fail(lex.peek(), "rows of a constant differ in depth");
    }
    if (nested) {
      walk_list(lex, shape, depth + 1, element);
    } else {
      element();
    }
    ++count;
  });
  if (shape[depth] == -1) shape[depth] = count;
  if (shape[depth] != count) lex.fail(open, "rows of a constant differ in length");
}

template <class F>
F read_float(const Lexer& lex, const PlainText& e) {
  if (e.token.is_word("inf")) {
    const F inf = std::numeric_limits<F>::infinity();
    return e.negative ? -inf : inf;
  }
  F value{};
  const std::string_view text = e.token.text;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (e.token.kind != TokenKind::Number || error != std::errc() ||
      stop != text.data() + text.size()) {
    lex.fail(e.token, fmt::format("'{}' is not a number", shortened(text, 40)));
  }
  return e.negative ? -value : value;
}

std::uint64_t read_bits(const Lexer& lex, const Token& token) {
  std::uint64_t bits = 0;
  const std::string_view text = token.text;
  const auto* end = text.data() + text.size();
  const bool hex = token.kind == TokenKind::Number && text.starts_with("0x");
  const auto [stop, error] = std::from_chars(text.data() + (hex ? 2 : 0), end, bits, 16);
  if (!hex || error != std::errc() || stop != end) lex.fail(token, "expected bits, 0x…");
  return bits;
}

// A NaN by its bits, in the element's own width.
template <class T>
T read_nan(const Lexer& lex, const PlainText& e) {
  if (!e.bits) {
    if constexpr (std::is_floating_point_v<T>) {
      const T nan = std::numeric_limits<T>::quiet_NaN();
      return e.negative ? -nan : nan;
    } else {
      return T(std::numeric_limits<double>::quiet_NaN());
    }
  }
  const std::uint64_t bits = read_bits(lex, *e.bits);
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
T read_plain(const Lexer& lex, const PlainText& e) {
  if constexpr (std::is_same_v<T, bool>) {
    if (e.token.is_word("true") || e.token.text == "1") return true;
    if (e.token.is_word("false") || e.token.text == "0") return false;
    lex.fail(e.token, "expected true or false");
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
                                    shortened(text, 40), name(dtype_of<T>)));
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

template <class T>
T read_element(Lexer& lex) {
  const Token first = lex.peek();
  const ElementText e = parse_element(lex);
  if constexpr (detail::is_complex_type<T>) {
    using Part = typename T::value_type;
    const Part real = read_plain<Part>(lex, e.real);
    return T(real, e.imaginary ? read_plain<Part>(lex, *e.imaginary) : Part(0));
  } else {
    if (e.imaginary) {
      lex.fail(first, fmt::format("a complex number is no element of {}", name(dtype_of<T>)));
    }
    return read_plain<T>(lex, e.real);
  }
}

std::vector<std::byte> read_elements(const ConstantText& text, DType dtype) {
  std::vector<std::byte> bytes;
  Lexer lex = text.start;
  with_element_type(dtype, [&]<class T>() {
    const auto element = [&] {
      const T v = read_element<T>(lex);
      const auto* p = reinterpret_cast<const std::byte*>(&v);
      bytes.insert(bytes.end(), p, p + sizeof(T));
    };
    if (text.form == ConstantText::Form::List) {
      StaticDims shape;
      walk_list(lex, shape, 0, element);
    } else {
      element();
    }
  });
  return bytes;
}

}  // namespace

ConstantText parse_constant_text(Lexer& lex) {
  using Form = ConstantText::Form;
  const Token first = lex.peek();
  Form form = first.is('[') ? Form::List : Form::One;
  if (first.is_word("hex")) form = Form::Hex;
  if (first.is_word("splat")) form = Form::Splat;
  if (form == Form::Hex || form == Form::Splat) lex.next();
  ConstantText out{.form = form, .first = first, .start = lex, .shape = {}, .empty = true};
  if (form == Form::Hex) {
    const Token digits = lex.next();
    if (digits.kind != TokenKind::String) lex.fail(digits, "expected hex digits in quotes");
  } else if (form == Form::List) {
    walk_list(lex, out.shape, 0, [&] {
      (void)parse_element(lex);
      out.empty = false;
    });
  } else {
    (void)parse_element(lex);
  }
  return out;
}

Tensor read_constant(const ConstantText& text, const Type& type) {
  using Form = ConstantText::Form;
  const Lexer& lex = text.start;
  if (!type.is_static()) lex.fail(text.first, "a constant cannot have symbolic sizes");
  if (text.form == Form::Hex) {
    const auto bytes = from_hex(lex.peek().text);
    if (!bytes) lex.fail(lex.peek(), "hex needs an even number of hex digits");
    return Tensor::from_bytes(type, *bytes).canonical();
  }
  // An empty list says nothing about the sizes inside it; the type does.
  const bool empty = text.empty && product(type.dims).is(0);
  const bool sized = text.form == Form::Splat || (text.form == Form::List && empty);
  if (!sized && type.static_dims() != text.shape) {
    lex.fail(text.first,
             fmt::format("the list has shape {}, but the type is {}",
                         to_string(Dims(text.shape.begin(), text.shape.end())), type.to_string()));
  }
  const std::vector<std::byte> bytes = read_elements(text, type.dtype);
  if (text.form != Form::Splat) return Tensor::from_bytes(type, bytes).canonical();
  if (product(type.dims).is(0)) return Tensor::splat(type, 0);
  const Tensor one = Tensor::from_bytes({type.dtype, {}}, bytes);
  return one.broadcast_to(type.static_dims()).canonical();
}

}  // namespace ricci
