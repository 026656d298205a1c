// Ops that move elements without changing them.
#pragma once

#include <span>

#include "ricci/op/fields.h"

namespace ricci::op {

/// Reinterprets row-major order. One entry may be -1: it takes what is left.
struct Reshape {
  Dims new_shape;

  static constexpr OpInfo info{
      .name = "reshape",
      .operands = "x",
      .results = "out",
      .traits = Trait::Linear | Trait::DataMovement,
      .help = "the same elements in another shape",
      .formula = "out[flat i] = x[flat i]",
      .constraints = "c1 shape: new_shape has as many elements as x\n"
                     "c2 attr: at most one entry is -1, and the others then leave a whole number"};
  static void fields(auto& self, auto&& f) {
    f("new_shape", self.new_shape, "shape of the result", Presence::Required);
  }
  void normalize(std::span<const Type> operands);
  bool operator==(const Reshape&) const = default;
};

/// Permutes axes.   out.dim(i) = x.dim(perm[i])
struct Transpose {
  Axes perm;

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
  Dims target_shape;

  static constexpr OpInfo info{
      .name = "expand",
      .operands = "x",
      .results = "out",
      .traits = Trait::Linear | Trait::DataMovement,
      .help = "repeats size-1 and missing leading axes",
      .formula = "out[i] = x[i], with 0 for the index along repeated axes",
      .constraints = "c1 shape: x, right-aligned, equals target_shape wherever it is not 1"};
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

}  // namespace ricci::op
