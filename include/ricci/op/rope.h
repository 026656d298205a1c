// Rotary position embeddings.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "ricci/op/fields.h"

namespace ricci {

/// Which elements of a head turn together: neox (i, i + n_rot/2), gptj (2i, 2i + 1).
enum class RopeStyle : std::uint8_t { Neox, Gptj };
constexpr auto enumerator_names(RopeStyle) {
  return std::to_array<std::string_view>({"neox", "gptj"});
}

}  // namespace ricci

namespace ricci::op {

/// Turns pairs of a head's first n_rot elements by an angle of the position p; the rest is copied.
///   y1 = x1·cos[p, i] - x2·sin[p, i],  y2 = x2·cos[p, i] + x1·sin[p, i]
/// Only the first n_rot/2 columns and S rows of the tables are read.
struct Rope {
  std::int64_t head_dim = 2;
  std::optional<std::int64_t> n_rot = {};  ///< absent: head_dim
  RopeStyle style = RopeStyle::Neox;

  static constexpr OpInfo info{
      .name = "rope",
      .operands = "x, cos, sin",
      .results = "out",
      .help = "rotary position embedding",
      .formula = "y1 = x1 cos[p,i] - x2 sin[p,i]; y2 = x2 cos[p,i] + x1 sin[p,i]",
      .constraints = "c1 dtype: x, cos and sin have one floating dtype\n"
                     "c2 attr: head_dim is positive and even; n_rot is even, from 0 to head_dim\n"
                     "c3 shape: x is [batch, S, heads·head_dim], [S, heads·head_dim] or "
                     "[batch, S, heads, head_dim]\n"
                     "c4 shape: cos and sin are [S_max, head_dim/2]\n"
                     "c5 shape: the tables have at least S rows",
      .vjp = RuleSource::Written,
      .batch = RuleSource::Written,
      .numerics = Numerics::Elementwise};
  static void fields(auto& self, auto&& f) {
    f("head_dim", self.head_dim, "width of a head", Presence::Required);
    f("n_rot", self.n_rot, "elements of a head that turn; absent: head_dim");
    f("style", self.style, "which elements form a pair");
  }
  /// n_rot = head_dim is held as absent.
  void normalize(std::span<const Type> operands);
  bool operator==(const Rope&) const = default;
};

/// Rotary embedding of a grid: the first half of a head turns by the column X of its cell, the
/// second by the row Y. Token p is in cell ⌊p / repeat⌋, X = cell mod end_x, Y = ⌊cell / end_x⌋.
///   f_c = theta^(-4c/D); pair (2c, 2c+1) turns by X·f_c, pair (D/2+2c, D/2+2c+1) by Y·f_c, c < D/4
struct AxialRope2d {
  std::int64_t end_x = 1;
  std::int64_t end_y = 1;
  std::int64_t head_dim = 4;
  std::int64_t num_heads = 1;
  Real theta = 10000.0;
  std::int64_t repeat_factor = 1;
  bool inverse = false;

  static constexpr OpInfo info{
      .name = "axial_rope2d",
      .operands = "x",
      .results = "out",
      .traits = Trait::Linear,
      .help = "rotary position embedding of a grid",
      .formula = "(y0, y1) = (x0 cos φ - x1 sin φ, x0 sin φ + x1 cos φ); φ = X·f_c in a head's "
                 "first half, Y·f_c in its second, f_c = theta^(-4c/head_dim)",
      .constraints = "c1 dtype: x is floating\n"
                     "c2 attr: end_x, end_y and num_heads are positive, head_dim a positive "
                     "multiple of 4, theta positive, repeat_factor not negative\n"
                     "c3 shape: x is [batch, end_x·end_y·max(repeat_factor, 1), "
                     "num_heads·head_dim]",
      .vjp = RuleSource::Written,
      .batch = RuleSource::Written};
  static void fields(auto& self, auto&& f) {
    f("end_x", self.end_x, "columns of the grid", Presence::Required);
    f("end_y", self.end_y, "rows of the grid", Presence::Required);
    f("head_dim", self.head_dim, "width of a head", Presence::Required);
    f("num_heads", self.num_heads, "heads", Presence::Required);
    f("theta", self.theta, "base of the frequencies", Presence::Defaulted, Range::Factor);
    f("repeat_factor", self.repeat_factor, "neighbouring tokens that share a cell");
    f("inverse", self.inverse, "turn back");
  }
  bool operator==(const AxialRope2d&) const = default;
};

/// The derivative of rope: dy turned back. The tables' gradients need the optional operand x;
/// without it the op has the one result dx. Table entries that are never read get 0.
///   dcos[p, i] = Σ (dy1·x1 + dy2·x2),  dsin[p, i] = Σ (dy2·x1 - dy1·x2)   over batch and heads
struct RopeBackward {
  std::int64_t head_dim = 2;
  std::optional<std::int64_t> n_rot = {};
  RopeStyle style = RopeStyle::Neox;

  static constexpr OpInfo info{
      .name = "rope_backward",
      .operands = "dy, cos, sin, x?",
      .results = "dx, dcos?, dsin?",
      .help = "derivative of rope",
      .formula = "dx1 = dy1 cos[p,i] + dy2 sin[p,i]; dx2 = dy2 cos[p,i] - dy1 sin[p,i]",
      .constraints = "c1 dtype: all operands have one floating dtype\n"
                     "c2 attr: head_dim is positive and even; n_rot is even, from 0 to head_dim\n"
                     "c3 shape: dy is [batch, S, heads·head_dim], [S, heads·head_dim] or "
                     "[batch, S, heads, head_dim]\n"
                     "c4 shape: cos and sin are [S_max, head_dim/2]\n"
                     "c5 shape: the tables have at least S rows\n"
                     "c6 shape: x has the shape of dy",
      .batch = RuleSource::Written,
      .numerics = Numerics::Elementwise};
  static void fields(auto& self, auto&& f) { Rope::fields(self, f); }
  void normalize(std::span<const Type> operands);
  bool operator==(const RopeBackward&) const = default;
};

}  // namespace ricci::op
