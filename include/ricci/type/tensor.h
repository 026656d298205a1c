// Host tensors: values a program is fed with, its constants, and what it returns.
//
// A Tensor is a cheap handle: element storage is shared and immutable once shared. It can own its
// elements, borrow someone else's, or view them with strides. A splat (one value repeated) is a
// view whose strides are all zero, so a zero tensor of any size costs one element.
//
//   Tensor t = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
//   Tensor z = Tensor::splat(f32({1000000}), 0.0);
//   std::vector<double> v = t.numbers<double>();      // row-major copies, converted
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ricci/type/small_float.h"
#include "ricci/type/type.h"

namespace ricci {

namespace detail {
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::F64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::F32;
};
template <>
struct DTypeOf<Float16> {
  static constexpr DType value = DType::F16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::BF16;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::I64;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::I32;
};
template <>
struct DTypeOf<std::int16_t> {
  static constexpr DType value = DType::I16;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::I8;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::U8;
};
template <>
struct DTypeOf<std::uint32_t> {
  static constexpr DType value = DType::U32;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::Bool;
};
template <>
struct DTypeOf<std::complex<float>> {
  static constexpr DType value = DType::C64;
};
template <>
struct DTypeOf<std::complex<double>> {
  static constexpr DType value = DType::C128;
};
}  // namespace detail

/// The dtype that stores a C++ element type.
template <class T>
inline constexpr DType dtype_of = detail::DTypeOf<T>::value;

/// Calls `f.template operator()<T>()` with the C++ element type of a dtype.
template <class F>
decltype(auto) with_element_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::F64: return f.template operator()<double>();
    case DType::F32: return f.template operator()<float>();
    case DType::F16: return f.template operator()<Float16>();
    case DType::BF16: return f.template operator()<BFloat16>();
    case DType::I64: return f.template operator()<std::int64_t>();
    case DType::I32: return f.template operator()<std::int32_t>();
    case DType::I16: return f.template operator()<std::int16_t>();
    case DType::I8: return f.template operator()<std::int8_t>();
    case DType::U8: return f.template operator()<std::uint8_t>();
    case DType::U32: return f.template operator()<std::uint32_t>();
    case DType::Bool: return f.template operator()<bool>();
    case DType::C64: return f.template operator()<std::complex<float>>();
    case DType::C128: break;
  }
  return f.template operator()<std::complex<double>>();
}

class Tensor {
 public:
  /// An f32 scalar zero.
  Tensor();

  /// Room for `type` (all dims static), zero-filled, owned, row-major.
  [[nodiscard]] static Tensor zeros(const Type& type);
  /// One value repeated; stored once. The value is rounded to the dtype.
  [[nodiscard]] static Tensor splat(const Type& type, double value);
  [[nodiscard]] static Tensor splat(const Type& type, std::int64_t value);
  [[nodiscard]] static Tensor splat(const Type& type, std::complex<double> value);
  [[nodiscard]] static Tensor splat(const Type& type, int value) {
    return splat(type, static_cast<std::int64_t>(value));
  }
  /// A copy of row-major elements whose dtype is T's.
  template <class T>
  [[nodiscard]] static Tensor of(StaticDims dims, std::span<const T> elements);
  template <class T>
  [[nodiscard]] static Tensor of(StaticDims dims, std::initializer_list<T> elements) {
    return of<T>(std::move(dims), std::span<const T>(elements.begin(), elements.size()));
  }
  /// Row-major numbers stored as `type`: floats rounded to nearest even, integers wrapped.
  /// N is double, std::int64_t or std::complex<double>.
  template <class N>
  [[nodiscard]] static Tensor from_numbers(const Type& type, std::span<const N> numbers);
  /// Row-major, little-endian bytes; their count must be exact.
  [[nodiscard]] static Tensor from_bytes(const Type& type, std::span<const std::byte> bytes);
  /// Elements that live elsewhere; `owner` keeps them alive. Strides count elements; any sign.
  [[nodiscard]] static Tensor borrow(const Type& type, const void* first,
                                     std::vector<std::int64_t> strides,
                                     std::shared_ptr<const void> owner);

