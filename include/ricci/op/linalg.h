// Matrix products and linear systems.
#pragma once

#include <string_view>

#include "ricci/op/fields.h"

namespace ricci::op {

/// Matrix product; leading axes are batches and broadcast.
///   a [.., M, K], b [.., K, N]:  out[β, m, n] = Σ_k a[β, m, k] · b[β, k, n]
struct Matmul {
  static constexpr OpInfo info{.name = "matmul",
                               .operands = "a, b",
                               .results = "out",
                               .traits = Trait::Multilinear,
                               .help = "batched matrix product",
                               .formula = "a [.., M, K], b [.., K, N]: "
                                          "out[β, m, n] = Σ_k a[β, m, k] · b[β, k, n]",
                               .constraints = "c1 shape: a and b have rank 2 or more\n"
                                              "c2 shape: a's last size equals b's last but one\n"
                                              "c3 shape: the leading axes broadcast together\n"
                                              "c4 dtype: a and b have one dtype, not bool"};
  static void fields(auto&, auto&&) {}
  bool operator==(const Matmul&) const = default;
};

/// Sums over paired axes of two operands; paired batch axes are matched element by element.
///   out [batch (in lhs_batch's order), lhs free (ascending), rhs free (ascending)]
struct DotGeneral {
  Axes lhs_contracting = {};
  Axes rhs_contracting = {};
  Axes lhs_batch = {};
  Axes rhs_batch = {};

  static constexpr OpInfo info{
      .name = "dot_general",
      .operands = "lhs, rhs",
      .results = "out",
      .traits = Trait::Multilinear,
      .help = "a product summed over any axes, batched over any others",
      .formula = "out[β, i, j] = Σ_κ lhs[β, i, κ] · rhs[β, κ, j]; β the batch axes in lhs_batch's "
                 "order, i and j the free axes of lhs and rhs, ascending, κ the contracting axes",
      .constraints = "c1 attr: contracting axes come in pairs, and so do batch axes\n"
                     "c2 attr: no axis of an operand is listed twice\n"
                     "c3 shape: paired axes have equal sizes\n"
                     "c4 dtype: lhs and rhs have one dtype, not bool"};
  static void fields(auto& self, auto&& f) {
    f("lhs_contracting", self.lhs_contracting, "axes of lhs that are summed over");
    f("rhs_contracting", self.rhs_contracting, "axes of rhs they are paired with");
    f("lhs_batch", self.lhs_batch, "axes of lhs that are matched with axes of rhs");
    f("rhs_batch", self.rhs_batch, "axes of rhs they are matched with");
  }
  static std::size_t axis_rank(const DotGeneral&, auto&& operands, std::string_view field) {
    return operands[field.starts_with("rhs") ? 1 : 0].rank();
  }
  bool operator==(const DotGeneral&) const = default;
};

/// Solves one linear system by LU with partial pivoting.   A x = b
/// An exact zero pivot is a fault of the run: singular_matrix.
struct DenseSolve {
  static constexpr OpInfo info{.name = "dense_solve",
                               .operands = "a, b",
                               .results = "x",
                               .traits = Trait::Faults,
                               .help = "the solution of a linear system",
                               .formula = "a [N, N], b [N] or [N, K]: a x = b",
                               .constraints =
                                   "c1 shape: a is a square matrix\n"
                                   "c2 shape: b is [N] or [N, K], with a's N\n"
                                   "c3 dtype: a and b have one floating or complex dtype"};
  static void fields(auto&, auto&&) {}
  bool operator==(const DenseSolve&) const = default;
};

/// Solves many linear systems, each for itself.   A[β] x[β] = b[β]
struct BatchedDenseSolve {
  static constexpr OpInfo info{.name = "batched_dense_solve",
                               .operands = "a, b",
                               .results = "x",
                               .traits = Trait::Faults,
                               .help = "the solutions of a batch of linear systems",
                               .formula = "a [B, N, N], b [B, N] or [B, N, K]: a[β] x[β] = b[β]",
                               .constraints =
                                   "c1 shape: a is a batch of square matrices\n"
                                   "c2 shape: b is [B, N] or [B, N, K], with a's B and N\n"
                                   "c3 dtype: a and b have one floating or complex dtype"};
  static void fields(auto&, auto&&) {}
  bool operator==(const BatchedDenseSolve&) const = default;
};

/// Solves triangular systems by substitution; the other triangle of A is not read, nor is the
/// diagonal when it is known to be 1.   op(A)[β] x[β] = b[β], op(A) = A or Aᵀ (not conjugated)
/// A zero on the diagonal is a fault of the run: singular_matrix.
struct TriangularSolve {
  bool lower = true;
  bool transpose = false;
  bool unit = false;

