// Generators: values made from nothing but attributes, sizes and the run's seed.
//
// Random ops. A node's stream is Philox4x32-10 keyed by the run's seed and the node's key: the sum
// of `key` (the graph gives a fresh one when it is absent), `op_seed` and, where there is one, the
// value of the key operand, which lets a draw vary from step to step inside a loop.
// `rng_normal` and `rng_uniform` take their shape from `shape`, or else from a template operand
// whose values are ignored. So with `shape` a single operand is the key operand; without it operand
// 0 is the template and operand 1, if given, the key operand.
#pragma once

#include "ricci/op/fields.h"

namespace ricci::op {

/// Counts along one axis.   out[i_0, …, i_r] = i_axis
struct Iota {
  Dims shape = {};
  Axis axis = 0;
  DType dtype = DType::I32;

  static constexpr OpInfo info{.name = "iota",
                               .operands = "",
                               .results = "out",
                               .traits = Trait::NoGradient,
                               .help = "the index along one axis",
                               .formula = "out[i_0, …, i_r] = i_axis",
                               .constraints = "c1 dtype: dtype is a number, not bool\n"
                                              "c2 shape: no dimension is negative",
                               .batch = RuleSource::Leaf};
  static void fields(auto& self, auto&& f) {
    f("shape", self.shape, "shape of the result", Presence::Required);
    f("axis", self.axis, "axis that is counted");
    f("dtype", self.dtype, "dtype of the result");
  }
  static std::size_t axis_rank(const Iota& self, auto&&) { return self.shape.size(); }
  bool operator==(const Iota&) const = default;
};

/// The value of a dimension, which a run may decide.   out = dim
struct DimSize {
  Dim dim = 0;
  DType dtype = DType::I64;

  static constexpr OpInfo info{.name = "dim_size",
                               .operands = "",
                               .results = "out",
                               .traits = Trait::NoGradient,
                               .help = "the value of a dimension, rank 0",
                               .formula = "out = dim",
                               .constraints = "c1 dtype: dtype is a float or an integer\n"
                                              "c2 shape: dim is not negative",
                               .batch = RuleSource::Leaf};
  static void fields(auto& self, auto&& f) {
    f("dim", self.dim, "the dimension, usually symbolic", Presence::Required);
    f("dtype", self.dtype, "dtype of the result");
  }
  bool operator==(const DimSize&) const = default;
};

/// Normal numbers; element i uses words 2i and 2i+1 of the stream (f64: 4i to 4i+3).
///   out[i] = mean + scale·√(-2 ln u1)·cos(2π u2)
struct RngNormal {
  Real mean = 0.0;
  Real scale = 1.0;
  OptionalDims shape = {};
  std::optional<DType> dtype = {};
  std::optional<std::int64_t> key = {};
  std::int64_t op_seed = 0;

  static constexpr OpInfo info{
      .name = "rng_normal",
      .operands = "template?, key_operand?",
      .results = "out",
      .traits = Trait::Random | Trait::NoGradient,
      .help = "normally distributed random numbers",
      .formula = "out[i] = mean + scale·√(-2 ln u1)·cos(2π u2), u from words 2i and 2i+1",
      .constraints = "c1 dtype: the result is a float\n"
                     "c2 attr: the shape comes from shape or from a template, not both\n"
                     "c3 shape: no dimension is negative\n"
                     "c4 dtype: the key operand is an integer of rank 0"};
  static void fields(auto& self, auto&& f) {
    f("mean", self.mean, "centre");
    f("scale", self.scale, "standard deviation");
    f("shape", self.shape, "shape of the result; absent: the template's");
    f("dtype", self.dtype, "dtype of the result; absent: the template's, or f32");
    f("key", self.key, "which stream; absent: a fresh one", Presence::Defaulted, Range::Any);
    f("op_seed", self.op_seed, "added to the key", Presence::Defaulted, Range::Any);
  }
  bool operator==(const RngNormal&) const = default;
};

/// Uniform numbers in [low, high); element i uses word i of the stream (f64: 2i and 2i+1).
///   out[i] = low + u·(high - low)
struct RngUniform {
  Real low = 0.0;
  Real high = 1.0;
  OptionalDims shape = {};
  std::optional<DType> dtype = {};
  std::optional<std::int64_t> key = {};
  std::int64_t op_seed = 0;

  static constexpr OpInfo info{
      .name = "rng_uniform",
      .operands = "template?, key_operand?",
      .results = "out",
      .traits = Trait::Random | Trait::NoGradient,
      .help = "uniformly distributed random numbers",
      .formula = "out[i] = low + u·(high - low), u = (word_i >> 8)/2²⁴",
      .constraints = "c1 dtype: the result is a float\n"
                     "c2 attr: the shape comes from shape or from a template, not both\n"
                     "c3 shape: no dimension is negative\n"
                     "c4 dtype: the key operand is an integer of rank 0"};
  static void fields(auto& self, auto&& f) {
    f("low", self.low, "smallest value");
    f("high", self.high, "bound above");
    f("shape", self.shape, "shape of the result; absent: the template's");
    f("dtype", self.dtype, "dtype of the result; absent: the template's, or f32");
    f("key", self.key, "which stream; absent: a fresh one", Presence::Defaulted, Range::Any);
    f("op_seed", self.op_seed, "added to the key", Presence::Defaulted, Range::Any);
  }
  bool operator==(const RngUniform&) const = default;
};

/// The words of a stream themselves.   out[i] = word_i as u32
struct RngBits {
  Dims shape = {};
  std::optional<std::int64_t> key = {};

  static constexpr OpInfo info{.name = "rng_bits",
                               .operands = "key_operand?",
                               .results = "out",
                               .traits = Trait::Random | Trait::NoGradient,
                               .help = "random 32-bit words",
                               .formula = "out[i] = word_i of the stream, u32",
                               .constraints = "c1 shape: no dimension is negative\n"
                                              "c2 dtype: the key operand is an integer of rank 0"};
  static void fields(auto& self, auto&& f) {
    f("shape", self.shape, "shape of the result", Presence::Required);
    f("key", self.key, "which stream; absent: a fresh one", Presence::Defaulted, Range::Any);
  }
  bool operator==(const RngBits&) const = default;
};

}  // namespace ricci::op
