// Patterns for identities over element-wise expressions: ordinary data, matched at run time.
//
//   {"neg_neg", "-(-x) -> x", -(-x), x}
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "ricci/op/elementwise.h"

#include "rewrite/rule.h"

namespace ricci {

struct Pattern {
  enum class Form : std::uint8_t { Variable, Number, Unary, Binary, Compare, Where };
  Form form = Form::Variable;
  int code = 0;       ///< which variable, or the kind of the function
  double number = 0;  ///< matches a constant of this value repeated, to the sign of zero
  std::vector<Pattern> args = {};
};

[[nodiscard]] inline Pattern variable(int index) {
  return {.form = Pattern::Form::Variable, .code = index};
}
[[nodiscard]] inline Pattern number(double value) {
  return {.form = Pattern::Form::Number, .number = value};
}
[[nodiscard]] inline Pattern apply(UnaryKind kind, Pattern a) {
  return {Pattern::Form::Unary, static_cast<int>(kind), 0, {std::move(a)}};
}
[[nodiscard]] inline Pattern apply(BinaryKind kind, Pattern a, Pattern b) {
  return {Pattern::Form::Binary, static_cast<int>(kind), 0, {std::move(a), std::move(b)}};
}
[[nodiscard]] inline Pattern apply(CompareKind kind, Pattern a, Pattern b) {
  return {Pattern::Form::Compare, static_cast<int>(kind), 0, {std::move(a), std::move(b)}};
}
[[nodiscard]] inline Pattern select(Pattern c, Pattern a, Pattern b) {
  return {Pattern::Form::Where, 0, 0, {std::move(c), std::move(a), std::move(b)}};
}
[[nodiscard]] inline Pattern operator-(Pattern a) { return apply(UnaryKind::Neg, std::move(a)); }
[[nodiscard]] inline Pattern operator+(Pattern a, Pattern b) {
  return apply(BinaryKind::Add, std::move(a), std::move(b));
}
[[nodiscard]] inline Pattern operator-(Pattern a, Pattern b) {
  return apply(BinaryKind::Sub, std::move(a), std::move(b));
}
[[nodiscard]] inline Pattern operator*(Pattern a, Pattern b) {
  return apply(BinaryKind::Mul, std::move(a), std::move(b));
}
[[nodiscard]] inline Pattern operator/(Pattern a, Pattern b) {
  return apply(BinaryKind::Div, std::move(a), std::move(b));
}

/// `from` may be replaced by `to` when the dtype of the root's last operand passes the guard.
struct Identity {
  std::string_view name;
  std::string_view text;
  Pattern from;
  Pattern to;
  bool (*when)(DType dtype) = nullptr;
};

/// The replacement of the rewriter's root by an identity, if it matches.
[[nodiscard]] Replacement apply_identity(const Identity& identity, Rewriter& rewriter);

}  // namespace ricci
