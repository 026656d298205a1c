// Eigenvalues and vectors of a symmetric tridiagonal matrix by divide and conquer: LAPACK's way and
// its parts, but the equations for the eigenvalues and the vectors they give are left to the pool.
// LAPACK's own driver takes one after the other, and they are most of its work.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "backend/cpu/host/lapack.h"
#include "backend/cpu/host/parallel.h"
#include "backend/cpu/structured/matmul.h"
#include "support/align.h"

namespace ricci::cpu {

template <class F>
class TridiagonalVectors {
 public:
  static std::int64_t work_size(std::int64_t n) { return 2 * n * n + 4 * n; }
  static std::int64_t integers_size(std::int64_t n) { return 5 * n; }

  TridiagonalVectors(std::int64_t n, F* work, blasint* integers, ThreadPool& pool)
      : n_(static_cast<blasint>(n)),
        pool_(pool),
        z_(work),
        poles_(work + n),
        weights_(work + 2 * n),
        signs_(work + 3 * n),
        q2_(work + 4 * n),
        s_(work + 4 * n + n * n),
        order_(integers),
        indx_(integers + n),
        grouped_(integers + 2 * n),
        deflated_(integers + 3 * n),
        kinds_(integers + 4 * n) {}

  /// The diagonal d becomes the eigenvalues, in order, and q, column by column, the vectors; what
  /// is off the diagonal is lost. The library's lock is held. False where it does not converge.
  bool run(F* d, F* e, F* q) {
    if (falls_apart(d, e)) return by_library(d, e, q);
    F norm = 0;
    for (blasint i = 0; i < n_; ++i) norm = std::max(norm, std::abs(d[i]));
    for (blasint i = 0; i + 1 < n_; ++i) norm = std::max(norm, std::abs(e[i]));
    for (blasint i = 0; i < n_; ++i) d[i] /= norm;
    for (blasint i = 0; i + 1 < n_; ++i) e[i] /= norm;
    std::vector<blasint> sizes = parts();
    std::fill(q, q + std::int64_t{n_} * n_, F(0));
    if (!solve_parts(sizes, d, e, q)) return false;
    while (sizes.size() > 1) {
      std::vector<blasint> joined;
      blasint start = 0;
      for (std::size_t i = 0; i < sizes.size(); i += 2) {
        const blasint size = sizes[i] + sizes[i + 1];
        const std::int64_t corner = std::int64_t{start} * n_ + start;
        if (!merge(size, sizes[i], d + start, q + corner, order_ + start,
                   e[start + sizes[i] - 1])) {
          return false;
        }
        joined.push_back(size);
        start += size;
      }
      sizes = std::move(joined);
    }
    sort(d, q);
    for (blasint i = 0; i < n_; ++i) d[i] *= norm;
    return true;
  }

 private:
  static constexpr blasint SmallPart = 32;

  // Is an element off the diagonal as good as zero? Then there are several matrices.
  [[nodiscard]] bool falls_apart(const F* d, const F* e) const {
    constexpr F Tiny = std::numeric_limits<F>::epsilon() / 2;
    for (blasint i = 0; i + 1 < n_; ++i) {
      if (std::abs(e[i]) <= Tiny * std::sqrt(std::abs(d[i])) * std::sqrt(std::abs(d[i + 1]))) {
        return true;
      }
    }
    return false;
  }

  bool by_library(F* d, F* e, F* q) {
    const auto work = static_cast<blasint>(work_size(n_));
    std::vector<blasint> integers(static_cast<std::size_t>(3 + 5 * n_));
    const auto count = static_cast<blasint>(integers.size());
    blasint info = 0;
    RICCI_BY_NUMBER(F, stedc)
    ("I", &n_, d, e, q, &n_, z_, &work, integers.data(), &count, &info);
    return info == 0;
  }

