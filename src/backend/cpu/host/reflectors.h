// Products with an orthogonal matrix that is kept as reflectors, as LAPACK's reductions leave it:
// LAPACK's own routines for it use one thread and thin blocks.
#pragma once

#include <vector>

#include "backend/cpu/host/scratch.h"
#include "backend/cpu/structured/matmul.h"

namespace ricci::cpu {

/// z becomes Q z, both column by column, Q = H₀ H₁ … of a tridiagonal reduction's lower triangle:
/// H_j = 1 - τ_j v_j v_jᵀ, v_j is 0 up to row j, 1 in the next, and below the diagonal of a behind.
/// Reflectors are applied in blocks, H_j … H_{j+b-1} = 1 - V T Vᵀ.
template <class F>
class Reflectors {
 public:
  Reflectors(std::int64_t n, Scratch& scratch) : n_(n) {
    const std::int64_t last = (n_ - 2) / Block * Block;
    std::int64_t bytes = 0;
    for (std::int64_t first = last; first >= 0; first -= Block) {
      blocks_.emplace_back(n_, first);
      bytes = std::max(
          {bytes, blocks_.back().onto.scratch_bytes(), blocks_.back().back.scratch_bytes()});
    }
    v_ = scratch.take<F>(n_ * Block);
    y_ = scratch.take<F>(n_ * Block);
    w_ = scratch.take<F>(n_ * Block);
    t_ = scratch.take<F>(Block * Block);
    gram_ = scratch.take<F>(Block * Block);
    matmul_ = scratch.take<std::byte>(bytes);
  }

  /// What each thread keeps for itself.
  [[nodiscard]] std::int64_t thread_bytes() const { return thread_bytes_; }

  void apply(const F* a, const F* tau, F* z, ThreadPool& pool) const {
    for (const Step& s : blocks_) {
      gather(s, a);
      s.among.run(pool, v_, v_, gram_, matmul_);
      combine(s.count, tau + s.first);
      s.combined.run(pool, v_, t_, y_, matmul_);
      F* rows = z + s.first + 1;
      s.onto.run(pool, v_, rows, w_, matmul_);
      s.back.run(pool, y_, w_, rows, matmul_);
    }
  }

 private:
  static constexpr std::int64_t Block = 64;

  struct Step {
    std::int64_t first;  ///< of its reflectors
    std::int64_t count;
    std::int64_t rows;    ///< that they change: the last ones
    MatmulPlan among;     ///< gram = Vᵀ V
    MatmulPlan combined;  ///< y = V (-T)
    MatmulPlan onto;      ///< w = Vᵀ z
    MatmulPlan back;      ///< z += y w

    Step(std::int64_t n, std::int64_t f)
        : first(f),
          count(std::min(Block, n - 1 - f)),
          rows(n - 1 - f),
          among({.dtype = dtype_of<F>,
                 .m = count,
                 .n = count,
                 .k = rows,
                 .a = {.row = 1, .column = count},
                 .b = {.row = count, .column = 1},
                 .c = {.row = count, .column = 1}}),
          combined({.dtype = dtype_of<F>,
                    .m = rows,
                    .n = count,
                    .k = count,
                    .a = {.row = count, .column = 1},
                    .b = {.row = count, .column = 1},
                    .c = {.row = count, .column = 1}}),
          onto({.dtype = dtype_of<F>,
                .m = count,
                .n = n,
                .k = rows,
                .a = {.row = 1, .column = count},
                .b = {.row = 1, .column = n},
                .c = {.row = n, .column = 1}}),
          back({.dtype = dtype_of<F>,
                .m = rows,
                .n = n,
                .k = count,
                .a = {.row = count, .column = 1},
                .b = {.row = n, .column = 1},
                .c = {.row = 1, .column = n},
                .accumulate = true}) {}
  };

  // V, row by row.
  void gather(const Step& s, const F* a) const {
    for (std::int64_t c = 0; c < s.count; ++c) {
      const F* column = a + (s.first + c) * n_ + s.first + 1;
      for (std::int64_t r = 0; r < s.rows; ++r) {
        v_[r * s.count + c] = r < c ? F(0) : r == c ? F(1) : column[r];
      }
    }
  }

  // -T, with T upper triangular, column after column:
  //   T[i, i] = τ_i, T[:i, i] = -τ_i T[:i, :i] (Vᵀ v_i)[:i]
  void combine(std::int64_t n, const F* tau) const {
    std::fill(t_, t_ + n * n, F(0));
    for (std::int64_t i = 0; i < n; ++i) {
      t_[i * n + i] = -tau[i];
      for (std::int64_t p = 0; p < i; ++p) {
        F sum(0);
        for (std::int64_t q = p; q < i; ++q) sum += t_[p * n + q] * gram_[q * n + i];
        t_[p * n + i] = -tau[i] * sum;
      }
    }
  }

  std::int64_t n_;
  std::vector<Step> blocks_;
  std::int64_t thread_bytes_ = 0;
  F* v_ = nullptr;
  F* y_ = nullptr;
  F* w_ = nullptr;
  F* t_ = nullptr;
  F* gram_ = nullptr;
  std::byte* matmul_ = nullptr;
};

}  // namespace ricci::cpu
