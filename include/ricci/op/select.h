// Ops that choose elements by their order, and the indices they choose. A NaN counts as larger than
// every number (for arg_min: as the smallest), and among equals the first index comes first.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "ricci/op/fields.h"

namespace ricci {

enum class ArgKind : std::uint8_t { ArgMax, ArgMin };
constexpr auto enumerator_names(ArgKind) {
  return std::to_array<std::string_view>({"arg_max", "arg_min"});
}

}  // namespace ricci

namespace ricci::op {

/// Orders elements along an axis and says where each came from. Stable both ways; NaN comes last
/// when ascending and first when descending.
struct Sort {
  Axis axis = -1;
  bool descending = false;
  DType index_dtype = DType::I32;

  static constexpr OpInfo info{
      .name = "sort",
      .operands = "x",
      .results = "values, indices",
      .help = "orders elements along an axis, stably",
      .formula = "values[…, i, …] = x[…, indices[…, i, …], …], in order along axis",
      .constraints = "c1 dtype: x has an order: it is not complex\n"
                     "c2 dtype: index_dtype is i32, i64, u32 or f32",
      .keeps_residuals = true,
      .numerics = Numerics::Reduction};
  static void fields(auto& self, auto&& f) {
    f("axis", self.axis, "axis that is ordered");
    f("descending", self.descending, "largest first");
    f("index_dtype", self.index_dtype, "dtype of indices");
  }
  bool operator==(const Sort&) const = default;
};

/// Where the largest (smallest) element along an axis is; the first NaN, when there is one.
struct ArgReduce {
  ArgKind kind = ArgKind::ArgMax;
  Axis axis = -1;
  bool keep_dim = false;
  DType index_dtype = DType::I32;

  static constexpr OpInfo info{
      .name = "arg_reduce",
      .operands = "x",
      .results = "indices",
      .traits = Trait::NoGradient,
      .help = "index of the largest or smallest element along an axis",
      .formula = "indices[kept] = the smallest i with x[…, i, …] = max_axis x (or min_axis x)",
      .constraints = "c1 dtype: x has an order: it is not complex\n"
                     "c2 dtype: index_dtype is i32, i64, u32 or f32\n"
                     "c3 shape: the axis is not empty",
      .numerics = Numerics::Reduction};
  static constexpr bool named_by_kind = true;
  static void fields(auto& self, auto&& f) {
    f("kind", self.kind, "which extreme");
    f("axis", self.axis, "axis that is searched");
    f("keep_dim", self.keep_dim, "keep the axis as size 1");
    f("index_dtype", self.index_dtype, "dtype of indices");
  }
  bool operator==(const ArgReduce&) const = default;
};

/// The k largest elements along the last axis, largest first, and where they are.
struct TopK {
  Dim k = 0;
  DType index_dtype = DType::I32;

  static constexpr OpInfo info{
      .name = "top_k",
      .operands = "x",
      .results = "values, indices",
      .help = "the k largest elements along the last axis, largest first",
      .formula = "values[…, i] = x[…, indices[…, i]], the first k of x sorted descending",
      .constraints = "c1 dtype: x has an order: it is not complex\n"
                     "c2 dtype: index_dtype is i32, i64, u32 or f32\n"
                     "c3 shape: x has rank 1 or more\n"
                     "c4 attr: 1 ≤ k ≤ the size of the last axis",
      .keeps_residuals = true,
      .numerics = Numerics::Reduction};
  static void fields(auto& self, auto&& f) {
    f("k", self.k, "how many elements are kept", Presence::Required);
    f("index_dtype", self.index_dtype, "dtype of indices");
  }
  bool operator==(const TopK&) const = default;
};

/// Draws one id per row from the softmax of its logits, after keeping only the likely ones. Row r
/// uses word r of the stream keyed by the run's seed and by `seed`, or `key` when seed is 0 (the
/// graph gives a fresh one when it is absent), plus the key operand. A row whose largest logit is
/// not finite has no softmax: it gives arg_max, and so does temperature 0.
struct Sample {
  std::int64_t top_k = 0;
  Real top_p = 1.0;
  Real temperature = 1.0;
  std::int64_t seed = 0;
  DType index_dtype = DType::I32;
  std::optional<std::int64_t> key = {};

  static constexpr OpInfo info{
      .name = "sample",
      .operands = "logits, key_operand?",
      .results = "ids",
      .traits = Trait::Random | Trait::NoGradient | Trait::Faults,
      .help = "draws one id per row of logits",
      .formula = "ids[r] = the first i with Σ_{j≤i} p_j > u_r, p = softmax(logits[r]/temperature) "
                 "over the top_k largest, cut to the fewest that hold top_p of the mass",
      .constraints = "c1 dtype: logits are floating\n"
                     "c2 dtype: index_dtype is i32, i64, u32 or f32\n"
                     "c3 shape: logits have rank 1 or 2 and at least one id\n"
                     "c4 attr: temperature is finite and not negative\n"
                     "c5 attr: top_p is positive and top_k is not negative\n"
                     "c6 dtype: the key operand is an integer of rank 0"};
  static void fields(auto& self, auto&& f) {
    f("top_k", self.top_k, "how many ids are kept; 0 keeps all");
    f("top_p", self.top_p, "probability mass that is kept; 1 keeps all");
    f("temperature", self.temperature, "divides the logits; 0 takes the largest",
      Presence::Defaulted, Range::Factor);
    f("seed", self.seed, "which stream, when not 0", Presence::Defaulted, Range::Any);
    f("index_dtype", self.index_dtype, "dtype of ids");
    f("key", self.key, "which stream, when seed is 0; absent: a fresh one", Presence::Defaulted,
      Range::Any);
  }
  bool operator==(const Sample&) const = default;
};

}  // namespace ricci::op