  [[nodiscard]] const Type& type() const noexcept { return type_; }
  [[nodiscard]] DType dtype() const noexcept { return type_.dtype; }
  [[nodiscard]] const StaticDims& dims() const noexcept { return dims_; }
  [[nodiscard]] std::size_t rank() const noexcept { return dims_.size(); }
  [[nodiscard]] std::int64_t numel() const noexcept { return numel_; }
  /// Distances between neighbours along each axis, in elements.
  [[nodiscard]] const std::vector<std::int64_t>& strides() const noexcept { return strides_; }
  /// The first element, [0, 0, …].
  [[nodiscard]] const std::byte* data() const noexcept { return first_; }
  [[nodiscard]] bool is_contiguous() const noexcept;
  /// All elements are one stored element (or there are none).
  [[nodiscard]] bool is_splat() const noexcept;

  /// The same elements in row-major order of their own.
  [[nodiscard]] Tensor contiguous() const;
  /// The elements' bytes; row-major tensors only.
  [[nodiscard]] std::span<const std::byte> bytes() const;
  /// Writable storage of a tensor nobody else shares.
  [[nodiscard]] std::byte* mutable_data();

  /// Row-major elements converted to N: double, std::int64_t or std::complex<double>.
  template <class N>
  [[nodiscard]] std::vector<N> numbers() const;
  /// Row-major elements as they are stored; T's dtype must be this tensor's.
  template <class T>
  [[nodiscard]] std::vector<T> elements() const;
  /// The only element, as a double; for one-element tensors.
  [[nodiscard]] double item() const;

  /// Views; no element is copied.
  [[nodiscard]] Tensor transposed(std::span<const std::int64_t> perm) const;
  [[nodiscard]] Tensor narrowed(std::size_t axis, std::int64_t start, std::int64_t len) const;
  /// Repeats size-1 and missing leading axes.
  [[nodiscard]] Tensor broadcast_to(const StaticDims& dims) const;
  /// Row-major reinterpretation; copies only when the strides demand it.
  [[nodiscard]] Tensor reshaped(StaticDims dims) const;
  /// A splat when all elements are the same bits, otherwise row-major; the form constants take.
  [[nodiscard]] Tensor canonical() const;

  /// Same type and same bits element by element, however they are stored.
  [[nodiscard]] bool identical(const Tensor& other) const;
  [[nodiscard]] std::uint64_t hash() const;
  /// `f32[2, 3] [[1, 2, 3], [4, 5, 6]]`, shortened in the middle when long.
  [[nodiscard]] std::string to_string() const;

 private:
  Tensor(Type type, std::shared_ptr<const std::byte> storage, const std::byte* first,
         std::vector<std::int64_t> strides);
  [[nodiscard]] static Tensor one_element(const Type& type);

  Type type_;
  StaticDims dims_;
  std::int64_t numel_ = 1;
  std::vector<std::int64_t> strides_;
  std::shared_ptr<const std::byte> storage_;
  const std::byte* first_ = nullptr;
};

/// Strides of a row-major tensor, in elements.
[[nodiscard]] std::vector<std::int64_t> row_major_strides(const StaticDims& dims);

template <class T>
Tensor Tensor::of(StaticDims dims, std::span<const T> elements) {
  Dims symbolic(dims.begin(), dims.end());
  if constexpr (std::is_same_v<T, bool>) {
    const std::vector<std::int64_t> wide(elements.begin(), elements.end());
    return from_numbers<std::int64_t>({DType::Bool, std::move(symbolic)}, wide);
  } else {
    return from_bytes({dtype_of<T>, std::move(symbolic)}, std::as_bytes(elements));
  }
}

}  // namespace ricci
