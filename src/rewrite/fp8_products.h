// Products of numbers of 8 bits with a scale for each tensor.
#pragma once

#include "ricci/compiler/rewrite/precision.h"

namespace ricci {

/// Writes products of f32 values as products of codes that are scaled afterwards; the cotangents
/// that gradients of them take are rounded too. Products of what dequantize gave stay.
[[nodiscard]] PassResult fp8_products(const Graph& graph, const PrecisionPolicy& policy);

}  // namespace ricci
