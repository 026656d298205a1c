// Making arrays: from lists, vectors, files and rules. Numbers are f32 and i32 unless a dtype is
// given.
//
//   Array x = array({{1.0, 2.0}, {3.0, 4.0}});
//   Array y = zeros({2, 3}, {.dtype = DType::F64});
//   Array z = array(std::vector<float>{1, 2, 3, 4}, {2, 2});
#pragma once

#include <array>
#include <complex>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "ricci/array/array.h"
#include "ricci/array/tree.h"

namespace ricci {

/// A number, or a list of such: `{{1, 2}, {3, 4}}`.
class NestedList {
 public:
  template <detail::Number T>
  NestedList(T value)  // NOLINT: a number is a list of no depth
      : is_float_(std::floating_point<T>), is_bool_(std::same_as<T, bool>) {
    if constexpr (std::floating_point<T>) {
      number_ = static_cast<double>(value);
    } else {
      whole_ = detail::as_number(value);
    }
  }
  NestedList(std::complex<double> value)  // NOLINT
      : number_(value.real()), imag_(value.imag()), is_float_(true), is_complex_(true) {}
  NestedList(std::initializer_list<NestedList> items) : is_list_(true), items_(items) {}  // NOLINT

  /// Whole numbers are i32, or i64 where one of them does not fit. UserError(shape) when rows
  /// differ in length, UserError(dtype) when a whole number does not fit the dtype that is asked
  /// for.
  [[nodiscard]] Tensor to_tensor(std::optional<DType> dtype, std::source_location where) const;

 private:
  struct Found;
  void collect(std::size_t depth, Found& found, std::source_location where) const;

