// Ops whose operands say which elements are read or written. Index operands are integers, or f32 or
// f64 holding exact integers; they never count from the end, and one outside its axis is
// UserError(index_out_of_range) when the program runs.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "ricci/op/fields.h"

namespace ricci {

/// How an update meets what is there already: it is added, multiplied, the larger or the smaller
/// stays, or it takes the place.
enum class ScatterKind : std::uint8_t { Add, Mul, Max, Min, Set };
constexpr auto enumerator_names(ScatterKind) {
  return std::to_array<std::string_view>({"add", "mul", "max", "min", "set"});
}

}  // namespace ricci

namespace ricci::op {

/// Rows of a table, in the order and shape of the indices.
struct Gather {
  Axis axis = 0;

  static constexpr OpInfo info{
      .name = "gather",
      .operands = "table, indices",
      .results = "out",
      .traits = Trait::DataMovement | Trait::Linear | Trait::Faults,
      .help = "picks slices of one axis by index",
      .formula = "out[o…, k…, t…] = table[o…, indices[k…], t…] with o before axis and t after it",
      .constraints = "c1 dtype: indices are integers, or f32 or f64 holding integers",
      .no_gradient = "indices"};
  static void fields(auto& self, auto&& f) {
    f("axis", self.axis, "axis of table that is picked", Presence::Required);
  }
  bool operator==(const Gather&) const = default;
};

/// The transpose of gather: adds every slice of dy to the table slice it was picked from.
struct GatherBackward {
  Axis axis = 0;
  Dim axis_size = 0;

  static constexpr OpInfo info{
      .name = "gather_backward",
      .operands = "dy, indices",
      .results = "dtable",
      .traits = Trait::Linear | Trait::Faults,
      .help = "adds slices back to where gather picked them",
      .formula = "dtable[o…, r, t…] = Σ_{k: indices[k] = r} dy[o…, k…, t…]",
      .constraints = "c1 dtype: indices are integers, or f32 or f64 holding integers\n"
                     "c2 dtype: dy can be added: it is not bool\n"
                     "c3 shape: dy has the axes of indices where the table has its axis\n"
                     "c4 attr: axis_size is not negative",
      .no_gradient = "indices"};
  static void fields(auto& self, auto&& f) {
    f("axis", self.axis, "axis of the table that was picked", Presence::Required);
    f("axis_size", self.axis_size, "size of that axis", Presence::Required);
  }
  // The axis is the table's: dy has the axes of indices in place of it.
  static std::size_t axis_rank(const GatherBackward&, auto&& operands) {
    const std::size_t rank = operands[0].rank() + 1;
    return rank > operands[1].rank() ? rank - operands[1].rank() : 0;
  }
  bool operator==(const GatherBackward&) const = default;
};

/// Adds slices to the rows of a zero tensor; rows named twice get both.
struct ScatterAdd {
  Dim out_dim = 0;

  static constexpr OpInfo info{
      .name = "scatter_add",
      .operands = "updates, indices",
      .results = "out",
      .traits = Trait::Linear | Trait::Faults,
      .help = "adds slices to rows by index",
      .formula = "out[r, t…] = Σ_{k: indices[k] = r} updates[k…, t…]",
      .constraints = "c1 dtype: indices are integers, or f32 or f64 holding integers\n"
                     "c2 dtype: updates can be added: they are not bool\n"
                     "c3 shape: indices have rank 1 or more, and updates begin with their axes\n"
                     "c4 attr: out_dim is not negative",
      .no_gradient = "indices"};
  static void fields(auto& self, auto&& f) {
    f("out_dim", self.out_dim, "number of rows of the result", Presence::Required);
  }
  bool operator==(const ScatterAdd&) const = default;
};

/// Slices combined with the rows of x they name, one after the other in the order of the indices:
/// of several that are set the last stays. A NaN makes max and min NaN. Ties of max and min share a
/// gradient equally, and the product's is exact where factors are zero.
struct Scatter {
  ScatterKind kind = ScatterKind::Set;

