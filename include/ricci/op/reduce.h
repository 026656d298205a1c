// Reductions along axes, and what is built on them.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "ricci/op/fields.h"

namespace ricci {

enum class ReduceKind : std::uint8_t { Sum, Mean, Max, Min, Prod, Any, All, LogSumExp };
constexpr auto enumerator_names(ReduceKind) {
  return std::to_array<std::string_view>(
      {"sum", "mean", "max", "min", "prod", "any", "all", "log_sum_exp"});
}

enum class CumulativeKind : std::uint8_t { Cumsum, Cumprod, Cummax, Cummin };
constexpr auto enumerator_names(CumulativeKind) {
  return std::to_array<std::string_view>({"cumsum", "cumprod", "cummax", "cummin"});
}

}  // namespace ricci

namespace ricci::op {

/// Combines all elements along some axes. Empty ranges give sum 0, prod 1, mean NaN, max -inf,
/// min +inf, any false, all true, log_sum_exp -inf. A NaN makes max and min NaN.
struct Reduce {
  ReduceKind op = ReduceKind::Sum;
  Axes axes = {};
  bool keep_dim = false;

  static constexpr OpInfo info{
      .name = "reduce",
      .operands = "x",
      .results = "out",
      .help = "combines all elements along some axes",
      .formula = "out[kept] = op over x[kept, reduced]; reduced axes become 1 or vanish",
      .constraints = "c1 dtype: the reduction is defined for x's dtype\n"
                     "c2 attr: no axis is listed twice"};
  static void fields(auto& self, auto&& f) {
    f("op", self.op, "which reduction", Presence::Required);
    f("axes", self.axes, "axes that are reduced; none is the identity", Presence::Required);
    f("keep_dim", self.keep_dim, "keep reduced axes as size 1");
  }
  void normalize(std::span<const Type> operands);
  bool operator==(const Reduce&) const = default;
};

/// Running totals along an axis. The exclusive form leaves the element itself out and starts with
/// what the reduction of nothing is: sum 0, prod 1, max the lowest value, min the highest. A NaN
/// stays from where it appears.
struct Cumulative {
  CumulativeKind kind = CumulativeKind::Cumsum;
  Axis axis = -1;
  bool exclusive = false;

  static constexpr OpInfo info{
      .name = "cumulative",
      .operands = "x",
      .results = "out",
      .help = "running totals along an axis",
      .formula = "out[…, i, …] = op over x[…, j, …] with j ≤ i, or j < i when exclusive",
      .constraints = "c1 dtype: the function is defined for x's dtype"};
  static constexpr bool named_by_kind = true;
  static void fields(auto& self, auto&& f) {
    f("kind", self.kind, "which function");
    f("axis", self.axis, "axis along which elements are combined");
    f("exclusive", self.exclusive, "leave the element itself out");
  }
  bool operator==(const Cumulative&) const = default;
};

/// The transpose of cumsum: totals from the end.
struct CumsumBackward {
  Axis axis = -1;
  bool exclusive = false;

  static constexpr OpInfo info{
      .name = "cumsum_backward",
      .operands = "dy",
      .results = "dx",
      .traits = Trait::Linear,
      .help = "totals from the end of an axis",
      .formula = "dx[…, j, …] = Σ dy[…, i, …] with i ≥ j, or i > j when exclusive",
      .constraints = "c1 dtype: dy can be added: it is not bool",
      .vjp = RuleSource::Written,
      .batch = RuleSource::Written};
  static void fields(auto& self, auto&& f) {
    f("axis", self.axis, "axis along which elements are combined");
    f("exclusive", self.exclusive, "leave the element itself out");
  }
  bool operator==(const CumsumBackward&) const = default;
};

/// Exponentials that sum to one along an axis; a slice that is all -inf gives NaN.
struct Softmax {
  Axis axis = -1;

  static constexpr OpInfo info{.name = "softmax",
                               .operands = "x",
                               .results = "out",
                               .help = "exponentials that sum to one along an axis",
                               .formula = "out = e^(x - m) / Σ_axis e^(x - m), m = max_axis x",
                               .constraints = "c1 dtype: x is floating",
                               .vjp = RuleSource::Written,
                               .jvp = RuleSource::Written,
                               .batch = RuleSource::Written};
  static void fields(auto& self, auto&& f) { f("axis", self.axis, "axis that sums to one"); }
  bool operator==(const Softmax&) const = default;
};

}  // namespace ricci::op
