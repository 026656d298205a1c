// Constants in text: `splat 0.5`, `[[1, 2], [3, 4]]`, `hex "…"`, or a bare number for rank 0. What
// elements mean is known only with the type, which stands after them; so they are walked twice,
// and no more is kept of them than where they begin.
#pragma once

#include <cstdint>
#include <vector>

#include "ricci/type/tensor.h"

#include "ir/lexer.h"

namespace ricci {

struct ConstantText {
  enum class Form : std::uint8_t { One, Splat, List, Hex };
  Form form = Form::List;
  Token first;
  Lexer start;        ///< at the element, the list, or the string of hex digits
  StaticDims shape;   ///< of the nested list
  bool empty = true;  ///< the list has no elements
};

[[nodiscard]] ConstantText parse_constant_text(Lexer& lex);
[[nodiscard]] Tensor read_constant(const ConstantText& text, const Type& type);

}  // namespace ricci
