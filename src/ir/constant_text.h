// Constants in text: `splat 0.5`, `[[1, 2], [3, 4]]`, `hex "…"`, or a bare number for rank 0. The
// elements are kept as text until the type, which stands after them, is known.
#pragma once

#include <cstdint>
#include <vector>

#include "ricci/type/tensor.h"

#include "ir/lexer.h"

namespace ricci {

struct ElementText {
  Token token;  ///< a number, a word, or the opening parenthesis of a complex
  bool negative = false;
  std::vector<ElementText> parts;  ///< (re, im), or the bits in nan(0x…)
};

struct ConstantText {
  enum class Form : std::uint8_t { Splat, List, Hex };
  Form form = Form::List;
  Token first;
  Token hex;
  std::vector<ElementText> elements;
  StaticDims shape;  ///< of the nested list
};

[[nodiscard]] ConstantText parse_constant_text(Lexer& lex);
[[nodiscard]] Tensor read_constant(const Lexer& lex, const ConstantText& text, const Type& type);

}  // namespace ricci
