// Products with weights in few bits (ricci/quant/scheme.h), which are decoded on the way and never
// written out. Ŵ [k, n] is the matrix that the operands of the weight stand for.
#pragma once

#include <optional>
#include <string>

#include "ricci/op/fields.h"

namespace ricci::op {

/// A product with a weight in few bits.   y = x·Ŵ, or x·Ŵᵀ
/// `scale` has the scales of schemes that keep them apart; `offset` their zero points, or the scale
/// of all for nvfp4_block. Codes in i8, scales and offsets in f32 have derivatives:
///   dq = (xᵀ·dy)·scale, dscale = Σ_block (xᵀ·dy)·(q - zero), dzero = -Σ_block (xᵀ·dy)·scale
struct DequantMatmul {
  std::string scheme = {};
  bool transpose = false;
  std::optional<std::int64_t> depth = {};  ///< k, where the operands leave it open
  bool int8_activations = false;

  static constexpr OpInfo info{
      .name = "dequant_matmul",
      .operands = "x, w, scale?, offset?",
      .results = "y",
      .help = "a matrix product with a weight in few bits",
      .formula = "x [.., k], Ŵ [k, n]: y = x·Ŵ; transposed x [.., n]: y = x·Ŵᵀ",
      .constraints =
          "c1 attr: there is such a scheme\n"
          "c2 dtype: x is floating, and the parts of the weight are as the scheme has them\n"
          "c3 shape: x has rank 1 or more, and a last size that is known\n"
          "c4 shape: the parts of the weight have the sizes that the scheme gives them\n"
          "c5 attr: the scheme has all parts that are given, and needs no other\n"
          "c6 attr: the depth, when given, is the weight's",
      .codes = "w"};
  static void fields(auto& self, auto&& f) {
    f("scheme", self.scheme, "how the weight is stored: q4_k, int8_block_32, …",
      Presence::Required);
    f("transpose", self.transpose, "multiply by the transpose of the weight");
    f("depth", self.depth, "k, where the operands leave it open");
    f("int8_activations", self.int8_activations,
      "round x to 8 bits in blocks of 32 along its last axis: faster, less exact");
  }
  bool operator==(const DequantMatmul&) const = default;
};

/// Rows times the matrix each of them picks, of a stack of matrices in a block format, one behind
/// the other.   out[i, j…] = x[i]·Ŵ[expert_idx[i, j…]], or times its transpose
/// An expert outside [0, E) is a fault of the run: index_out_of_range.
struct DequantGroupedMatmul {
  std::string scheme = {};
  std::int64_t n = 0;  ///< columns of each Ŵ; of the result, or when transposed of x
  std::optional<std::int64_t> depth = {};
  bool transpose = false;

  static constexpr OpInfo info{
      .name = "dequant_grouped_matmul",
      .operands = "x, w, expert_idx",
      .results = "out",
      .traits = Trait::Linear | Trait::Faults,
      .help = "rows times the matrix each of them picks, of weights in few bits",
      .formula = "x [M, K], w a stack of E packed [N, K], expert_idx [M] or [M, k]: "
                 "out[i, j…] = x[i]·Ŵ[expert_idx[i, j…]]",
      .constraints = "c1 attr: there is such a scheme, and it is a block format\n"
                     "c2 dtype: x is floating and w is u8\n"
                     "c3 shape: x is [M, K] with a known K, or [M, n] when transposed\n"
                     "c4 shape: w is a whole number of matrices\n"
                     "c5 shape: expert_idx is [M] or [M, k], with x's M\n"
                     "c6 dtype: expert_idx are integers, or f32 or f64 holding integers\n"
                     "c7 attr: n is positive, and the depth is given when transposed",
      .no_gradient = "expert_idx"};
  static void fields(auto& self, auto&& f) {
    f("scheme", self.scheme, "block format of the weights: q4_k, …", Presence::Required);
    f("n", self.n, "columns of each matrix", Presence::Required);
    f("depth", self.depth, "rows of each matrix; absent: x's columns");
    f("transpose", self.transpose, "multiply by the transposes");
  }
  bool operator==(const DequantGroupedMatmul&) const = default;
};

/// A stack of matrices in a block format, written out.   out [E, k, n] = Ŵ
struct DequantMoeWeights {
  std::string scheme = {};
  std::int64_t k = 0;
  std::int64_t n = 0;

  static constexpr OpInfo info{
      .name = "dequant_moe_weights",
      .operands = "w",
      .results = "out",
      .traits = Trait::NoGradient,
      .help = "a stack of weights in few bits, as f32",
      .formula = "w a stack of E packed [n, k]: out[e, p, j] = Ŵ_e[p, j], f32 [E, k, n]",
      .constraints = "c1 attr: there is such a scheme, and it is a block format\n"
                     "c2 dtype: w is u8\n"
                     "c3 attr: k and n are positive, and blocks divide k\n"
                     "c4 shape: w is a whole number of matrices"};
  static void fields(auto& self, auto&& f) {
    f("scheme", self.scheme, "block format of the weights: q4_k, …", Presence::Required);
    f("k", self.k, "rows of each matrix", Presence::Required);
    f("n", self.n, "columns of each matrix", Presence::Required);
  }
  bool operator==(const DequantMoeWeights&) const = default;
};

}  // namespace ricci::op
