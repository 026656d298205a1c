// Eigenvalues and singular values by LAPACK's divide and conquer, one matrix at a time.
#include <optional>

#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/matrices.h"
#include "backend/cpu/host/reflectors.h"
#include "backend/cpu/host/tridiagonal.h"

namespace ricci::cpu {
namespace {

template <class F>
RealPart<F> largest_magnitude(const F* v, std::int64_t count, std::int64_t stride) {
  constexpr std::int64_t Lanes = 16;  // side by side: one maximum after the other would wait
  RealPart<F> most[Lanes] = {};
  std::int64_t i = 0;
  for (; i + Lanes <= count; i += Lanes) {
    for (std::int64_t j = 0; j < Lanes; ++j) {
      const RealPart<F> size = std::abs(v[(i + j) * stride]);
      most[j] = size > most[j] ? size : most[j];
    }
  }
  for (; i < count; ++i) most[0] = std::max(most[0], std::abs(v[i * stride]));
  return *std::max_element(most, most + Lanes);
}

// The component of a vector that is to be real and positive: the first of more than 3/4 of the
// largest magnitude.
template <class F>
F phase_of(const F* v, std::int64_t count, std::int64_t stride) {
  const RealPart<F> largest = largest_magnitude(v, count, stride);
  for (std::int64_t i = 0; i < count; ++i) {
    const RealPart<F> size = std::abs(v[i * stride]);
    if (size > RealPart<F>(0.75) * largest) return v[i * stride] / size;
  }
  return F(1);
}

// The library sees the transpose of a row-major Hermitian matrix, which is its conjugate: so are
// the eigenvectors, and they lie one after the other.
template <class F>
class EighKernel {
 public:
  using R = RealPart<F>;
  static constexpr bool Complex = is_complex_number<F>;

  EighKernel(const HostArguments& call, Scratch& scratch)
      : m_(call),
        n_(m_.rows()),
        work_size_(Complex ? 2 * n_ + n_ * n_ : 1 + 6 * n_ + 2 * n_ * n_),
        real_size_(Complex ? 1 + 5 * n_ + 2 * n_ * n_ : 0),
        integers_size_(3 + 5 * n_),
        a_(scratch.take<F>(m_.tiles() * n_ * n_)),
        v_(scratch.take<F>(m_.tiles() * n_ * n_)),
        w_(scratch.take<R>(m_.tiles() * n_)),
        work_(scratch.take<F>(work_size_)),
        real_work_(scratch.take<R>(real_size_)),
        integers_(scratch.take<blasint>(integers_size_)) {
    if constexpr (!Complex) {
      if (!is_large()) return;
      reflectors_.emplace(
          ReflectorShape{
              .rows = n_, .count = n_ - 1, .shift = 1, .step = n_, .columns = n_, .z_column = n_},
          scratch);
    }
  }

  [[nodiscard]] std::int64_t thread_bytes() const {
    return reflectors_ ? reflectors_->thread_bytes() : 0;
  }

  void run() const {
    if (n_ == 0 || m_.factored_in_lanes()) return;
    if (is_large() && !Complex) {  // the pool works on one matrix at a time
      for (std::int64_t b = 0; b < m_.count(); ++b) run_one(b, 0);
      return;
    }
    m_.for_each([&](std::int64_t b, std::int64_t tile) { run_one(b, tile); });
  }

 private:
  [[nodiscard]] bool is_large() const { return n_ > 2 * SmallMatrix; }

  void run_one(std::int64_t b, std::int64_t tile) const {
    F* a = a_ + tile * n_ * n_;
    F* v = v_ + tile * n_ * n_;
    R* w = w_ + tile * n_;
    if (!m_.read(b, a) || !decompose(a, w, v)) {
      m_.write_nan(0, b, n_);
      m_.write_nan(1, b, n_ * n_);
      return;
    }
    m_.write(0, b, n_, w);
    if (!m_.wants(1)) return;
    parallel_for(m_.pool(), n_, 32, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = begin; k < end; ++k) turn(a + k * n_);
      transpose_rows(a, n_, n_, begin, end, v);
    });
    m_.write(1, b, n_ * n_, v);
  }