  static constexpr OpInfo info{.name = "triangular_solve",
                               .operands = "a, b",
                               .results = "x",
                               .traits = Trait::Faults,
                               .help = "the solutions of triangular systems",
                               .formula = "a [.., N, N], b [.., N, K]: op(tri(a[β])) x[β] = b[β]",
                               .constraints =
                                   "c1 shape: a is one square matrix or a batch of them\n"
                                   "c2 shape: b is [.., N, K], with a's leading sizes and N\n"
                                   "c3 dtype: a and b have one floating or complex dtype"};
  static void fields(auto& self, auto&& f) {
    f("lower", self.lower, "read the lower triangle of a, not the upper");
    f("transpose", self.transpose, "solve with the transpose of that triangle");
    f("unit", self.unit, "take the diagonal as 1 without reading it");
  }
  bool operator==(const TriangularSolve&) const = default;
};

/// Rows times the matrix each of them picks: the experts of a mixture. A row that picks several has
/// as many results, and is not repeated for that.
///   x [M, K], w [E, K, N], expert_idx [M]:     out[i] = x[i] · w[expert_idx[i]]
///                          expert_idx [M, k]:  out[i, j] = x[i] · w[expert_idx[i, j]]
/// An expert outside [0, E) is a fault of the run: index_out_of_range.
struct GroupedMatmul {
  static constexpr OpInfo info{
      .name = "grouped_matmul",
      .operands = "x, w, expert_idx",
      .results = "out",
      .traits = Trait::Multilinear | Trait::Faults,
      .help = "rows times the matrix each of them picks",
      .formula = "x [M, K], w [E, K, N], expert_idx [M] or [M, k]: "
                 "out[i, j…] = x[i] · w[expert_idx[i, j…]]",
      .constraints = "c1 shape: x is [M, K] and w is [E, K, N]\n"
                     "c2 shape: expert_idx is [M] or [M, k], with x's M\n"
                     "c3 dtype: x and w have one dtype, not bool\n"
                     "c4 dtype: expert_idx are integers, or f32 or f64 holding integers",
      .no_gradient = "expert_idx"};
  static void fields(auto&, auto&&) {}
  bool operator==(const GroupedMatmul&) const = default;
};

/// The transposes of grouped_matmul in both of its factors (not conjugated). An expert that no row
/// picks has a gradient of exactly 0.
///   dx[i] = Σ_j dy[i, j] · w[expert_idx[i, j]]ᵀ;  dw[e] = Σ_{i, j: expert_idx[i, j] = e} x[i]ᵀ ·
///   dy[i, j]
struct GroupedMatmulBackward {
  static constexpr OpInfo info{
      .name = "grouped_matmul_backward",
      .operands = "x, w, expert_idx, dy",
      .results = "dx, dw",
      .traits = Trait::Faults | Trait::Conjugates,
      .help = "derivative of grouped_matmul",
      .formula = "dx[i] = Σ_j dy[i, j] · w[expert_idx[i, j]]ᵀ; "
                 "dw[e] = Σ_{i, j: expert_idx[i, j] = e} x[i]ᵀ · dy[i, j]",
      .constraints = "c1 shape: x is [M, K] and w is [E, K, N]\n"
                     "c2 shape: expert_idx is [M] or [M, k], with x's M\n"
                     "c3 dtype: x, w and dy have one dtype, not bool\n"
                     "c4 dtype: expert_idx are integers, or f32 or f64 holding integers\n"
                     "c5 shape: dy has the axes of expert_idx and w's N",
      .no_gradient = "expert_idx"};
  static void fields(auto&, auto&&) {}
  bool operator==(const GroupedMatmulBackward&) const = default;
};

/// A matrix product with a low-rank correction of its weight.   y = x·w + scale · (x·a)·b
struct LoraMatmul {
  Real scale = 1.0;

  static constexpr OpInfo info{
      .name = "lora_matmul",
      .operands = "x, w, a, b",
      .results = "y",
      .help = "a matrix product with a low-rank correction of its weight",
      .formula = "x [.., k], w [k, n], a [k, r], b [r, n]: y = x·w + scale · (x·a)·b",
      .constraints = "c1 shape: x has rank 1 or more; w, a and b are matrices\n"
                     "c2 shape: w is [k, n], a is [k, r] and b is [r, n], with x's last size k\n"
                     "c3 dtype: all operands have one floating or complex dtype",
      .numerics = Numerics::Compute};
  static void fields(auto& self, auto&& f) {
    f("scale", self.scale, "factor of the correction: alpha / rank", Presence::Required,
      Range::Factor);
  }
  bool operator==(const LoraMatmul&) const = default;
};

}  // namespace ricci::op
