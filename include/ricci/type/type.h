// The type of a value: a dtype and a shape. Shapes are lists of dimensions; a rank-0 value is `[]`.
//
//   Type t = f32({32, 784});          // f32[32, 784]
//   Type u = {DType::F32, {Dim::symbol("n"), 8}};
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ricci/type/dim.h"
#include "ricci/type/dtype.h"

namespace ricci {

using Dims = std::vector<Dim>;
/// Sizes that are all known.
using StaticDims = std::vector<std::int64_t>;

struct Type {
  DType dtype = DType::F32;
  Dims dims;

  [[nodiscard]] std::size_t rank() const noexcept { return dims.size(); }
  [[nodiscard]] bool is_static() const noexcept;
  /// The number of elements; absent while a symbol is left.
  [[nodiscard]] std::optional<std::int64_t> numel() const;
  /// All sizes as numbers; UserError(needs_static_dim) while a symbol is left.
  [[nodiscard]] StaticDims static_dims() const;
  [[nodiscard]] Type with(DType other) const { return {other, dims}; }
  [[nodiscard]] Type with(Dims other) const { return {dtype, std::move(other)}; }
  [[nodiscard]] Type bind(const SymbolBindings& bindings) const;
  /// `f32[32, n]`
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] std::uint64_t hash() const;
  bool operator==(const Type&) const = default;
};

/// What a tangent or cotangent of a value has, if it has one.
[[nodiscard]] inline Type tangent_type(const Type& type) {
  return type.with(tangent_dtype(type.dtype));
}

[[nodiscard]] inline Type f64(Dims dims = {}) { return {DType::F64, std::move(dims)}; }
[[nodiscard]] inline Type f32(Dims dims = {}) { return {DType::F32, std::move(dims)}; }
[[nodiscard]] inline Type f16(Dims dims = {}) { return {DType::F16, std::move(dims)}; }
[[nodiscard]] inline Type bf16(Dims dims = {}) { return {DType::BF16, std::move(dims)}; }
[[nodiscard]] inline Type i64(Dims dims = {}) { return {DType::I64, std::move(dims)}; }
[[nodiscard]] inline Type i32(Dims dims = {}) { return {DType::I32, std::move(dims)}; }
[[nodiscard]] inline Type i16(Dims dims = {}) { return {DType::I16, std::move(dims)}; }
[[nodiscard]] inline Type i8(Dims dims = {}) { return {DType::I8, std::move(dims)}; }
[[nodiscard]] inline Type u8(Dims dims = {}) { return {DType::U8, std::move(dims)}; }
[[nodiscard]] inline Type c64(Dims dims = {}) { return {DType::C64, std::move(dims)}; }
[[nodiscard]] inline Type c128(Dims dims = {}) { return {DType::C128, std::move(dims)}; }
[[nodiscard]] inline Type u32(Dims dims = {}) { return {DType::U32, std::move(dims)}; }
[[nodiscard]] inline Type boolean(Dims dims = {}) { return {DType::Bool, std::move(dims)}; }

/// Product of dimensions.
[[nodiscard]] Dim product(std::span<const Dim> dims);
/// `[32, n]`
[[nodiscard]] std::string to_string(std::span<const Dim> dims);

/// Right-aligned NumPy broadcasting: dims are equal, or one of them is 1. Nothing when they clash
/// (a symbol agrees with itself and with 1 only).
[[nodiscard]] std::optional<Dims> broadcast(std::span<const Dim> a, std::span<const Dim> b);

/// `axis` counted from the front; nothing when it is outside [-rank, rank).
[[nodiscard]] std::optional<std::int64_t> normalized_axis(std::int64_t axis, std::size_t rank);

}  // namespace ricci
