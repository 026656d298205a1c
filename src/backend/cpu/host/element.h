// What a stored element is computed in, and how it gets there and back.
#pragma once

#include <bit>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "ricci/compiler/rule/nd.h"
#include "ricci/type/tensor.h"

#include "type/elements.h"

namespace ricci::cpu {

template <class T>
inline constexpr bool is_small_float_type =
    std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool is_any_float = std::is_floating_point_v<T> || is_small_float_type<T>;

namespace detail {
template <class T, class Float>
using NumberFor = std::conditional_t<
    is_any_float<T>, Float,
    std::conditional_t<ricci::detail::is_complex_type<T>, std::complex<double>, std::int64_t>>;
}  // namespace detail

/// Enough for a few operations: f32 for f32 and narrower floats, otherwise as Wide.
template <class T>
using Number = detail::NumberFor<T, std::conditional_t<std::is_same_v<T, double>, double, float>>;
/// Enough for any number of them: what the reference kernels compute in.
template <class T>
using Wide = detail::NumberFor<T, double>;

[[nodiscard]] inline float widened(BFloat16 v) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(v.bits) << 16);
}

[[nodiscard]] inline float widened(Float16 v) noexcept {
  const std::uint32_t sign = (v.bits & 0x8000U) << 16;
  const std::uint32_t shifted = (v.bits & 0x7FFFU) << 13;
  // The exponent is 112 too small; the product is exact, subnormals included.
  const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(shifted) * 0x1p112F);
  const std::uint32_t special = shifted | 0x7F800000U;  // infinities and NaNs
  return std::bit_cast<float>(sign | ((v.bits & 0x7C00U) == 0x7C00U ? special : scaled));
}

/// Rounds to nearest even.
template <class T>
[[nodiscard]] T narrowed(float v) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t size = bits & 0x7FFFFFFFU;
  T out;
  if constexpr (std::is_same_v<T, BFloat16>) {
    const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
    out.bits = static_cast<std::uint16_t>(size > 0x7F800000U ? sign | 0x7FC0U : rounded);
  } else {
    const std::uint32_t normal = (size + 0xFFFU + ((size >> 13) & 1U) - 0x38000000U) >> 13;
    // The last place of a number near one half is the smallest subnormal.
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3F000000U;
    std::uint32_t half = size < 0x38800000U ? subnormal : normal;
    if (size >= 0x477FF000U) half = size > 0x7F800000U ? 0x7E00U : 0x7C00U;
    out.bits = static_cast<std::uint16_t>(sign | half);
  }
  return out;
}

/// An element as a number, or a number as an element: floats are rounded once, integers wrapped.
template <class To, class From>
[[nodiscard]] inline To element_cast(From v) {
  if constexpr (is_small_float_type<From> && std::is_floating_point_v<To>) {
    return static_cast<To>(widened(v));
  } else if constexpr (is_small_float_type<To> && std::is_same_v<From, float>) {
    return narrowed<To>(v);
  } else {
    return ricci::detail::convert_element<To>(v);
  }
}

template <class N, class T>
[[nodiscard]] inline N load_as(const T* from) {
  if constexpr (std::is_same_v<T, bool>) {
    // Any byte but 0 is true; reading such a byte as bool would be undefined.
    return element_cast<N>(*reinterpret_cast<const unsigned char*>(from) != 0);
  } else {
    return element_cast<N>(*from);
  }
}

/// Calls `f.template operator()<T>()` with the element type of a floating dtype.
template <class F>
decltype(auto) with_float_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::F64: return f.template operator()<double>();
    case DType::F16: return f.template operator()<Float16>();
    case DType::BF16: return f.template operator()<BFloat16>();
    default: return f.template operator()<float>();
  }
}

}  // namespace ricci::cpu
