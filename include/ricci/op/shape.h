// Ops that move elements without changing them.
#pragma once

#include <span>

#include "ricci/op/fields.h"

namespace ricci::op {

/// Reinterprets row-major order. One entry may be -1: it takes what is left.
struct Reshape {
  Dims new_shape = {};

  static constexpr OpInfo info{
      .name = "reshape",
      .operands = "x",
      .results = "out",
      .traits = Trait::Linear | Trait::DataMovement,
      .help = "the same elements in another shape",
      .formula = "out[flat i] = x[flat i]",
      .constraints = "c1 shape: new_shape has as many elements as x\n"
                     "c2 shape: at most one entry is -1, and the others then leave a whole number"};
  static void fields(auto& self, auto&& f) {
    f("new_shape", self.new_shape, "shape of the result", Presence::Required);
  }
  void normalize(std::span<const Type> operands);
  bool operator==(const Reshape&) const = default;
};

/// Permutes axes.   out.dim(i) = x.dim(perm[i])
struct Transpose {
  Axes perm = {};

  static constexpr OpInfo info{.name = "transpose",
                               .operands = "x",
                               .results = "out",
                               .traits = Trait::Linear | Trait::DataMovement,
                               .help = "permutes axes",
                               .formula = "out[i_0, …] = x[j_0, …] with j_perm[k] = i_k",
                               .constraints = "c1 attr: perm is a permutation of x's axes"};
  static void fields(auto& self, auto&& f) {
    f("perm", self.perm, "source axis of each result axis", Presence::Required);
  }
  bool operator==(const Transpose&) const = default;
};

/// Repeats size-1 and missing leading axes. An entry of -1 keeps the right-aligned size of x.
struct Expand {
  Dims target_shape = {};

  static constexpr OpInfo info{
      .name = "expand",
      .operands = "x",
      .results = "out",
      .traits = Trait::Linear | Trait::DataMovement,
      .help = "repeats size-1 and missing leading axes",
      .formula = "out[i] = x[i], with 0 for the index along repeated axes",
      .constraints = "c1 shape: x, right-aligned, equals target_shape wherever it is not 1\n"
                     "c2 shape: no size is negative; -1 keeps a size x has"};
  static void fields(auto& self, auto&& f) {
    f("target_shape", self.target_shape, "shape of the result", Presence::Required);
  }
  void normalize(std::span<const Type> operands);
  bool operator==(const Expand&) const = default;
};

/// A contiguous slice of one axis.   out[…, i, …] = x[…, start + i, …]
struct Narrow {
  Axis axis = 0;
  Dim start = 0;
  Dim len = 0;

  static constexpr OpInfo info{
      .name = "narrow",
      .operands = "x",
      .results = "out",
      .traits = Trait::Linear | Trait::DataMovement,
      .help = "a slice of one axis",
      .formula = "out[…, i, …] = x[…, start + i, …]",
      .constraints = "c1 shape: 0 ≤ start, 0 ≤ len and start + len ≤ x.dim(axis)"};
  static void fields(auto& self, auto&& f) {
    f("axis", self.axis, "axis that is cut", Presence::Required);
    f("start", self.start, "first index kept", Presence::Required);
    f("len", self.len, "number of indices kept", Presence::Required);
  }
  bool operator==(const Narrow&) const = default;
};

/// Every `stride`-th index of one axis, from the first on.   out[…, i, …] = x[…, i·stride, …]
struct TakeEvery {
  Axis axis = 0;
  std::int64_t stride = 1;

  static constexpr OpInfo info{
      .name = "take_every",
      .operands = "x",
      .results = "out",
      .traits = Trait::Linear | Trait::DataMovement,
      .help = "every n-th index of one axis",
      .formula = "out[…, i, …] = x[…, i·stride, …]; out.dim(axis) = ⌈x.dim(axis) / stride⌉",
      .constraints = "c1 attr: stride is positive\n"
                     "c2 needs_static_dim: a symbolic size divides by the stride"};
  static void fields(auto& self, auto&& f) {
    f("axis", self.axis, "axis that is thinned", Presence::Required);
    f("stride", self.stride, "distance of the indices kept", Presence::Required);
  }
  bool operator==(const TakeEvery&) const = default;
};

/// Joins operands along one axis.   out = x_0 ++ x_1 ++ … along axis
struct Concat {
  Axis axis = 0;

  static constexpr OpInfo info{
      .name = "concat",
      .operands = "inputs...",
      .results = "out",
      .traits = Trait::Linear | Trait::DataMovement,
      .help = "joins operands along one axis",
      .formula = "out[…, offset_k + i, …] = inputs[k][…, i, …], offset_k = Σ_{j<k} "
                 "inputs[j].dim(axis)",
      .constraints = "c1 attr: there is at least one operand\n"
                     "c2 dtype: all operands have one dtype\n"
                     "c3 shape: all operands have one rank and agree on every other axis"};
  static void fields(auto& self, auto&& f) {
    f("axis", self.axis, "axis along which operands follow each other", Presence::Required);
  }
  // Without operands there is no rank to check against; c1 says what is wrong.
  static std::size_t axis_rank(const Concat&, auto&& operands) {
    return operands.empty() ? 1 : operands[0].rank();
  }
  bool operator==(const Concat&) const = default;
};

/// Mirrors some axes.   out[…, i, …] = x[…, n - 1 - i, …]
struct Reverse {
  Axes axes = {};

  static constexpr OpInfo info{.name = "reverse",
                               .operands = "x",
                               .results = "out",
                               .traits = Trait::Linear | Trait::DataMovement,
                               .help = "mirrors some axes",
                               .formula = "out[i] = x[j] with j_a = x.dim(a) - 1 - i_a for the "
                                          "listed axes and j_a = i_a for the others",
                               .constraints = "c1 attr: no axis is listed twice"};
  static void fields(auto& self, auto&& f) {
    f("axes", self.axes, "axes that are mirrored; none is the identity", Presence::Required);
  }
  void normalize(std::span<const Type> operands);
  bool operator==(const Reverse&) const = default;
};

/// Puts a value around x; negative amounts cut x instead.
struct Pad {
  Dims low = {};
  Dims high = {};

  static constexpr OpInfo info{
      .name = "pad",
      .operands = "x, value",
      .results = "out",
      .traits = Trait::Linear | Trait::DataMovement,
      .help = "puts a value around x, or cuts x where an amount is negative",
      .formula = "out[i] = x[i - low] where that is inside x, value elsewhere; "
                 "out.dim(a) = low[a] + x.dim(a) + high[a]",
      .constraints = "c1 dtype: x and value have one dtype\n"
                     "c2 shape: value has rank 0\n"
                     "c3 attr: low and high have one entry per axis of x\n"
                     "c4 shape: no size of the result is negative"};
  static void fields(auto& self, auto&& f) {
    f("low", self.low, "elements put before each axis; negative ones are cut", Presence::Required);
    f("high", self.high, "elements put after each axis; negative ones are cut", Presence::Required);
  }
  bool operator==(const Pad&) const = default;
};

}  // namespace ricci::op
