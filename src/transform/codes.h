// Integers that stand for real numbers: codes that quantising ops make or take, and what is moved
// between them. They have a derivative, held in f32; other integers have none.
#pragma once

#include "ricci/ir/graph.h"

namespace ricci {

/// A float or complex value, or a code.
[[nodiscard]] bool has_derivative(const Graph& graph, ValueId v);
/// The type of its tangent or cotangent; its own where it has none.
[[nodiscard]] Type type_of_tangent(const Graph& graph, ValueId v);

}  // namespace ricci
