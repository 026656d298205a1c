// Element types, their sizes and classes, and the one promotion table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace ricci {

enum class DType : std::uint8_t {
  F64,
  F32,
  F16,
  BF16,
  I64,
  I32,
  I16,
  I8,
  U8,
  U32,
  Bool,
  C64,   ///< a pair of f32
  C128,  ///< a pair of f64
};

inline constexpr std::array AllDTypes = {
    DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32, DType::I16,
    DType::I8,  DType::U8,  DType::U32, DType::Bool, DType::C64, DType::C128};
inline constexpr std::array FloatDTypes = {DType::F64, DType::F32, DType::F16, DType::BF16};
inline constexpr std::array IntDTypes = {DType::I64, DType::I32, DType::I16,
                                         DType::I8,  DType::U8,  DType::U32};

/// `f32`, `bf16`, `bool`, …: the spelling in text, in messages and in Python.
[[nodiscard]] std::string_view name(DType dtype) noexcept;
[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name) noexcept;
/// Bytes per element.
[[nodiscard]] std::int64_t size_of(DType dtype) noexcept;

[[nodiscard]] bool is_float(DType dtype) noexcept;
/// Integers, signed or not; not bool.
[[nodiscard]] bool is_int(DType dtype) noexcept;
[[nodiscard]] bool is_complex(DType dtype) noexcept;
/// Float or complex: dtypes that can carry a gradient.
[[nodiscard]] bool is_differentiable(DType dtype) noexcept;
/// What a tangent or cotangent is held in: the dtype itself, f32 for integers, which have one where
/// they are codes of real numbers.
[[nodiscard]] DType tangent_dtype(DType dtype) noexcept;
/// c64 -> f32, c128 -> f64, everything else itself.
[[nodiscard]] DType real_part_of(DType dtype) noexcept;
/// The complex dtype whose parts are of a dtype: f64 -> c128, complex ones themselves, all others
/// c64.
[[nodiscard]] DType complex_of(DType dtype) noexcept;

/// A set of dtypes, for "which dtypes does this op take".
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  constexpr DTypeSet(std::initializer_list<DType> dtypes) {
    for (const DType d : dtypes) bits_ |= bit(d);
  }
  [[nodiscard]] constexpr bool has(DType d) const noexcept { return (bits_ & bit(d)) != 0; }
  constexpr DTypeSet operator|(DTypeSet other) const noexcept {
    DTypeSet r;
    r.bits_ = bits_ | other.bits_;
    return r;
  }
  constexpr bool operator==(const DTypeSet&) const = default;

 private:
  static constexpr std::uint32_t bit(DType d) noexcept { return 1U << static_cast<unsigned>(d); }
  std::uint32_t bits_ = 0;
};

namespace dtypes {
inline constexpr DTypeSet floats = {DType::F64, DType::F32, DType::F16, DType::BF16};
inline constexpr DTypeSet ints = {DType::I64, DType::I32, DType::I16,
                                  DType::I8,  DType::U8,  DType::U32};
inline constexpr DTypeSet booleans = {DType::Bool};
inline constexpr DTypeSet complexes = {DType::C64, DType::C128};
inline constexpr DTypeSet all = floats | ints | booleans | complexes;
}  // namespace dtypes

/// The dtype two operands meet in; commutative, total.
[[nodiscard]] DType promote(DType a, DType b) noexcept;

}  // namespace ricci
