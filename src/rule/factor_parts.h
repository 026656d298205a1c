// What the rules of factorisations share: all results of a node, wanted or not.
#pragma once

#include <vector>

#include "ricci/compiler/rule/jvp.h"
#include "ricci/compiler/rule/vjp.h"

namespace ricci::rule {

/// The node with every result computed: those it asks for, and all of them as residuals.
[[nodiscard]] ForwardResults keeping_all_results(const ForwardContext& c);
/// The same in forward mode.
[[nodiscard]] std::vector<Value> all_results(JvpContext& c);
/// The gradient of a matrix without elements, which has none either: the matrix itself, so that a
/// derivative of the gradient passes as well.
[[nodiscard]] inline Cotangents gradient_of_nothing(const VjpContext& c) { return {c[0]}; }
/// Zeros of a value's type.
[[nodiscard]] Value zeros_like(Value v);

}  // namespace ricci::rule