  double number_ = 0;
  double imag_ = 0;
  std::int64_t whole_ = 0;  // of what is no float
  bool is_float_ = false;
  bool is_bool_ = false;
  bool is_complex_ = false;
  bool is_list_ = false;
  std::vector<NestedList> items_;
};

/// DTypes under the names that NumPy, JAX and PyTorch have for them.
inline constexpr DType float64 = DType::F64, float32 = DType::F32, float16 = DType::F16,
                       bfloat16 = DType::BF16, int64 = DType::I64, int32 = DType::I32,
                       int16 = DType::I16, int8 = DType::I8, uint8 = DType::U8, uint32 = DType::U32,
                       bool_ = DType::Bool, complex64 = DType::C64, complex128 = DType::C128;

struct CreateOptions {
  std::optional<DType> dtype = {};  ///< absent: what the values are, or f32
};

namespace detail {
// A dtype in the place of options, `zeros({3}, float64)`; `{}` is none.
template <class T>
concept IsDType = std::same_as<T, DType>;
}  // namespace detail

[[nodiscard]] Array array(const NestedList& values, CreateOptions options = {},
                          std::source_location where = std::source_location::current());
template <detail::IsDType D>
[[nodiscard]] Array array(const NestedList& values, D dtype, Here where = Here::current()) {
  return array(values, CreateOptions{.dtype = dtype}, where);
}
/// Elements in row-major order, of spans, vectors, std::array and C arrays; without a shape a
/// vector of them.
template <class T>
[[nodiscard]] Array array(std::span<T> elements, StaticDims shape) {
  using Element = std::remove_const_t<T>;
  return Tensor::of<Element>(std::move(shape), std::span<const Element>(elements));
}
template <class T>
[[nodiscard]] Array array(std::span<T> elements) {
  return array(elements, {static_cast<std::int64_t>(elements.size())});
}
template <class T>
[[nodiscard]] Array array(const std::vector<T>& elements, StaticDims shape) {
  return array(std::span<const T>(elements), std::move(shape));
}
template <class T>
[[nodiscard]] Array array(const std::vector<T>& elements) {
  return array(std::span<const T>(elements));
}
template <class T, std::size_t N>
[[nodiscard]] Array array(const std::array<T, N>& elements) {
  return array(std::span<const T>(elements));
}
// Not of constants: a list in braces is none of these.
template <class T, std::size_t N>
[[nodiscard]] Array array(T (&elements)[N]) {  // NOLINT: C arrays are what it is about
  return array(std::span<T>(elements));
}

[[nodiscard]] Array zeros(const Dims& shape, CreateOptions options = {},
                          std::source_location where = std::source_location::current());
[[nodiscard]] Array ones(const Dims& shape, CreateOptions options = {},
                         std::source_location where = std::source_location::current());
[[nodiscard]] Array full(const Dims& shape, const Array& value, CreateOptions options = {},
                         std::source_location where = std::source_location::current());
template <detail::IsDType D>
[[nodiscard]] Array zeros(const Dims& shape, D dtype, Here where = Here::current()) {
  return zeros(shape, CreateOptions{.dtype = dtype}, where);
}
template <detail::IsDType D>
[[nodiscard]] Array ones(const Dims& shape, D dtype, Here where = Here::current()) {
  return ones(shape, CreateOptions{.dtype = dtype}, where);
}
// Sizes stand in braces.
template <std::integral N, std::integral... More>
  requires(sizeof...(More) > 0)
Array zeros(N size, More...) = delete;  // zeros({2, 3})
template <std::integral N, std::integral... More>
  requires(sizeof...(More) > 0)
Array ones(N size, More...) = delete;  // ones({2, 3})
template <detail::IsDType D>
[[nodiscard]] Array full(const Dims& shape, const Array& value, D dtype,
                         Here where = Here::current()) {
  return full(shape, value, CreateOptions{.dtype = dtype}, where);
}
[[nodiscard]] Array zeros_like(const Array& x,
                               std::source_location where = std::source_location::current());
[[nodiscard]] Array ones_like(const Array& x,
                              std::source_location where = std::source_location::current());
[[nodiscard]] Array full_like(const Array& x, const Array& value,
                              std::source_location where = std::source_location::current());
template <detail::IsDType D>
[[nodiscard]] Array zeros_like(const Array& x, D dtype, Here where = Here::current()) {
  return zeros(x.shape(), dtype, where);
}
template <detail::IsDType D>
[[nodiscard]] Array ones_like(const Array& x, D dtype, Here where = Here::current()) {
  return ones(x.shape(), dtype, where);
}
/// The same for every array of a tree.
template <class T>
  requires(!std::convertible_to<const T&, Array>)
[[nodiscard]] T zeros_like(const T& tree,
                           std::source_location where = std::source_location::current()) {
  return tree_map([&](const Array& x) { return zeros_like(x, where); }, tree);
}
template <class T>
  requires(!std::convertible_to<const T&, Array>)
[[nodiscard]] T ones_like(const T& tree,
                          std::source_location where = std::source_location::current()) {
  return tree_map([&](const Array& x) { return ones_like(x, where); }, tree);
}
/// 1 on the diagonal; n × n unless the columns are given.
[[nodiscard]] Array eye(std::int64_t n, std::optional<std::int64_t> columns = {},
                        CreateOptions options = {},
                        std::source_location where = std::source_location::current());
namespace detail {
// Whole numbers are i32, or i64 where they do not fit, unless a dtype is given.
[[nodiscard]] Array arange_of(double start, double stop, double step, CreateOptions options,
                              Here where);
}  // namespace detail

/// start, start + step, … below stop: i32 of integers, f32 where one of them is a float.
[[nodiscard]] Array arange(std::int64_t stop, CreateOptions options = {},
                           std::source_location where = std::source_location::current());
template <std::floating_point T>
[[nodiscard]] Array arange(T stop, CreateOptions options = {}, Here where = Here::current()) {
  return detail::arange_of(0, stop, 1, {.dtype = options.dtype.value_or(DType::F32)}, where);
}
template <detail::Number A, detail::Number B, detail::Number C = int>
[[nodiscard]] Array arange(A start, B stop, C step = 1, CreateOptions options = {},
                           Here where = Here::current()) {
  if (std::floating_point<A> || std::floating_point<B> || std::floating_point<C>) {
    options.dtype = options.dtype.value_or(DType::F32);
  }
  return detail::arange_of(static_cast<double>(start), static_cast<double>(stop),
                           static_cast<double>(step), options, where);
}
template <detail::Number A, detail::Number B, detail::IsDType D>
[[nodiscard]] Array arange(A start, B stop, D dtype, Here where = Here::current()) {
  return arange(start, stop, 1, CreateOptions{.dtype = dtype}, where);
}
template <detail::IsDType D>
[[nodiscard]] Array arange(std::int64_t stop, D dtype, Here where = Here::current()) {
  return arange(stop, CreateOptions{.dtype = dtype}, where);
}
/// A size: arange(x.dim(0)).
template <std::same_as<Dim> T>
[[nodiscard]] Array arange(const T& stop, CreateOptions options = {},
                           Here where = Here::current()) {
  return arange(stop.value(), options, where);
}
/// `count` numbers from start to stop, both included.
[[nodiscard]] Array linspace(double start, double stop, std::int64_t count = 50,
                             CreateOptions options = {},
                             std::source_location where = std::source_location::current());
template <detail::IsDType D>
[[nodiscard]] Array linspace(double start, double stop, std::int64_t count, D dtype,
                             Here where = Here::current()) {
  return linspace(start, stop, count, CreateOptions{.dtype = dtype}, where);
}
template <detail::IsDType D>
[[nodiscard]] Array eye(std::int64_t n, D dtype, Here where = Here::current()) {
  return eye(n, std::nullopt, CreateOptions{.dtype = dtype}, where);
}
/// Coordinates as arrays of all points: the first varies along the first axis.
[[nodiscard]] std::vector<Array> meshgrid(
    std::initializer_list<Array> axes,
    std::source_location where = std::source_location::current());

/// NumPy's files: one array, or several by name.
[[nodiscard]] Array load_npy(const std::string& path);
void save_npy(const std::string& path, const Array& x);
[[nodiscard]] std::map<std::string, Array> load_npz(const std::string& path);
void save_npz(const std::string& path, const std::map<std::string, Array>& arrays);

namespace detail {
void save_leaves(const std::string& path, std::span<const std::string> names,
                 std::span<const Array> leaves);

/// Gives the arrays of a tree values from a file, by their names.
class Loader final : public NamingVisitor {
 public:
  explicit Loader(std::string file);
  void array(Array& leaf) override;
  void fill(Array& place) override;

 private:
  std::string file_;
  std::map<std::string, Array> found_;
};
}  // namespace detail

/// The leaves of a tree by their names, as NPZ, safetensors or GGUF: the file's ending says which.
template <class T>
void save(const std::string& path, const T& tree) {
  detail::save_leaves(path, leaf_names(tree), leaves(tree));
}
/// A tree of the same structure with leaves from a file: of the types they have, where they have a
/// value; those without one take what the file has.
template <class T>
[[nodiscard]] T load(const std::string& path, T like) {
  detail::Loader(path).visit(like);
  return like;
}
/// The same for a tree as it is made: load<Net>("net.npz").
template <class T>
  requires std::default_initializable<T>
[[nodiscard]] T load(const std::string& path) {
  return load(path, T{});
}

}  // namespace ricci