  // Leaves the vectors in a, one after the other; where they are in `room`, the two change places.
  bool decompose(F*& a, R* w, F*& room) const {
    take_hermitian_part(a, n_);
    if constexpr (!Complex) {
      if (is_large() && m_.wants(1)) {
        if (!decompose_large(a, w, room)) return false;
        std::swap(a, room);
        return true;
      }
    }
    const blasint n = m_.counted(n_);
    const blasint work = m_.counted(work_size_);
    const blasint integers = m_.counted(integers_size_);
    const char* job = m_.wants(1) ? "V" : "N";
    blasint info = 0;
    const auto lock = alone();
    if constexpr (Complex) {
      const blasint reals = m_.counted(real_size_);
      RICCI_BY_NUMBER(F, heevd)
      (job, "L", &n, a, &n, w, work_, &work, real_work_, &reals, integers_, &integers, &info);
    } else {
      RICCI_BY_NUMBER(F, syevd)
      (job, "L", &n, a, &n, w, work_, &work, integers_, &integers, &info);
    }
    return info == 0;
  }

  // The same in its parts: to a tridiagonal matrix, its vectors, and those turned back by the pool.
  bool decompose_large(F* a, F* w, F* z) const {
    const blasint n = m_.counted(n_);
    const blasint work = m_.counted(work_size_ - 2 * n_);
    F* off_diagonal = work_;
    F* tau = work_ + n_;
    F* rest = work_ + 2 * n_;
    blasint info = 0;
    {
      const auto lock = alone();
      RICCI_BY_NUMBER(F, sytrd)("L", &n, a, &n, w, off_diagonal, tau, rest, &work, &info);
      if (info != 0) return false;
      TridiagonalVectors<F> tridiagonal(n_, rest, integers_, m_.pool());
      if (!tridiagonal.run(w, off_diagonal, z)) return false;
    }
    reflectors_->apply(a, tau, z, m_.pool());
    return true;
  }

  // The conjugate of a vector, turned.
  void turn(F* v) const {
    const F by = phase_of(v, n_, 1);
    if constexpr (Complex) {
      for (std::int64_t i = 0; i < n_; ++i) v[i] = std::conj(v[i]) * by;
    } else if (by < 0) {
      for (std::int64_t i = 0; i < n_; ++i) v[i] = -v[i];
    }
  }

  MatrixCall<F> m_;
  std::int64_t n_;
  std::int64_t work_size_;
  std::int64_t real_size_;
  std::int64_t integers_size_;
  F* a_;
  F* v_;
  R* w_;
  F* work_;
  R* real_work_;
  blasint* integers_;
  std::optional<Reflectors<R>> reflectors_ = {};
};

// The library sees aᵀ = vhᵀ diag(s) uᵀ: its left vectors lie as the rows of vh, its right ones as
// u.
template <class F>
class SvdKernel {
 public:
  using R = RealPart<F>;
  static constexpr bool Complex = is_complex_number<F>;

  SvdKernel(const HostArguments& call, Scratch& scratch)
      : m_(call),
        k_(m_.smaller()),
        work_size_((Complex ? 3 : 5) * k_ * k_ + 80 * (m_.rows() + m_.columns()) + 64),
        a_(scratch.take<F>(m_.tiles() * m_.size())),
        u_(scratch.take<F>(m_.tiles() * m_.rows() * k_)),
        vh_(scratch.take<F>(m_.tiles() * k_ * m_.columns())),
        s_(scratch.take<R>(m_.tiles() * k_)),
        work_(scratch.take<F>(work_size_)),
        real_work_(scratch.take<R>(Complex ? real_size() : 0)),
        integers_(scratch.take<blasint>(8 * k_)) {
    if constexpr (!Complex) {
      if (is_large()) plan_reflectors(scratch);
    }
  }

  [[nodiscard]] std::int64_t thread_bytes() const {
    std::int64_t bytes = 0;
    for (const auto* part : {&left_, &right_, &outer_}) {
      if (*part) bytes = std::max(bytes, (*part)->thread_bytes());
    }
    return bytes;
  }

  void run() const {
    if (k_ == 0) return;
    if (left_ && has_vectors()) {  // the pool works on one matrix at a time
      for (std::int64_t b = 0; b < m_.count(); ++b) run_one(b, 0);
      return;
    }
    m_.for_each([&](std::int64_t b, std::int64_t tile) { run_one(b, tile); });
  }

