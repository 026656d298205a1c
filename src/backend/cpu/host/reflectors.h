// Products with an orthogonal matrix that is kept as reflectors, as LAPACK's reductions leave it:
// LAPACK's own routines for it use one thread and thin blocks.
#pragma once

#include <vector>

#include "backend/cpu/host/scratch.h"
#include "backend/cpu/structured/matmul.h"

namespace ricci::cpu {

/// Where reflectors are kept and what they change. H_j = 1 - τ_j v_j v_jᵀ; v_j is 0 up to row
/// j + shift, where it is 1; number r of it behind that is at j·step + r·stride.
struct ReflectorShape {
  std::int64_t rows = 0;   ///< of z, and numbers of a v
  std::int64_t count = 0;  ///< reflectors, of which the last changes a row at least
  std::int64_t shift = 0;
  std::int64_t step = 0;
  std::int64_t stride = 1;
  std::int64_t columns = 0;  ///< of z
  std::int64_t z_row = 1;    ///< from one row of z to the next, and from column to column
  std::int64_t z_column = 0;
};

/// z becomes Q z, Q = H₀ H₁ …. Reflectors are applied in blocks, H_j … H_{j+b-1} = 1 - V T Vᵀ.
template <class F>
class Reflectors {
 public:
  Reflectors(const ReflectorShape& shape, Scratch& scratch) : shape_(shape) {
    const std::int64_t last = (shape.count - 1) / Block * Block;
    std::int64_t bytes = 0;
    for (std::int64_t first = last; first >= 0 && shape.count > 0; first -= Block) {
      const Step& s = blocks_.emplace_back(shape, first);
      for (const MatmulPlan* plan : {&s.among, &s.combined, &s.onto, &s.back}) {
        bytes = std::max(bytes, plan->scratch_bytes());
        thread_bytes_ = std::max(thread_bytes_, plan->thread_bytes());
      }
    }
    v_ = scratch.take<F>(shape.rows * Block);
    y_ = scratch.take<F>(shape.rows * Block);
    w_ = scratch.take<F>(shape.columns * Block);
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
      F* rows = z + (s.first + shape_.shift) * shape_.z_row;
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

    Step(const ReflectorShape& q, std::int64_t f)
        : first(f),
          count(std::min(Block, q.count - f)),
          rows(q.rows - q.shift - f),
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
                    .b = {.row = 1, .column = count},
                    .c = {.row = count, .column = 1}}),
          onto({.dtype = dtype_of<F>,
                .m = count,
                .n = q.columns,
                .k = rows,
                .a = {.row = 1, .column = count},
                .b = {.row = q.z_row, .column = q.z_column},
                .c = {.row = q.columns, .column = 1}}),
          back({.dtype = dtype_of<F>,
                .m = rows,
                .n = q.columns,
                .k = count,
                .a = {.row = count, .column = 1},
                .b = {.row = q.columns, .column = 1},
                .c = {.row = q.z_row, .column = q.z_column},
                .accumulate = true}) {}
  };

  // V, row by row.
  void gather(const Step& s, const F* a) const {
    for (std::int64_t c = 0; c < s.count; ++c) {
      const F* from = a + (s.first + c) * shape_.step + (s.first + shape_.shift) * shape_.stride;
      for (std::int64_t r = 0; r < s.rows; ++r) {
        v_[r * s.count + c] = r < c ? F(0) : r == c ? F(1) : from[r * shape_.stride];
      }
    }
  }

  // -T, with T upper triangular, column after column:
  //   T[i, i] = τ_i, T[:i, i] = -τ_i T[:i, :i] (Vᵀ v_i)[:i]
  // Columns lie one behind the other, so that each is added to the next in vectors.
  void combine(std::int64_t n, const F* tau) const {
    std::fill(t_, t_ + n * n, F(0));
    for (std::int64_t i = 0; i < n; ++i) {
      F* column = t_ + i * n;
      for (std::int64_t q = 0; q < i; ++q) {
        const F* before = t_ + q * n;
        const F factor = -tau[i] * gram_[q * n + i];
        for (std::int64_t p = 0; p <= q; ++p) column[p] += before[p] * factor;
      }
      column[i] = -tau[i];
    }
  }

  ReflectorShape shape_;
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
