// Fourier transforms of short lines of complex numbers, one or a few at a time.
//
//   const ShortTransform<float> plan(512, 1.0, kernels);
//   plan.run({.count = …, .from_line = …, .to_line = …}, in, out, room);
//
// A line is `lanes` rows of columns: numbers that a vector loads are neighbours in memory, and so
// are those it stores.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/cpu/structured/fourier_rows.h"

namespace ricci::cpu {

template <class T>
class ShortTransform {
 public:
  [[nodiscard]] static bool can(std::int64_t n, const FourierKernels<T>& kernels);
  /// Results are multiplied by `scale`.
  ShortTransform(std::int64_t n, double scale, const FourierKernels<T>& kernels);

  /// Lines that are transformed together.
  [[nodiscard]] std::int64_t together() const { return together_; }
  /// Numbers of type T to work in.
  [[nodiscard]] std::int64_t room() const { return room_; }
  /// `lines` says how many, where, and which way.
  void run(FourierLines<T> lines, const T* from, T* to, T* room) const {
    lines.rows = steps_;
    lines.places = rows_ ? rows_->places() : nullptr;
    lines.roots = roots_.data();
    kernels_.lines(lines, from, to, room);
  }

 private:
  const FourierKernels<T>& kernels_;
  std::int64_t together_;
  std::int64_t room_;
  std::optional<RowTransform<T>> rows_;  ///< of columns that are more than lanes
  FourierRows<T> steps_;
  std::vector<T> roots_;
};

extern template class ShortTransform<float>;
extern template class ShortTransform<double>;

}  // namespace ricci::cpu