 private:
  [[nodiscard]] bool has_vectors() const { return m_.wants(0) || m_.wants(2); }
  [[nodiscard]] std::int64_t longer() const { return std::max(m_.rows(), m_.columns()); }
  // Whoever asks for room does not know yet which results are wanted.
  [[nodiscard]] bool is_large() const { return k_ > SmallMatrix; }
  // Long thin matrices become triangles first.
  [[nodiscard]] bool is_thin() const { return longer() >= 2 * k_; }
  [[nodiscard]] std::int64_t real_size() const {
    return std::max(5 * k_ * k_ + 7 * k_, 2 * longer() * k_ + 2 * k_ * k_ + k_);
  }

  // The reduction leaves an upper bidiagonal matrix of one that has no more columns than rows, as
  // the library sees it, and a lower one of others.
  void plan_reflectors(Scratch& scratch) {
    const std::int64_t rows = m_.columns();
    const std::int64_t columns = m_.rows();
    const std::int64_t own_rows = is_thin() ? k_ : rows;
    const std::int64_t own_columns = is_thin() ? k_ : columns;
    const std::int64_t lower = own_rows < own_columns ? 1 : 0;
    left_.emplace(ReflectorShape{.rows = own_rows,
                                 .count = k_ - lower,
                                 .shift = lower,
                                 .step = own_rows,
                                 .columns = k_,
                                 .z_column = rows},
                  scratch);
    right_.emplace(ReflectorShape{.rows = own_columns,
                                  .count = k_ - 1 + lower,
                                  .shift = 1 - lower,
                                  .step = 1,
                                  .stride = own_rows,
                                  .columns = k_,
                                  .z_row = k_,
                                  .z_column = 1},
                   scratch);
    if (!is_thin()) return;
    triangle_ = scratch.take<F>(k_ * k_);
    const bool high = rows > columns;
    outer_.emplace(ReflectorShape{.rows = longer(),
                                  .count = k_,
                                  .step = high ? rows : 1,
                                  .stride = high ? 1 : rows,
                                  .columns = k_,
                                  .z_row = high ? 1 : k_,
                                  .z_column = high ? rows : 1},
                   scratch);
  }

  void run_one(std::int64_t b, std::int64_t tile) const {
    F* a = a_ + tile * m_.size();
    F* u = u_ + tile * m_.rows() * k_;
    F* vh = vh_ + tile * k_ * m_.columns();
    R* s = s_ + tile * k_;
    if (!m_.read(b, a) || !decompose(a, u, s, vh)) {
      m_.write_nan(0, b, m_.rows() * k_);
      m_.write_nan(1, b, k_);
      m_.write_nan(2, b, k_ * m_.columns());
      return;
    }
    m_.write(1, b, k_, s);
    if (!has_vectors()) return;
    turn(u, vh);
    m_.write(0, b, m_.rows() * k_, u);
    m_.write(2, b, k_ * m_.columns(), vh);
  }

  bool decompose(F* a, F* u, R* s, F* vh) const {
    if constexpr (!Complex) {
      if (left_ && has_vectors()) return decompose_large(a, u, s, vh);
    }
    const blasint rows = m_.counted(m_.columns());
    const blasint columns = m_.counted(m_.rows());
    const blasint kept = m_.counted(k_);
    const blasint work = m_.counted(work_size_);
    const char* job = has_vectors() ? "S" : "N";
    blasint info = 0;
    const auto lock = alone();
    if constexpr (Complex) {
      RICCI_BY_NUMBER(F, gesdd)
      (job, &rows, &columns, a, &rows, s, vh, &rows, u, &kept, work_, &work, real_work_, integers_,
       &info);
    } else {
      RICCI_BY_NUMBER(F, gesdd)
      (job, &rows, &columns, a, &rows, s, vh, &rows, u, &kept, work_, &work, integers_, &info);
    }
    return info == 0;
  }

