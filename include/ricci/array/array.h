// Arrays: values as a program sees them, whether they lie in memory, wait to be computed or are
// being traced by `jit`, `grad` and their kin (ricci/array/function.h).
//
//   Array x = array({{1.0, 2.0}, {3.0, 4.0}});
//   Array y = tanh(x) * 2 + x[0];
//   std::cout << y << "\n";                   // here it is computed, as one compiled program
//
// An Array is a small handle on an immutable value; copies are cheap, and any number of threads may
// use one. Ops record what is to be done. Looking (printing, `item`, `tensor`, `if`) computes it;
// what was compiled for one expression serves every other of the same structure and types.
//
// A number takes the dtype of the array it meets; on its own it is f32, i32 or bool. Arrays of
// different floats do not mix: `cast(x, DType::F64)`. `/` is the quotient of floats: of integers it
// is refused, as libraries and C++ do not agree (`floor_divide`, `trunc_divide`); `%` has the sign
// of the divisor, as Python's (`fmod` has that of the dividend).
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ricci/array/index.h"
#include "ricci/type/tensor.h"
#include "ricci/type/type.h"

namespace ricci {

class Array;
class ArrayAt;
class ArrayRow;
struct Operand;
enum class ScatterKind : std::uint8_t;
/// Where a function was called: for messages.
using Here = std::source_location;

namespace detail {
struct ArrayNode;
using ArrayNodePtr = std::shared_ptr<ArrayNode>;

[[nodiscard]] ArrayNodePtr number_node(bool value);
[[nodiscard]] ArrayNodePtr number_node(std::int64_t value);
[[nodiscard]] ArrayNodePtr number_node(double value);
[[nodiscard]] ArrayNodePtr number_node(std::complex<double> value);
[[nodiscard]] ArrayNodePtr tensor_node(const Tensor& value);
[[nodiscard]] ArrayNodePtr number_node(const Dim& size);

/// UserError(dtype) when it is too large for an i64.
[[nodiscard]] std::int64_t whole_number(std::uint64_t value);

template <class T>
concept Number = std::is_arithmetic_v<T>;

template <Number T>
[[nodiscard]] auto as_number(T value) {
  if constexpr (std::same_as<T, bool>) {
    return value;
  } else if constexpr (std::unsigned_integral<T> && sizeof(T) == sizeof(std::uint64_t)) {
    return whole_number(value);
  } else if constexpr (std::integral<T>) {
    return static_cast<std::int64_t>(value);
  } else {
    return static_cast<double>(value);
  }
}
}  // namespace detail

/// sum(x, 0, {.keepdims = true}), x.sum(0, {.keepdims = true})
struct ReduceOptions {
  bool keepdims = false;
};
/// var(x, 0, {.ddof = 1})
struct VarOptions {
  std::int64_t ddof = 0;
  bool keepdims = false;
};

class Array {
 public:
  /// No value: what a field holds before it is given one.
  Array() = default;
  /// A number, which takes the dtype of what it meets.
  template <detail::Number T>
  Array(T value) : node_(detail::number_node(detail::as_number(value))) {}  // NOLINT
  template <std::floating_point T>
  Array(std::complex<T> value)  // NOLINT
      : node_(detail::number_node(std::complex<double>(value))) {}
  Array(const Tensor& value) : node_(detail::tensor_node(value)) {}  // NOLINT
  /// A size, which is a number like others: sum(x) / x.dim(0), of sizes with names too.
  template <std::same_as<Dim> T>
  Array(const T& size) : node_(detail::number_node(size)) {}  // NOLINT
  template <std::same_as<detail::ArrayNodePtr> Node>  // 0 is a null pointer, {0, 2} is no array
  Array(Node node, std::uint32_t result) : node_(std::move(node)), result_(result) {}

  // An element of an expression is no variable: x[0] = v would change nothing. x = x.at(0).set(v).
  Array(const Array&) = default;
  Array(Array&&) noexcept = default;
  Array& operator=(const Array&) & = default;
  Array& operator=(Array&&) & noexcept = default;
  ~Array() = default;