  static constexpr OpInfo info{
      .name = "scatter",
      .operands = "x, updates, indices",
      .results = "out",
      .traits = Trait::Faults,
      .help = "combines slices with the rows that indices name",
      .formula = "out = x; for k in order: out[indices[k], t…] = kind(out[indices[k], t…], "
                 "updates[k…, t…])",
      .constraints = "c1 dtype: indices are integers, or f32 or f64 holding integers\n"
                     "c2 dtype: x and updates have one dtype, which kind is defined for: set takes "
                     "any, max and min all but complex, add and mul all but bool\n"
                     "c3 shape: x has rank 1 or more\n"
                     "c4 shape: updates have the axes of indices, then those of x behind its first",
      .no_gradient = "indices"};
  static void fields(auto& self, auto&& f) {
    f("kind", self.kind, "how an update meets what is there", Presence::Required);
  }
  bool operator==(const Scatter&) const = default;
};

/// One element along an axis for every index.
struct TakeAlongAxis {
  Axis axis = -1;

  static constexpr OpInfo info{
      .name = "take_along_axis",
      .operands = "x, indices",
      .results = "out",
      .traits = Trait::DataMovement | Trait::Linear | Trait::Faults,
      .help = "picks single elements along an axis by index",
      .formula = "out[o…, k, t…] = x[o…, indices[o…, k, t…], t…]",
      .constraints = "c1 dtype: indices are integers, or f32 or f64 holding integers\n"
                     "c2 shape: x and indices have one rank and agree on every other axis",
      .no_gradient = "indices"};
  static void fields(auto& self, auto&& f) { f("axis", self.axis, "axis that is picked from"); }
  bool operator==(const TakeAlongAxis&) const = default;
};

/// The transpose of take_along_axis: adds every element to where it was taken from.
struct ScatterAddAlongAxis {
  Axis axis = -1;
  Dim axis_size = 0;

  static constexpr OpInfo info{
      .name = "scatter_add_along_axis",
      .operands = "updates, indices",
      .results = "out",
      .traits = Trait::Linear | Trait::Faults,
      .help = "adds single elements along an axis by index",
      .formula = "out[o…, r, t…] = Σ_{k: indices[o…, k, t…] = r} updates[o…, k, t…]",
      .constraints = "c1 dtype: indices are integers, or f32 or f64 holding integers\n"
                     "c2 dtype: updates can be added: they are not bool\n"
                     "c3 shape: updates and indices have one shape\n"
                     "c4 attr: axis_size is not negative",
      .no_gradient = "indices"};
  static void fields(auto& self, auto&& f) {
    f("axis", self.axis, "axis that is added along");
    f("axis_size", self.axis_size, "size of that axis of the result", Presence::Required);
  }
  bool operator==(const ScatterAddAlongAxis&) const = default;
};

/// A slice whose place is computed. A start that would leave the axis moves back inside it.
struct DynamicNarrow {
  Axis axis = 0;
  Dim len = 0;

  static constexpr OpInfo info{
      .name = "dynamic_narrow",
      .operands = "x, start",
      .results = "out",
      .traits = Trait::DataMovement | Trait::Linear | Trait::Faults,
      .help = "a slice of one axis from a computed start",
      .formula = "out[…, i, …] = x[…, s + i, …], s = min(max(start, 0), x.dim(axis) - len)",
      .constraints = "c1 dtype: start is an integer, or f32 or f64 holding one\n"
                     "c2 shape: start has rank 0\n"
                     "c3 shape: 0 ≤ len ≤ x.dim(axis)",
      .no_gradient = "start"};
  static void fields(auto& self, auto&& f) {
    f("axis", self.axis, "axis that is cut", Presence::Required);
    f("len", self.len, "number of indices kept", Presence::Required);
  }
  bool operator==(const DynamicNarrow&) const = default;
};

/// Overwrites a slice whose place is computed. A start that would leave the axis moves back inside.
struct DynamicUpdate {
  Axis axis = 0;

  static constexpr OpInfo info{
      .name = "dynamic_update",
      .operands = "x, update, start",
      .results = "out",
      .traits = Trait::DataMovement | Trait::Linear | Trait::Faults,
      .help = "replaces a slice of one axis from a computed start",
      .formula = "out = x, but out[…, s + i, …] = update[…, i, …], "
                 "s = min(max(start, 0), x.dim(axis) - update.dim(axis))",
      .constraints = "c1 dtype: start is an integer, or f32 or f64 holding one\n"
                     "c2 shape: start has rank 0\n"
                     "c3 dtype: x and update have one dtype\n"
                     "c4 shape: x and update have one rank, agree on every other axis, and update "
                     "is not longer",
      .no_gradient = "start"};
  static void fields(auto& self, auto&& f) {
    f("axis", self.axis, "axis that is written", Presence::Required);
  }
  bool operator==(const DynamicUpdate&) const = default;
};

}  // namespace ricci::op
