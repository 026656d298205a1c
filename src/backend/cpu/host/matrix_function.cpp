// Exponentials and cofactors of matrices.
#include <array>
#include <numeric>

#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/matrices.h"

namespace ricci::cpu {
namespace {

// c = a b of squares.
template <class F>
void multiply_squares(const F* a, const F* b, F* c, blasint n) {
  const F one(1);
  const F zero(0);
  const auto with = [&](auto gemm, auto alpha, auto beta) {
    gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, alpha, a, n, b, n, beta, c, n);
  };
  if constexpr (std::is_same_v<F, float>) {
    with(cblas_sgemm, one, zero);
  } else if constexpr (std::is_same_v<F, double>) {
    with(cblas_dgemm, one, zero);
  } else if constexpr (std::is_same_v<F, std::complex<float>>) {
    with(cblas_cgemm, &one, &zero);
  } else {
    with(cblas_zgemm, &one, &zero);
  }
}

// e^a = (r(a/2^m))^(2^m), r the diagonal Padé approximant of degree 13:
//   r(x) = (v - u)⁻¹ (v + u), u the odd and v the even powers of Σ_k b_k x^k.
template <class F>
class ExponentialKernel {
 public:
  using R = RealPart<F>;

  ExponentialKernel(const HostArguments& call, Scratch& scratch)
      : m_(call),
        a_(scratch.take<F>(m_.tiles() * m_.size())),
        powers_(scratch.take<F>(3 * m_.size())),
        u_(scratch.take<F>(m_.size())),
        v_(scratch.take<F>(m_.size())),
        sum_(scratch.take<F>(m_.size())),
        pivots_(scratch.take<blasint>(m_.rows())) {}

  void run() const {
    if (m_.size() == 0) return;
    m_.for_each([&](std::int64_t b, std::int64_t tile) {
      F* a = a_ + tile * m_.size();
      if (m_.read(b, a) && exponential(a)) {
        m_.write(0, b, m_.size(), a);
      } else {
        m_.write_nan(0, b, m_.size());
      }
    });
  }

 private:
  // Coefficients of the approximant, with b_0 = 1.
  static constexpr std::array<double, 14> coefficients() {
    std::array<double, 14> b{1};
    for (int k = 1; k < 14; ++k) {
      b[static_cast<std::size_t>(k)] = b[static_cast<std::size_t>(k - 1)] * (14 - k) / (27 - k) / k;
    }
    return b;
  }

  // The largest sum of a row.
  [[nodiscard]] R norm_of(const F* a) const {
    R largest = 0;
    for (std::int64_t i = 0; i < m_.rows(); ++i) {
      R row = 0;
      for (std::int64_t j = 0; j < m_.rows(); ++j) row += std::abs(a[i * m_.rows() + j]);
      largest = std::max(largest, row);
    }
    return largest;
  }

  // to = Σ c_i x_i over a², a⁴, a⁶, and c_0 on the diagonal.
  void combine(double c0, double c2, double c4, double c6, F* to) const {
    const F* a2 = powers_;
    const F* a4 = powers_ + m_.size();
    const F* a6 = powers_ + 2 * m_.size();
    for (std::int64_t i = 0; i < m_.size(); ++i) {
      to[i] = a2[i] * R(c2) + a4[i] * R(c4) + a6[i] * R(c6);
    }
    for (std::int64_t i = 0; i < m_.rows(); ++i) to[i * m_.rows() + i] += R(c0);
  }

  // a becomes its exponential. The library solves with transposes, which is all the same for powers
  // of one matrix. The room is shared: used under the library's lock.
  bool exponential(F* a) const {
    constexpr double LargestNorm = 5.37;  // up to which the approximant is exact to the last digit
    static constexpr std::array<double, 14> B = coefficients();
    const blasint n = m_.counted(m_.rows());
    const double norm = static_cast<double>(norm_of(a));
    if (!std::isfinite(norm)) return false;
    const int squarings =
        norm > LargestNorm ? static_cast<int>(std::ceil(std::log2(norm / LargestNorm))) : 0;
    const R scale = std::ldexp(R(1), -squarings);
    for (std::int64_t i = 0; i < m_.size(); ++i) a[i] *= scale;
    const auto lock = alone();
    F* a6 = powers_ + 2 * m_.size();
    multiply_squares(a, a, powers_, n);
    multiply_squares(powers_, powers_, powers_ + m_.size(), n);
    multiply_squares(powers_ + m_.size(), powers_, a6, n);
    combine(0, B[9], B[11], B[13], sum_);
    multiply_squares(a6, sum_, v_, n);
    combine(B[1], B[3], B[5], B[7], sum_);
    for (std::int64_t i = 0; i < m_.size(); ++i) sum_[i] += v_[i];
    multiply_squares(a, sum_, u_, n);
    combine(0, B[8], B[10], B[12], sum_);
    multiply_squares(a6, sum_, v_, n);
    combine(B[0], B[2], B[4], B[6], sum_);
    for (std::int64_t i = 0; i < m_.size(); ++i) {
      const F even = sum_[i] + v_[i];
      v_[i] = even - u_[i];
      a[i] = even + u_[i];
    }
    blasint info = 0;
    RICCI_BY_NUMBER(F, getrf)(&n, &n, v_, &n, pivots_, &info);
    const F* factors = v_;
    const blasint* pivots = pivots_;
    RICCI_BY_NUMBER(F, getrs)("N", &n, &n, factors, &n, pivots, a, &n, &info);
    for (int i = 0; i < squarings; ++i) {
      multiply_squares(a, a, u_, n);
      std::copy(u_, u_ + m_.size(), a);
    }
    return true;
  }