  [[nodiscard]] bool valid() const noexcept { return node_ != nullptr; }
  [[nodiscard]] const Type& type() const;
  [[nodiscard]] DType dtype() const { return type().dtype; }
  [[nodiscard]] const Dims& shape() const { return type().dims; }
  [[nodiscard]] std::size_t rank() const { return shape().size(); }
  /// A size by axis, negative from the end.
  [[nodiscard]] Dim dim(std::int64_t axis) const;
  /// The number of elements.
  [[nodiscard]] std::int64_t size() const;
  /// `dim` as a number: int n = x.size(0). UserError(needs_static_dim) for one with a name.
  [[nodiscard]] std::int64_t size(std::int64_t axis) const { return dim(axis).value(); }

  // Looking: computes what is not computed yet. UserError(refused) for an array that is being
  // traced, which has no value then.
  /// The elements, row-major on the host; shared, not copied.
  [[nodiscard]] const Tensor& tensor(
      std::source_location where = std::source_location::current()) const&;
  [[nodiscard]] Tensor tensor(std::source_location where = std::source_location::current()) &&;
  /// The only element.
  [[nodiscard]] double item(std::source_location where = std::source_location::current()) const;
  /// The elements converted to T: double, std::int64_t or std::complex<double>.
  template <class T = double>
  [[nodiscard]] std::vector<T> to_vector(
      std::source_location where = std::source_location::current()) const {
    return Tensor(tensor(where)).template numbers<T>();
  }
  /// The elements as they lie in memory, for as long as this array or a copy of it lives.
  template <class T>
  [[nodiscard]] std::span<const T> data(
      std::source_location where = std::source_location::current()) const& {
    return {static_cast<const T*>(raw_data(dtype_of<T>, where)), static_cast<std::size_t>(size())};
  }
  template <class T>
  std::span<const T> data() && = delete;
  /// Computes it now; gives itself.
  const Array& eval(  // NOLINT: what it gives may be dropped
      std::source_location where = std::source_location::current()) const& {
    (void)static_cast<const Array&>(*this).tensor(where);
    return *this;
  }
  Array eval(std::source_location where = std::source_location::current()) && {  // NOLINT
    (void)static_cast<const Array&>(*this).tensor(where);
    return std::move(*this);
  }
  /// One element that is not 0: for `if`. Arrays that are traced have none: `where`, `cond`.
  explicit operator bool() const;
  template <detail::Number T>
    requires(!std::same_as<T, bool>)
  explicit operator T() const {
    return static_cast<T>(item());
  }

  /// The slices of the first axis: for (Array row : x).
  [[nodiscard]] ArrayRow begin() const;
  [[nodiscard]] ArrayRow end() const;

  /// As NumPy prints it: `[[1. 2.]\n [3. 4.]]`, long ones elided.
  [[nodiscard]] std::string str() const;
  friend std::ostream& operator<<(std::ostream& out, const Array& x);

  /// x[0], x[-1], x[slice(1, 5)], x[indices]: the first axis.
  [[nodiscard]] Array operator[](const Index& index) const;
  /// x(0, slice(1, 5, 2), newaxis, ellipsis, indices): one entry an axis.
  [[nodiscard]] Array operator()(const Index& a, const Index& b = {}, const Index& c = {},
                                 const Index& d = {}, const Index& e = {}, const Index& f = {},
                                 const Index& g = {}, const Index& h = {}) const;
  /// The same place to be written: x.at(0, slice(1, 5)).set(v) is x with v there.
  [[nodiscard]] ArrayAt at(const Index& a, const Index& b = {}, const Index& c = {},
                           const Index& d = {}, const Index& e = {}, const Index& f = {},
                           const Index& g = {}, const Index& h = {}) const;

