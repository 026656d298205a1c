// What statements are made of besides values and names: attributes, types, sizes, numbers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ricci/op/attr.h"
#include "ricci/support/limits.h"

#include "ir/lexer.h"

namespace ricci {

class ValueText {
 public:
  ValueText(Lexer& lex, const Limits& limits) : lex_(lex), limits_(limits) {}

  AttrValue attribute(int depth = 0);
  Type type();
  std::int64_t integer(bool negative = false);

 private:
  std::vector<AttrValue> attribute_list(char close, int depth);
  Bytes hex_bytes();
  AttrValue enumerator_or_dim(int depth);
  AttrValue number_or_dim();
  Real real();
  Real nan();
  Dim symbol(const Token& word);
  Dim signed_factor(bool negative);
  Dim dim();
  Dim dim_factor();
  Dim dim_product(Dim d);
  Dim dim_sum(Dim d);

  Lexer& lex_;
  const Limits& limits_;
};

}  // namespace ricci
