// Plain arrays for the reference kernels: numbers in row-major order with their sizes. Slow and
// obvious on purpose.
//
// Numbers come in three classes: double for floats (wider than any of them, rounded once when
// stored), std::int64_t for integers and bool (wrapped when stored), std::complex<double>.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ricci/type/tensor.h"

namespace ricci {

/// Calls `f(index)` for every index of a shape, in row-major order.
template <class F>
void for_each_index(const StaticDims& dims, F&& f) {
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= d;
  StaticDims index(dims.size(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    f(std::as_const(index));
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      if (++index[axis] < dims[axis]) break;
      index[axis] = 0;
    }
  }
}

/// The row-major position of an index. An index longer than the shape is aligned from the right,
/// and sizes of 1 repeat: reading broadcasts.
[[nodiscard]] inline std::int64_t flat_index(const StaticDims& dims,
                                             std::span<const std::int64_t> index) {
  const std::size_t skip = index.size() - dims.size();
  std::int64_t flat = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    flat = flat * dims[i] + (dims[i] == 1 ? 0 : index[i + skip]);
  }
  return flat;
}

[[nodiscard]] inline std::int64_t count_elements(const StaticDims& dims) {
  std::int64_t n = 1;
  for (const std::int64_t d : dims) n *= d;
  return n;
}

template <class N>
struct Nd {
  StaticDims dims;
  std::vector<N> data;

  Nd() = default;
  explicit Nd(StaticDims d, N fill = N{})
      : dims(std::move(d)), data(static_cast<std::size_t>(count_elements(dims)), fill) {}
  Nd(StaticDims d, std::vector<N> values) : dims(std::move(d)), data(std::move(values)) {}

  /// The element at an index; broadcasts as `flat_index` does.
  [[nodiscard]] N& at(std::span<const std::int64_t> index) {
    return data[static_cast<std::size_t>(flat_index(dims, index))];
  }
  [[nodiscard]] const N& at(std::span<const std::int64_t> index) const {
    return data[static_cast<std::size_t>(flat_index(dims, index))];
  }
  [[nodiscard]] N& at(std::initializer_list<std::int64_t> index) {
    return at(std::span(index.begin(), index.size()));
  }
  [[nodiscard]] const N& at(std::initializer_list<std::int64_t> index) const {
    return at(std::span(index.begin(), index.size()));
  }
  [[nodiscard]] std::size_t size() const noexcept { return data.size(); }
};

using RealNd = Nd<double>;
using IntNd = Nd<std::int64_t>;
using ComplexNd = Nd<std::complex<double>>;

/// Calls `f.template operator()<N>()` with the number class of a dtype.
template <class F>
decltype(auto) with_number_class(DType dtype, F&& f) {
  if (is_float(dtype)) return f.template operator()<double>();
  if (is_complex(dtype)) return f.template operator()<std::complex<double>>();
  return f.template operator()<std::int64_t>();
}

// Arithmetic that wraps for integers and is ordinary for the rest.
template <class N>
[[nodiscard]] N add_wrapping(N a, N b) {
  if constexpr (std::is_same_v<N, std::int64_t>) {
    return static_cast<N>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}
template <class N>
[[nodiscard]] N sub_wrapping(N a, N b) {
  if constexpr (std::is_same_v<N, std::int64_t>) {
    return static_cast<N>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  } else {
    return a - b;
  }
}
template <class N>
[[nodiscard]] N mul_wrapping(N a, N b) {
  if constexpr (std::is_same_v<N, std::int64_t>) {
    return static_cast<N>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}

}  // namespace ricci
