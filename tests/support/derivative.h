// Derivatives by central differences, for checking backward ops against their forward op.
#pragma once

#include <span>
#include <vector>

#include "ricci/ir/graph.h"

namespace ricci::testing {

/// Runs one op by its reference kernel; gives the wanted results.
[[nodiscard]] std::vector<Tensor> run_op(const Op& op, std::span<const Tensor> operands,
                                         const std::vector<bool>& wanted = {});

/// d/d(operands[k]) of Σ cotangents·results, by central differences in f64.
[[nodiscard]] Tensor central_difference(const Op& op, std::span<const Tensor> operands,
                                        const std::vector<bool>& wanted,
                                        std::span<const Tensor> cotangents, std::size_t k);

}  // namespace ricci::testing