  // The same in its parts: to a bidiagonal matrix, its vectors, and those turned back by the pool.
  bool decompose_large(F* a, F* u, F* s, F* vh) const {
    const blasint rows = m_.counted(m_.columns());
    const blasint columns = m_.counted(m_.rows());
    const blasint kept = m_.counted(k_);
    F* off_diagonal = work_;
    F* left_tau = off_diagonal + k_;
    F* right_tau = left_tau + k_;
    F* outer_tau = right_tau + k_;
    F* rest = outer_tau + k_;
    const blasint work = m_.counted(work_size_ - 4 * k_);
    for (std::int64_t k = 0; k < k_; ++k) {
      std::fill_n(vh + k * m_.columns() + k_, m_.columns() - k_, F(0));
    }
    std::fill_n(u + k_ * k_, (m_.rows() - k_) * k_, F(0));
    const bool thin = is_thin();
    const blasint own_rows = thin ? kept : rows;
    const blasint own_columns = thin ? kept : columns;
    blasint info = 0;
    {
      const auto lock = alone();
      if (thin && !make_triangle(a, outer_tau, rest, work)) return false;
      F* own = thin ? triangle_ : a;
      RICCI_BY_NUMBER(F, gebrd)
      (&own_rows, &own_columns, own, &own_rows, s, off_diagonal, left_tau, right_tau, rest, &work,
       &info);
      if (info != 0) return false;
      const char* side = own_rows < own_columns ? "L" : "U";
      F* none = nullptr;
      blasint* no_integers = nullptr;
      RICCI_BY_NUMBER(F, bdsdc)
      (side, "I", &kept, s, off_diagonal, vh, &rows, u, &kept, none, no_integers, rest, integers_,
       &info);
      if (info != 0) return false;
    }
    left_->apply(thin ? triangle_ : a, left_tau, vh, m_.pool());
    right_->apply(thin ? triangle_ : a, right_tau, u, m_.pool());
    if (thin) outer_->apply(a, outer_tau, rows > columns ? vh : u, m_.pool());
    return true;
  }

  // a = Q R, or L Q, as the library sees it; the triangle goes to a place of its own.
  bool make_triangle(F* a, F* tau, F* work, blasint size) const {
    const blasint rows = m_.counted(m_.columns());
    const blasint columns = m_.counted(m_.rows());
    const bool high = rows > columns;
    blasint info = 0;
    if (high) {
      RICCI_BY_NUMBER(F, geqrf)(&rows, &columns, a, &rows, tau, work, &size, &info);
    } else {
      RICCI_BY_NUMBER(F, gelqf)(&rows, &columns, a, &rows, tau, work, &size, &info);
    }
    for (std::int64_t j = 0; j < k_; ++j) {
      for (std::int64_t i = 0; i < k_; ++i) {
        const bool kept = high ? i <= j : i >= j;
        triangle_[i + j * k_] = kept ? a[i + j * rows] : F(0);
      }
    }
    return info == 0;
  }

  // Columns of u such that their phases are those that are agreed on, and rows of vh the other way.
  // u is gone through row by row, a few columns at a time.
  void turn(F* u, F* vh) const {
    constexpr std::int64_t Few = 64;
    for (std::int64_t k = 0; k < k_; k += Few) {
      const std::int64_t count = std::min(Few, k_ - k);
      R largest[Few] = {};
      F by[Few];
      std::fill_n(by, Few, F(1));
      for (std::int64_t i = 0; i < m_.rows(); ++i) {
        const F* row = u + i * k_ + k;
        for (std::int64_t c = 0; c < count; ++c) {
          const R size = std::abs(row[c]);
          largest[c] = size > largest[c] ? size : largest[c];
        }
      }
      for (std::int64_t i = m_.rows(); i-- > 0;) {
        const F* row = u + i * k_ + k;
        for (std::int64_t c = 0; c < count; ++c) {
          by[c] = std::abs(row[c]) > R(0.75) * largest[c] ? row[c] : by[c];
        }
      }
      for (std::int64_t c = 0; c < count; ++c) {
        by[c] /= std::abs(by[c]);
        F* row = vh + (k + c) * m_.columns();
        for (std::int64_t j = 0; j < m_.columns(); ++j) row[j] *= by[c];
        by[c] = conjugate_of(by[c]);
      }
      for (std::int64_t i = 0; i < m_.rows(); ++i) {
        F* row = u + i * k_ + k;
        for (std::int64_t c = 0; c < count; ++c) row[c] *= by[c];
      }
    }
  }

  MatrixCall<F> m_;
  std::int64_t k_;
  std::int64_t work_size_;
  F* a_;
  F* u_;
  F* vh_;
  R* s_;
  F* work_;
  R* real_work_;
  blasint* integers_;
  std::optional<Reflectors<R>> left_ = {};
  std::optional<Reflectors<R>> right_ = {};
  std::optional<Reflectors<R>> outer_ = {};  ///< of what makes a triangle
  F* triangle_ = nullptr;
};

}  // namespace

HostKernel eigh_kernel() noexcept { return kernel_chosen_by<EighKernel, ByMatrix>(); }
HostKernel svd_kernel() noexcept { return kernel_chosen_by<SvdKernel, ByMatrix>(); }

}  // namespace ricci::cpu
