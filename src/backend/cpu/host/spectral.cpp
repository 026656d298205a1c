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
      if (is_large()) reflectors_.emplace(n_, scratch);
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
        integers_(scratch.take<blasint>(8 * k_)) {}

  void run() const {
    if (k_ == 0) return;
    m_.for_each([&](std::int64_t b, std::int64_t tile) {
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
      for (std::int64_t k = 0; k < k_; ++k) turn(u, vh, k);
      m_.write(0, b, m_.rows() * k_, u);
      m_.write(2, b, k_ * m_.columns(), vh);
    });
  }

 private:
  [[nodiscard]] bool has_vectors() const { return m_.wants(0) || m_.wants(2); }
  [[nodiscard]] std::int64_t real_size() const {
    const std::int64_t longer = std::max(m_.rows(), m_.columns());
    return std::max(5 * k_ * k_ + 7 * k_, 2 * longer * k_ + 2 * k_ * k_ + k_);
  }

  bool decompose(F* a, F* u, R* s, F* vh) const {
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

  // Column k of u such that its phase is the one that is agreed on, and row k of vh the other way.
  void turn(F* u, F* vh, std::int64_t k) const {
    const F by = phase_of(u + k, m_.rows(), k_);
    if (by == F(1)) return;
    for (std::int64_t i = 0; i < m_.rows(); ++i) u[i * k_ + k] *= conjugate_of(by);
    F* row = vh + k * m_.columns();
    for (std::int64_t j = 0; j < m_.columns(); ++j) row[j] *= by;
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
};

}  // namespace

HostKernel eigh_kernel() noexcept {
  HostKernel kernel = kernel_chosen_by<EighKernel, ByMatrix>();
  kernel.thread_bytes = [](const HostArguments& call) {
    return ByMatrix(call, [&]<class F>() {
      Scratch scratch;
      return EighKernel<F>(call, scratch).thread_bytes();
    });
  };
  return kernel;
}
HostKernel svd_kernel() noexcept { return kernel_chosen_by<SvdKernel, ByMatrix>(); }

}  // namespace ricci::cpu
