// Fourier transforms of rows: columns side by side in vectors, all rows in one block of memory.
//
//   const RowTransform<float> plan(60);
//   const float* y = plan.run(view, count, a, b);  // one of them; each has plan.room() rows
//   plan.run(view, count, scale, result, a, b);
//
// Lengths are products of small primes; others go through a convolution (Bluestein's way). Plans
// are immutable and keep their roots.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backend/cpu/kernels/vector_kernels.h"

namespace ricci::cpu {

template <class T>
[[nodiscard]] const FourierKernels<T>& fourier_kernels();
template <>
[[nodiscard]] inline const FourierKernels<float>& fourier_kernels<float>() {
  return vector_kernels().fourier_f32;
}
template <>
[[nodiscard]] inline const FourierKernels<double>& fourier_kernels<double>() {
  return vector_kernels().fourier_f64;
}

/// Primes, smallest first, as often as they divide n.
[[nodiscard]] std::vector<std::int64_t> prime_factors(std::int64_t n);

/// The largest prime that is a step of its own.
inline constexpr std::int64_t LargestRadix = 97;
/// The most rows of a block.
inline constexpr std::int64_t MostRows = 4096;

template <class T>
class RowTransform {
 public:
  explicit RowTransform(std::int64_t rows, const FourierKernels<T>& kernels = fourier_kernels<T>());

  /// Can a block have so many rows?
  [[nodiscard]] static bool can(std::int64_t rows);
  /// By steps alone, without a convolution?
  [[nodiscard]] static bool has_steps(std::int64_t rows);
  /// About how much work a row takes, in simple steps.
  [[nodiscard]] static double cost(std::int64_t rows, std::int64_t lanes);

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t room() const { return room_; }
  /// Where row j of the input goes.
  [[nodiscard]] const std::int32_t* places() const { return places_.data(); }
  /// What the kernels do, where it has steps.
  [[nodiscard]] FourierRows<T> steps() const {
    return {rows_, stages_.data(), static_cast<std::int64_t>(stages_.size())};
  }
  /// From `a`, with `b` to work in; the result is in one of them, in order.
  [[nodiscard]] T* run(T* a, T* b) const;
  /// The same for `count` columns of a view.
  [[nodiscard]] T* run(const FourierView<const T>& from, std::int64_t count, T* a, T* b) const;
  /// From view to view.
  void run(const FourierView<const T>& from, std::int64_t count, T scale, const FourierView<T>& to,
           T* a, T* b) const;

 private:
  void add_stages(const std::vector<std::int64_t>& radices);
  void make_convolution();
  // Loads and transforms the parts that the last step joins, each while it is in the nearest cache.
  [[nodiscard]] bool has_parts(const FourierView<const T>& from) const;
  void run_parts(const FourierView<const T>& from, std::int64_t count, T* a) const;

  const FourierKernels<T>& kernels_;
  std::int64_t rows_;
  std::int64_t room_;
  std::vector<std::int32_t> places_;
  std::vector<std::int32_t> part_places_;  ///< of a part of the last step
  std::vector<std::vector<T>> tables_;
  std::vector<FourierStage<T>> stages_;
  /// The convolution's transform, the chirp, its conjugate, and the transform of that.
  std::unique_ptr<RowTransform> inner_;
  std::vector<T> chirp_;
  std::vector<T> chirp_back_;
  std::vector<T> chirp_bins_;
};

extern template class RowTransform<float>;
extern template class RowTransform<double>;

/// e^(-πi·j²/n), j < n, as pairs.
template <class T>
[[nodiscard]] std::vector<T> chirp_of(std::int64_t n);
/// e^(-2πi·j/n), j < count, as pairs.
template <class T>
[[nodiscard]] std::vector<T> roots_of(std::int64_t n, std::int64_t count);

}  // namespace ricci::cpu
