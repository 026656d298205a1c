// Products of codes by those that devices have kernels for.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "ricci/ir/graph.h"
#include "ricci/op/quant.h"

namespace ricci::rule {

/// Is a q_matmul such a one already: w a matrix, or a batch of them, one for each of x, and the
/// bias a number for each column?
template <class D>
[[nodiscard]] bool is_plain_code_product(const std::vector<D>& operands) {
  const D& x = operands[0];
  const D& w = operands[1];
  const bool paired =
      x.size() == w.size() && std::equal(w.begin(), w.end() - 2, x.begin(), x.end() - 2);
  const bool by_column =
      operands.size() < 3 || (operands[2].size() == 1 && operands[2][0] == w.back());
  return (w.size() == 2 || paired) && by_column;
}

/// Whether a node is one of those below.
[[nodiscard]] bool is_broadcast_code_product(const Graph& graph, const Node& node);
/// Any other q_matmul by such a one: rows of examples that share w follow each other, what else
/// broadcasts is written out, and any other bias is added to exact sums. Nothing for any other
/// node.
[[nodiscard]] std::optional<std::vector<Value>> plain_code_product(const Node& node,
                                                                   std::span<const Value> operands);

/// Σ (x - x_zp)(w - w_zp) in f64, exactly, however many terms there are: without bias and scale.
[[nodiscard]] Value exact_sums(const op::QMatmul& op, Value x, Value w);
[[nodiscard]] Value exact_sums(const op::QConv2d& op, Value x, Value w);

/// What sums in f64 are as codes before they are clamped: rne(sum·mult) + out_zp, with columns or
/// channels along an axis.
[[nodiscard]] Value unclamped_codes(const op::QMatmul& op, Value sums, std::size_t axis);
[[nodiscard]] Value unclamped_codes(const op::QConv2d& op, Value sums, std::size_t axis);

}  // namespace ricci::rule