  // What NumPy and PyTorch have as methods; the functions of the same names take more options.
#define RICCI_METHOD(name, Options)                                                                \
  [[nodiscard]] Array name(Here where = Here::current()) const;                                    \
  [[nodiscard]] Array name(std::int64_t axis, Here where = Here::current()) const;                 \
  [[nodiscard]] Array name(std::int64_t axis, bool keep_dims, Here where = Here::current()) const; \
  [[nodiscard]] Array name(std::int64_t axis, Options options, Here where = Here::current())       \
      const;                                                                                       \
  [[nodiscard]] Array name(std::initializer_list<std::int64_t> axes, bool keep_dims = false,       \
                           Here where = Here::current()) const;
  RICCI_METHOD(sum, ReduceOptions)
  RICCI_METHOD(mean, ReduceOptions)
  RICCI_METHOD(max, ReduceOptions)
  RICCI_METHOD(min, ReduceOptions)
  RICCI_METHOD(prod, ReduceOptions)
  RICCI_METHOD(any, ReduceOptions)
  RICCI_METHOD(all, ReduceOptions)
  RICCI_METHOD(logsumexp, ReduceOptions)
  RICCI_METHOD(norm, ReduceOptions)
  RICCI_METHOD(var, VarOptions)
  RICCI_METHOD(std, VarOptions)
#undef RICCI_METHOD
  // x.exp(), x.abs(), x.sqrt(): all functions of one operand.
#define RICCI_UNARY(Kind, name) [[nodiscard]] Array name(Here where = Here::current()) const;
#include "ricci/op/unary.def"
  [[nodiscard]] Array argmax(std::int64_t axis = -1, Here where = Here::current()) const;
  [[nodiscard]] Array argmin(std::int64_t axis = -1, Here where = Here::current()) const;
  [[nodiscard]] Array reshape(const Dims& shape, Here where = Here::current()) const;
  /// x.reshape(2, -1), as x.reshape({2, -1}).
  template <std::integral... N>
    requires(sizeof...(N) > 0)
  [[nodiscard]] Array reshape(N... sizes) const {
    return reshape(Dims{Dim(sizes)...});
  }
  [[nodiscard]] Array view(const Dims& shape, Here where = Here::current()) const;
  template <std::integral... N>
    requires(sizeof...(N) > 0)
  [[nodiscard]] Array view(N... sizes) const {
    return view(Dims{Dim(sizes)...});
  }
  [[nodiscard]] Array flatten(Here where = Here::current()) const;
  [[nodiscard]] Array flatten(std::int64_t first, Here where = Here::current()) const;
  [[nodiscard]] Array ravel(Here where = Here::current()) const { return flatten(where); }
  [[nodiscard]] Array squeeze(Here where = Here::current()) const;
  [[nodiscard]] Array squeeze(std::int64_t axis, Here where = Here::current()) const;
  [[nodiscard]] Array expand_dims(std::int64_t axis, Here where = Here::current()) const;
  [[nodiscard]] Array unsqueeze(std::int64_t axis, Here where = Here::current()) const;
  [[nodiscard]] Array broadcast_to(const Dims& shape, Here where = Here::current()) const;
  [[nodiscard]] Array expand(const Dims& shape, Here where = Here::current()) const;
  [[nodiscard]] Array swapaxes(std::int64_t a, std::int64_t b, Here where = Here::current()) const;
  [[nodiscard]] Array permute(std::initializer_list<std::int64_t> perm,
                              Here where = Here::current()) const;
  template <std::integral... N>
    requires(sizeof...(N) > 0)
  [[nodiscard]] Array permute(N... perm) const {
    return permute({static_cast<std::int64_t>(perm)...});
  }
  [[nodiscard]] Array repeat(std::int64_t count, std::int64_t axis,
                             Here where = Here::current()) const;
  [[nodiscard]] Array take(const Array& indices, std::int64_t axis = 0,
                           Here where = Here::current()) const;
  [[nodiscard]] Array diagonal(Here where = Here::current()) const;
  [[nodiscard]] Array trace(Here where = Here::current()) const;
  [[nodiscard]] Array sort(std::int64_t axis = -1, Here where = Here::current()) const;
  [[nodiscard]] Array argsort(std::int64_t axis = -1, Here where = Here::current()) const;
  [[nodiscard]] Array softmax(std::int64_t axis = -1, Here where = Here::current()) const;
  [[nodiscard]] Array pow(const Array& exponent, Here where = Here::current()) const;
  [[nodiscard]] Array matmul(const Array& b, Here where = Here::current()) const;
  [[nodiscard]] Array conj(Here where = Here::current()) const;
  [[nodiscard]] Array real(Here where = Here::current()) const;
  [[nodiscard]] Array detach(Here where = Here::current()) const;
  [[nodiscard]] Array clip(const Array& low, const Array& high, Here where = Here::current()) const;
  [[nodiscard]] Array dot(const Array& b, Here where = Here::current()) const;
  [[nodiscard]] Array cumsum(std::int64_t axis = -1, Here where = Here::current()) const;
  [[nodiscard]] Array cumprod(std::int64_t axis = -1, Here where = Here::current()) const;
  [[nodiscard]] Array transpose(Here where = Here::current()) const;
  [[nodiscard]] Array transpose(std::initializer_list<std::int64_t> perm,
                                Here where = Here::current()) const;
  /// x.transpose(1, 0), as x.transpose({1, 0}).
  template <std::integral... N>
    requires(sizeof...(N) > 0)
  [[nodiscard]] Array transpose(N... perm) const {
    return transpose({static_cast<std::int64_t>(perm)...});
  }
  /// The axes in reverse.
  [[nodiscard]] Array T(Here where = Here::current()) const;
  /// The last two axes exchanged.
  [[nodiscard]] Array mT(Here where = Here::current()) const;
  [[nodiscard]] Array astype(DType dtype, Here where = Here::current()) const;
  [[nodiscard]] Array to(DType dtype, Here where = Here::current()) const;
  /// Itself: arrays are values.
  [[nodiscard]] Array copy() const { return *this; }
  [[nodiscard]] Array clone() const { return *this; }
  [[nodiscard]] std::size_t ndim() const { return rank(); }
  [[nodiscard]] std::int64_t numel() const { return size(); }

