// The derivatives of the element-wise functions, each written down once: reverse mode, forward
// mode, the backward ops and the documentation read the same formula.
//
// Kinks: relu, abs, sqrt and rsqrt have slope 0 at 0, and max and min share a tie equally. round is
// straight-through. A function outside its domain has slope NaN where its value is NaN because of a
// square root, and otherwise whatever its formula gives.
#pragma once

#include "rule/expression.h"

namespace ricci::rule {

/// f'(x), in x (First) and y = f(x) (Result); nullptr when the function has no derivative.
[[nodiscard]] const Expression* derivative(UnaryKind kind);
/// The same of complex x; nullptr where f is not holomorphic.
[[nodiscard]] const Expression* complex_derivative(UnaryKind kind);

/// ∂f/∂a for operand 0 and ∂f/∂b for operand 1, in a, b and y = f(a, b); nullptr when there is
/// none.
[[nodiscard]] const Expression* derivative(BinaryKind kind, std::size_t operand);
[[nodiscard]] const Expression* complex_derivative(BinaryKind kind, std::size_t operand);

}  // namespace ricci::rule