  MatrixCall<F> m_;
  F* a_;
  F* powers_;
  F* u_;
  F* v_;
  F* sum_;
  blasint* pivots_;
};

// p a q = l u with complete pivoting, so that what is missing of the rank shows in the last pivots:
//   adj(a) = ± q adj(u) l⁻¹ p, and with the last column split off, u = [u₁ c; 0 d],
//   adj(u) = det(u₁) [d u₁⁻¹  -u₁⁻¹ c; 0  1].
template <class F>
class AdjugateKernel {
 public:
  AdjugateKernel(const HostArguments& call, Scratch& scratch)
      : m_(call),
        n_(m_.rows()),
        a_(scratch.take<F>(m_.tiles() * n_ * n_)),
        x_(scratch.take<F>(m_.tiles() * n_ * n_)),
        places_(scratch.take<std::int64_t>(m_.tiles() * 2 * n_)) {}

  void run() const {
    if (n_ == 0) return;
    m_.for_each([&](std::int64_t b, std::int64_t tile) {
      F* a = a_ + tile * n_ * n_;
      F* x = x_ + tile * n_ * n_;
      if (!m_.read(b, a)) {
        m_.write_nan(0, b, n_ * n_);
        return;
      }
      std::int64_t* rows = places_ + tile * 2 * n_;
      const F size = substitute_all(a, x, rows, rows + n_);
      for (std::int64_t i = 0; i < n_; ++i) {
        for (std::int64_t j = 0; j < n_; ++j) {
          a[rows[n_ + i] * n_ + rows[j]] = x[i * n_ + j] * size;
        }
      }
      m_.write(0, b, n_ * n_, a);
    });
  }

 private:
  // Eliminates, solves for all columns and gives ± det(u₁), or 0 when more than one pivot is.
  F substitute_all(F* a, F* x, std::int64_t* rows, std::int64_t* columns) const {
    F size = eliminate_completely(a, rows, columns);
    std::fill(x, x + n_ * n_, F(0));
    if (size == F(0)) return size;
    for (std::int64_t j = 0; j < n_; ++j) x[j * n_ + j] = F(1);
    for (std::int64_t i = 0; i < n_; ++i) {  // x = l⁻¹
      for (std::int64_t k = 0; k < i; ++k) add_row(x, i, k, -a[i * n_ + k]);
    }
    const std::int64_t last = n_ - 1;
    const F d = a[last * n_ + last];
    for (std::int64_t i = last; i-- > 0;) {  // rows of adj(u) x / det(u₁), upwards
      for (std::int64_t j = 0; j < n_; ++j) x[i * n_ + j] *= d;
      for (std::int64_t k = i + 1; k < n_; ++k) add_row(x, i, k, -a[i * n_ + k]);
      for (std::int64_t j = 0; j < n_; ++j) x[i * n_ + j] /= a[i * n_ + i];
    }
    return size;
  }

  void add_row(F* x, std::int64_t to, std::int64_t from, F factor) const {
    for (std::int64_t j = 0; j < n_; ++j) x[to * n_ + j] += factor * x[from * n_ + j];
  }

  // Gives the product of all pivots but the last, with the sign of the exchanges.
  F eliminate_completely(F* a, std::int64_t* rows, std::int64_t* columns) const {
    std::iota(rows, rows + n_, 0);
    std::iota(columns, columns + n_, 0);
    F size(1);
    for (std::int64_t k = 0; k < n_; ++k) {
      std::int64_t p = k;
      std::int64_t q = k;
      for (std::int64_t i = k; i < n_; ++i) {
        for (std::int64_t j = k; j < n_; ++j) {
          if (std::abs(a[i * n_ + j]) <= std::abs(a[p * n_ + q])) continue;
          p = i;
          q = j;
        }
      }
      if (p != k) {
        std::swap_ranges(a + k * n_, a + (k + 1) * n_, a + p * n_);
        std::swap(rows[k], rows[p]);
        size = -size;
      }
      if (q != k) {
        for (std::int64_t i = 0; i < n_; ++i) std::swap(a[i * n_ + k], a[i * n_ + q]);
        std::swap(columns[k], columns[q]);
        size = -size;
      }
      if (k + 1 == n_) return size;
      const F pivot = a[k * n_ + k];
      if (pivot == F(0)) return F(0);
      size *= pivot;
      for (std::int64_t i = k + 1; i < n_; ++i) {
        const F factor = a[i * n_ + k] /= pivot;
        for (std::int64_t j = k + 1; j < n_; ++j) a[i * n_ + j] -= factor * a[k * n_ + j];
      }
    }
    return size;
  }

  MatrixCall<F> m_;
  std::int64_t n_;
  F* a_;
  F* x_;
  std::int64_t* places_;
};

}  // namespace

HostKernel exponential_kernel() noexcept { return kernel_chosen_by<ExponentialKernel, ByMatrix>(); }
HostKernel adjugate_kernel() noexcept { return kernel_chosen_by<AdjugateKernel, ByMatrix>(); }

}  // namespace ricci::cpu