  [[nodiscard]] std::vector<blasint> parts() const {
    std::vector<blasint> sizes{n_};
    while (*std::ranges::max_element(sizes) > SmallPart) {
      std::vector<blasint> halves;
      for (const blasint size : sizes) {
        halves.push_back(size / 2);
        halves.push_back(size - size / 2);
      }
      sizes = std::move(halves);
    }
    return sizes;
  }

  // Cut apart, the parts lose what stands off the diagonal between them.
  bool solve_parts(const std::vector<blasint>& sizes, F* d, F* e, F* q) {
    blasint start = 0;
    for (const blasint size : sizes) {
      start += size;
      if (start == n_) break;
      d[start - 1] -= std::abs(e[start - 1]);
      d[start] -= std::abs(e[start - 1]);
    }
    std::vector<blasint> starts;
    start = 0;
    for (const blasint size : sizes) {
      starts.push_back(start);
      start += size;
    }
    std::atomic<bool> found = true;
    // The one routine that runs on several threads at a time: it only rotates and exchanges
    // columns, for which the library keeps no buffers.
    parallel_for(pool_, std::ssize(sizes), 1, [&](std::int64_t part, std::int64_t) {
      const blasint size = sizes[static_cast<std::size_t>(part)];
      const std::int64_t at = starts[static_cast<std::size_t>(part)];
      blasint info = 0;
      F* work = q2_ + 2 * at;
      RICCI_BY_NUMBER(F, steqr)
      ("I", &size, d + at, e + at, q + at * n_ + at, &n_, work, &info);
      if (info != 0) found = false;
      for (blasint i = 0; i < size; ++i) order_[at + i] = i + 1;
    });
    return found;
  }

  // Two parts, the first of n1, and the element between them become one of n.
  bool merge(blasint n, blasint n1, F* d, F* q, blasint* order, F between) {
    for (blasint i = 0; i < n; ++i) z_[i] = q[std::int64_t{i} * n_ + (i < n1 ? n1 - 1 : n1)];
    blasint k = 0;
    blasint info = 0;
    RICCI_BY_NUMBER(F, laed2)
    (&k, &n, &n1, d, q, &n_, order, &between, z_, poles_, weights_, q2_, indx_, grouped_, deflated_,
     kinds_, &info);
    if (info != 0) return false;
    if (k == 0) {
      for (blasint i = 0; i < n; ++i) order[i] = i + 1;
      return true;
    }
    if (!solve(k, between, d, q)) return false;
    form_vectors(k, q);
    multiply(n, n1, k, q);
    const blasint rest = n - k;
    const blasint up = 1;
    const blasint down = -1;
    RICCI_BY_NUMBER(F, lamrg)(&k, &rest, d, &up, &down, order);
    return true;
  }

