// Reading and writing one stored element: the only place that knows how dtypes sit in memory.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "ricci/type/tensor.h"

namespace ricci::detail {

template <class T>
inline constexpr bool is_complex_type = false;
template <class T>
inline constexpr bool is_complex_type<std::complex<T>> = true;

/// float -> integer: truncates toward zero, saturates, NaN gives 0.
template <class I>
[[nodiscard]] I saturate(double v) noexcept {
  if (std::isnan(v)) return 0;
  constexpr auto low = static_cast<double>(std::numeric_limits<I>::min());
  // One past the largest value is a power of two, exact in a double.
  const double high = std::ldexp(1.0, std::numeric_limits<I>::digits);
  if (v <= low) return std::numeric_limits<I>::min();
  if (v >= high) return std::numeric_limits<I>::max();
  return static_cast<I>(v);
}

/// Value conversion between number classes and element types, as `cast` defines it.
template <class To, class From>
[[nodiscard]] To convert_element(From v) {
  constexpr bool small_from = std::is_same_v<From, Float16> || std::is_same_v<From, BFloat16>;
  constexpr bool small_to = std::is_same_v<To, Float16> || std::is_same_v<To, BFloat16>;
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (small_from) {
    return convert_element<To>(static_cast<double>(v));
  } else if constexpr (is_complex_type<From>) {
    if constexpr (is_complex_type<To>) {
      return To(static_cast<typename To::value_type>(v.real()),
                static_cast<typename To::value_type>(v.imag()));
    } else if constexpr (std::is_same_v<To, bool>) {
      return v != From(0);
    } else {
      return convert_element<To>(v.real());
    }
  } else if constexpr (is_complex_type<To>) {
    return To(convert_element<typename To::value_type>(v), 0);
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (small_to) {
    return To(static_cast<double>(v));
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return saturate<To>(static_cast<double>(v));
  } else {
    return static_cast<To>(v);
  }
}

/// The stored element; any non-zero byte is a true bool.
template <class T>
[[nodiscard]] T load_element(const std::byte* in) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return *in != std::byte{0};
  } else {
    T v{};
    std::memcpy(&v, in, sizeof(T));
    return v;
  }
}

template <class N>
void store_number(DType dtype, std::byte* out, N number) {
  // A NaN that arithmetic made is the plain one; its sign is the hardware's whim.
  if constexpr (std::is_same_v<N, double>) {
    if (std::isnan(number)) number = std::numeric_limits<double>::quiet_NaN();
  }
  with_element_type(dtype, [&]<class T>() {
    const T v = convert_element<T>(number);
    std::memcpy(out, &v, sizeof(T));
  });
}

template <class N>
[[nodiscard]] N load_number(DType dtype, const std::byte* in) {
  return with_element_type(dtype,
                           [&]<class T>() -> N { return convert_element<N>(load_element<T>(in)); });
}

/// An element as text that reads back to the same bits: `0.5`, `-3`, `true`, `(1.0, 2.0)`.
[[nodiscard]] std::string print_element(DType dtype, const std::byte* in);

}  // namespace ricci::detail
