// Rules for Taylor series: from the series of a node's operands to those of its results.
//
// A value moves along a curve x(s) = x₀ + x₁·s + x₂·s² + …; its series is x₁, x₂, …, where a
// coefficient that is known to be zero is absent: an invalid Value, or past the end. Few ops have a
// rule of their own, because most need none: their forward rule gives y' = J(x)·x', and the series
// of y follows from that of y'.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ricci/compiler/rule/body_transforms.h"

namespace ricci {

/// Coefficients 1, 2, … of a value, each of its type.
using Series = std::vector<Value>;

/// How the series of a node's results is found.
enum class SeriesForm : std::uint8_t {
  Rate,      ///< from y', which the forward rule gives
  Product,   ///< linear in each operand: y_k = Σ f(a_i, b_j, …) over i + j + … = k
  Quotient,  ///< y·b = a: y_k = (a_k - Σ_{j<k} y_j·b_{k-j}) / b₀
  Joint,     ///< one node over values and coefficients, by `apply_series`
  Parts,     ///< as what the node is written in, `series_parts`
};

/// `moves` says which operands have a series.
[[nodiscard]] SeriesForm series_form(const Node& node, const std::vector<bool>& moves);

/// A node of form `Parts` in other ops; one value per result, invalid for unwanted ones.
[[nodiscard]] std::vector<Value> series_parts(const Node& node, std::span<const Value> operands,
                                              Graph& graph);

struct SeriesContext {
  Graph& graph;
  const Node& node;
  std::span<const Value> operands;  ///< coefficients 0
  std::span<const Series> series;   ///< of each operand
  std::size_t order;                ///< how many coefficients are asked for
  const BodyTransforms& bodies;

  /// How many coefficients each operand has.
  [[nodiscard]] std::vector<std::size_t> degrees() const;
  /// Coefficient j of operand k with zero written out.
  [[nodiscard]] Value coefficient_or_zero(std::size_t k, std::size_t j) const;
};

/// Values and series of a node's results.
struct SeriesResults {
  std::vector<Value> values;
  std::vector<Series> series;
};

/// The rule of a node of form `Joint`. With order 1 it is the node's forward rule.
[[nodiscard]] SeriesResults apply_series(const SeriesContext& context);

}  // namespace ricci