  // Operators are found where an operand is an Array, and nowhere else.
#define RICCI_ARRAY_OPERATOR(symbol)                                    \
  friend Array operator symbol(Operand a, Operand b);                   \
  template <class T>                                                    \
    requires(!std::convertible_to<const T&, Operand>)                   \
  friend Array operator symbol(const Array& a, const T&) {              \
    static_assert(std::is_void_v<T>, "this is no array and no number"); \
    return a;                                                           \
  }
  RICCI_ARRAY_OPERATOR(+)
  RICCI_ARRAY_OPERATOR(-)
  RICCI_ARRAY_OPERATOR(*)
  RICCI_ARRAY_OPERATOR(/)
  RICCI_ARRAY_OPERATOR(%)
  RICCI_ARRAY_OPERATOR(==)
  RICCI_ARRAY_OPERATOR(!=)
  RICCI_ARRAY_OPERATOR(<)
  RICCI_ARRAY_OPERATOR(<=)
  RICCI_ARRAY_OPERATOR(>)
  RICCI_ARRAY_OPERATOR(>=)
  RICCI_ARRAY_OPERATOR(&)
  RICCI_ARRAY_OPERATOR(|)
  RICCI_ARRAY_OPERATOR(^)
  RICCI_ARRAY_OPERATOR(<<)
  RICCI_ARRAY_OPERATOR(>>)
#undef RICCI_ARRAY_OPERATOR
  friend Array operator-(Operand x);
  friend Array operator+(Operand x);
  // Exact types here: an Array is a condition too, so that these would be ambiguous otherwise.
  friend Array operator!(const Array& x);
  friend Array operator&&(const Array& a, const Array& b);
  friend Array operator||(const Array& a, const Array& b);
  template <detail::Number T>
  friend Array operator&&(const Array& a, T b) {
    return a && Array(b);
  }
  template <detail::Number T>
  friend Array operator||(const Array& a, T b) {
    return a || Array(b);
  }
  template <detail::Number T>
  friend Array operator&&(T a, const Array& b) {
    return Array(a) && b;
  }
  template <detail::Number T>
  friend Array operator||(T a, const Array& b) {
    return Array(a) || b;
  }
  friend Array operator~(Operand x);
  friend Array& operator+=(Array& a, Operand b);
  friend Array& operator-=(Array& a, Operand b);
  friend Array& operator*=(Array& a, Operand b);
  friend Array& operator/=(Array& a, Operand b);

  [[nodiscard]] const detail::ArrayNodePtr& node() const noexcept { return node_; }
  [[nodiscard]] std::uint32_t result() const noexcept { return result_; }