  // Eigenvalues into d; how far each is from every pole into the columns of q.
  bool solve(blasint k, F rho, F* d, F* q) {
    std::atomic<bool> found = true;
    parallel_for(pool_, k, grain_for(64 * k), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t j = begin; j < end; ++j) {
        const auto index = static_cast<blasint>(j + 1);
        blasint info = 0;
        RICCI_BY_NUMBER(F, laed4)
        (&k, &index, poles_, weights_, q + j * n_, &rho, d + j, &info);
        if (info != 0) found = false;
      }
    });
    return found;
  }

  // The vectors of the matrix that has exactly these eigenvalues: they are orthogonal however these
  // were rounded.
  void form_vectors(blasint k, F* q) {
    if (k == 1) return;
    if (k == 2) {
      for (std::int64_t j = 0; j < 2; ++j) {
        const F both[2] = {q[j * n_], q[j * n_ + 1]};
        for (std::int64_t i = 0; i < 2; ++i) q[j * n_ + i] = both[grouped_[i] - 1];
      }
      return;
    }
    std::copy(weights_, weights_ + k, signs_);
    parallel_for(pool_, k, grain_for(8 * k), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) weights_[i] = q[i * n_ + i];
      for (std::int64_t j = 0; j < k; ++j) {
        const F* distance = q + j * n_;
        const F pole = poles_[j];
        const auto times = [&](std::int64_t from, std::int64_t to) {
          for (std::int64_t i = from; i < to; ++i) weights_[i] *= distance[i] / (poles_[i] - pole);
        };
        times(begin, std::clamp(j, begin, end));
        times(std::clamp(j + 1, begin, end), end);
      }
      for (std::int64_t i = begin; i < end; ++i) {
        weights_[i] = std::copysign(std::sqrt(-weights_[i]), signs_[i]);
      }
    });
    parallel_for(pool_, k, grain_for(8 * k), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t j = begin; j < end; ++j) {
        F* column = q + j * n_;
        F* vector = s_ + j * k;
        double squares = 0;
        for (std::int64_t i = 0; i < k; ++i) {
          vector[i] = weights_[i] / column[i];
          squares += double(vector[i]) * double(vector[i]);
        }
        const F length = static_cast<F>(std::sqrt(squares));
        for (std::int64_t i = 0; i < k; ++i) column[i] = vector[grouped_[i] - 1] / length;
      }
    });
  }

  // The parts' vectors times these. Those of the first part come first, then those of both, then
  // those of the second.
  void multiply(blasint n, blasint n1, blasint k, F* q) {
    const blasint n2 = n - n1;
    const blasint n12 = kinds_[0] + kinds_[1];
    const blasint n23 = kinds_[1] + kinds_[2];
    const auto part = [&](blasint rows, blasint inner, const F* left, const F* right, F* to) {
      parallel_for(pool_, k, grain_for(inner + rows), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t j = begin; j < end; ++j) {
          std::copy(right + j * n_, right + j * n_ + inner, s_ + j * inner);
          if (inner == 0) std::fill_n(to + j * n_, rows, F(0));
        }
      });
      if (inner == 0 || rows == 0) return;
      const MatmulPlan plan({.dtype = dtype_of<F>,
                             .m = rows,
                             .n = k,
                             .k = inner,
                             .a = {.row = 1, .column = rows},
                             .b = {.row = 1, .column = inner},
                             .c = {.row = 1, .column = n_}});
      const auto lines = static_cast<std::size_t>(plan.scratch_bytes() / CacheLine + 1);
      if (room_.size() < lines) room_.resize(lines);
      plan.run(pool_, left, s_, to, room_.data());
    };
    part(n2, n23, q2_ + std::int64_t{n1} * n12, q + kinds_[0], q + n1);
    part(n1, n12, q2_, q, q);
  }

  void sort(F* d, F* q) {
    // They are in order but for roots of neighbouring intervals that are rounded past each other.
    for (blasint i = 1; i < n_; ++i) {
      for (blasint k = i; k > 0 && d[order_[k] - 1] < d[order_[k - 1] - 1]; --k) {
        std::swap(order_[k], order_[k - 1]);
      }
    }
    for (blasint i = 0; i < n_; ++i) {
      const std::int64_t from = order_[i] - 1;
      z_[i] = d[from];
      std::copy(q + from * n_, q + (from + 1) * n_, q2_ + std::int64_t{i} * n_);
    }
    std::copy(z_, z_ + n_, d);
    std::copy(q2_, q2_ + std::int64_t{n_} * n_, q);
  }

  blasint n_;
  ThreadPool& pool_;
  F* z_;
  F* poles_;
  F* weights_;
  F* signs_;
  F* q2_;
  F* s_;
  blasint* order_;  ///< of the eigenvalues of each part
  blasint* indx_;
  blasint* grouped_;
  blasint* deflated_;
  blasint* kinds_;
  struct alignas(CacheLine) Line {
    std::byte bytes[CacheLine];
  };
  std::vector<Line> room_;  ///< for products
};

}  // namespace ricci::cpu
