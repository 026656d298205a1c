// Regions: chains of element-wise steps evaluated together, one element at a time, without storing
// what lies between.
#pragma once

#include <utility>
#include <variant>

#include "ricci/op/elementwise.h"
#include "ricci/op/op.h"

namespace ricci {

/// What a step reads: an operand of the region, or an earlier step.
struct RegionOperand {
  enum class From : std::uint8_t { Input, Step };
  From from = From::Input;
  std::int64_t index = 0;

  static RegionOperand input(std::int64_t i) { return {From::Input, i}; }
  static RegionOperand step(std::int64_t j) { return {From::Step, j}; }
  bool operator==(const RegionOperand&) const = default;
};
RICCI_DECLARE_CODEC(RegionOperand);

/// One element-wise function applied to inputs and earlier steps. Prints under the function's own
/// name: `tanh(input(0))`, `add(step(0), input(1))`, `cast(f32, input(0))`, `where(o, o, o)`.
struct RegionStep {
  struct Where {
    bool operator==(const Where&) const = default;
  };
  /// A dtype means a conversion to it.
  std::variant<UnaryKind, DType, BinaryKind, CompareKind, Where> function;
  std::vector<RegionOperand> operands;

  static RegionStep activation(UnaryKind kind, RegionOperand x) { return {kind, {x}}; }
  static RegionStep cast(DType to, RegionOperand x) { return {to, {x}}; }
  static RegionStep binary(BinaryKind kind, RegionOperand a, RegionOperand b) {
    return {kind, {a, b}};
  }
  static RegionStep compare(CompareKind kind, RegionOperand a, RegionOperand b) {
    return {kind, {a, b}};
  }
  static RegionStep where(RegionOperand cond, RegionOperand a, RegionOperand b) {
    return {Where{}, {cond, a, b}};
  }
  bool operator==(const RegionStep&) const = default;
};
RICCI_DECLARE_CODEC(RegionStep);

/// One op of a chain of image transforms, applied to inputs and earlier steps. Prints under the
/// op's own name with the attributes that are not its defaults: `reverse(input(0), axes([3]))`,
/// `resize(step(0), sizes([8, 8]), mode(linear))`, `sub(step(1), input(1))`.
struct TransformStep {
  Op op;
  std::vector<RegionOperand> operands;
  bool operator==(const TransformStep&) const = default;
};
RICCI_DECLARE_CODEC(TransformStep);

}  // namespace ricci

namespace ricci::op {

/// A chain of typed element-wise steps with broadcasting; each step has the type its function gives
/// its operands. f16 and bf16 are computed in f32 and rounded when they leave the region, or where
/// a cast says so; every other dtype is rounded at each step.
///   s_j = f_j(inputs, s_0 … s_{j-1});   results = the steps in `outputs`, else the last one
struct ElementwiseRegion {
  std::vector<RegionStep> chain = {};
  std::optional<std::vector<std::int64_t>> outputs = {};

  static constexpr OpInfo info{
      .name = "elementwise_region",
      .operands = "inputs...",
      .results = "results...",
      .traits = Trait::Elementwise,
      .help = "a chain of element-wise steps evaluated together",
      .formula = "s_j = f_j(inputs, s_0 … s_{j-1}); results = s_j for j in outputs",
      .constraints = "c1 attr: the chain is not empty\n"
                     "c2 attr: a step reads inputs that exist and steps before it\n"
                     "c3 dtype: a step's function is defined for its operands' dtypes\n"
                     "c4 shape: a step's operands broadcast together\n"
                     "c5 attr: outputs names steps, each once"};
  static void fields(auto& self, auto&& f) {
    f("chain", self.chain, "the steps, in order", Presence::Required);
    f("outputs", self.outputs, "which steps are results; absent: the last one");
  }
  /// Naming the last step alone is the same as naming none.
  void normalize(std::span<const Type>) {
    if (outputs && outputs->size() == 1 && !chain.empty() &&
        std::cmp_equal(outputs->front(), chain.size() - 1)) {
      outputs.reset();
    }
  }
  bool operator==(const ElementwiseRegion&) const = default;
};

/// One chain on each of several planes, the results joined along axis 0. A plane is one operand, or
/// several that follow each other and broadcast: the inputs of the chain.
///   out = concat_0(chain(planes[0]), chain(planes[1]), …)
struct BatchElementwiseRegion {
  std::vector<RegionStep> chain = {};
  std::int64_t operands_per_plane = 1;

  static constexpr OpInfo info{
      .name = "batch_elementwise_region",
      .operands = "planes...",
      .results = "out",
      .help = "one chain of element-wise steps on each of several planes, joined along axis 0",
      .formula = "out = concat_0(chain(planes[0]), chain(planes[1]), …)",
      .constraints = "c1 attr: the chain is not empty\n"
                     "c2 attr: there is a plane, and a step reads inputs that a plane has and "
                     "steps before it\n"
                     "c3 dtype: a step's function is defined for its operands' dtypes\n"
                     "c4 shape: the operands of a plane broadcast, to rank ≥ 1 and a first size "
                     "≥ 1; other sizes are those of all planes\n"
                     "c5 dtype: planes have the same dtypes\n"
                     "c6 attr: each plane is as many operands as operands_per_plane says",
      .numerics = Numerics::Elementwise};
  static void fields(auto& self, auto&& f) {
    f("chain", self.chain, "the steps, in order", Presence::Required);
    f("operands_per_plane", self.operands_per_plane, "how many operands each plane is");
  }
  bool operator==(const BatchElementwiseRegion&) const = default;
};

/// A chain of image transforms: resize, crop, flip, normalise, another layout, …. A step is any op
/// that moves elements, works element by element or resizes, or one that is registered; each keeps
/// its own parameters, type rule and derivative. f16 and bf16 are rounded at the end only.
///   s_j = op_j(inputs, s_0 … s_{j-1});   out = the last step
struct TransformRegion {
  std::vector<TransformStep> steps = {};

  static constexpr OpInfo info{
      .name = "transform_region",
      .operands = "inputs...",
      .results = "out",
      .help = "a chain of image transforms",
      .formula = "s_j = op_j(inputs, s_0 … s_{j-1}); out = the last step",
      .constraints = "c1 attr: there are steps\n"
                     "c2 attr: a step reads inputs that exist and steps before it\n"
                     "c3 attr: a step moves elements, works element by element or resizes, or is "
                     "a registered op, and gives one result\n"
                     "c4 shape: a step's op takes its operands"};
  static void fields(auto& self, auto&& f) {
    f("steps", self.steps, "the steps, in order", Presence::Required);
  }
  bool operator==(const TransformRegion&) const = default;
};

}  // namespace ricci::op