 private:
  [[nodiscard]] const void* raw_data(DType dtype, std::source_location where) const;

  detail::ArrayNodePtr node_;
  std::uint32_t result_ = 0;
};

/// An array and a place in it: `x.at(0)`. Each function gives the array with something done there;
/// the array itself stays as it is. Places that are named twice are visited in order.
class ArrayAt {
 public:
  ArrayAt(Array x, std::span<const Index> indices);
  ArrayAt(const ArrayAt&) = delete;
  ArrayAt& operator=(const ArrayAt&) = delete;

  [[nodiscard]] Array get() const;
  [[nodiscard]] Array set(const Array& v, Here where = Here::current()) const;
  [[nodiscard]] Array add(const Array& v, Here where = Here::current()) const;
  [[nodiscard]] Array subtract(const Array& v, Here where = Here::current()) const;
  [[nodiscard]] Array multiply(const Array& v, Here where = Here::current()) const;
  [[nodiscard]] Array divide(const Array& v, Here where = Here::current()) const;
  [[nodiscard]] Array power(const Array& v, Here where = Here::current()) const;
  [[nodiscard]] Array min(const Array& v, Here where = Here::current()) const;
  [[nodiscard]] Array max(const Array& v, Here where = Here::current()) const;
  /// f of what is there, put there: once for a place that is named twice.
  template <std::invocable<Array> F>
  [[nodiscard]] Array apply(F&& f, Here where = Here::current()) const {
    return set(f(get()), where);
  }

 private:
  /// 1 everywhere, multiplied by v at the place.
  [[nodiscard]] Array factors(const Array& v, Here where) const;
  [[nodiscard]] Array combined(ScatterKind kind, const Array& v, Here where) const;

  Array x_;
  std::vector<Index> indices_;
};

inline Index::Index(const Array& i, Place w)
    : kind(Kind::Gather), node(i.node()), result(i.result()), where(w) {}
inline Array Index::indices() const { return {node, result}; }

/// An array or a number with the place of the operator that uses it.
struct Operand {
  Array array;
  std::source_location where;
  Operand(Array a, std::source_location w = std::source_location::current())  // NOLINT
      : array(std::move(a)), where(w) {}
  template <detail::Number T>
  Operand(T value, std::source_location w = std::source_location::current())  // NOLINT
      : array(value), where(w) {}
  template <std::floating_point T>
  Operand(std::complex<T> value,
          std::source_location w = std::source_location::current())  // NOLINT
      : array(value), where(w) {}
  Operand(const Tensor& value, std::source_location w = std::source_location::current())  // NOLINT
      : array(value), where(w) {}
  template <std::same_as<Dim> T>
  Operand(const T& size, std::source_location w = std::source_location::current())  // NOLINT
      : array(size), where(w) {}
};

/// Where a walk over the slices of the first axis is.
class ArrayRow {
 public:
  using value_type = Array;
  using reference = Array;
  using pointer = void;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::input_iterator_tag;

  ArrayRow(Array x, std::int64_t row) : x_(std::move(x)), row_(row) {}
  [[nodiscard]] Array operator*() const { return x_[row_]; }
  ArrayRow& operator++() {
    ++row_;
    return *this;
  }
  ArrayRow operator++(int) {
    ArrayRow before = *this;
    ++row_;
    return before;
  }
  friend bool operator==(const ArrayRow& a, const ArrayRow& b) { return a.row_ == b.row_; }

 private:
  Array x_;
  std::int64_t row_;
};
inline ArrayRow Array::begin() const { return {*this, 0}; }

inline Array operator+(Operand x) { return std::move(x.array); }
inline Array& operator+=(Array& a, Operand b) { return a = a + std::move(b); }
inline Array& operator-=(Array& a, Operand b) { return a = a - std::move(b); }
inline Array& operator*=(Array& a, Operand b) { return a = a * std::move(b); }
inline Array& operator/=(Array& a, Operand b) { return a = a / std::move(b); }

/// Computes several arrays as one program.
void eval(std::span<const Array> arrays,
          std::source_location where = std::source_location::current());

}  // namespace ricci
