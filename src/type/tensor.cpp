#include "ricci/type/tensor.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "ricci/support/checked.h"
#include "ricci/support/hash.h"

#include "support/float_environment.h"
#include "type/elements.h"

namespace ricci {
namespace {

constexpr std::align_val_t Alignment{64};

std::shared_ptr<std::byte> allocate_zeroed(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  auto* raw = static_cast<std::byte*>(::operator new(size, Alignment, std::nothrow));
  if (raw == nullptr) {
    throw UserError(ErrorCode::OutOfMemory, fmt::format("cannot allocate {} bytes", bytes));
  }
  std::memset(raw, 0, size);
  return {raw, [](std::byte* p) { ::operator delete(p, Alignment); }};
}

// Misuse of a view, told with the shapes it was asked for.
void require_view(bool good, const Tensor& t, const std::string& what, const char* help = "") {
  if (good) return;
  throw UserError(ErrorCode::Shape, fmt::format("{} cannot be {}", t.type().to_string(), what),
                  help);
}

std::string list(std::span<const std::int64_t> numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

void require_static_and_positive(const Type& type) {
  for (const Dim& d : type.dims) {
    if (d.value() < 0) {
      throw UserError(ErrorCode::Shape,
                      fmt::format("a tensor cannot have the negative size {}", d.value()));
    }
  }
}

// Room for copies of all elements; a splat of any size has few bytes but may have many elements.
template <class V>
void reserve(V& out, std::int64_t count) {
  try {
    out.reserve(static_cast<std::size_t>(count));
  } catch (const std::exception&) {
    throw UserError(ErrorCode::OutOfMemory, fmt::format("cannot hold {} elements", count));
  }
}

// Calls f(pointer) for every element in row-major order.
template <class F>
void for_each_element(const Tensor& t, F&& f) {
  const std::int64_t size = size_of(t.dtype());
  const std::size_t rank = t.rank();
  StaticDims index(rank, 0);
  const std::byte* p = t.data();
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    f(p);
    for (std::size_t axis = rank; axis-- > 0;) {
      p += t.strides()[axis] * size;
      if (++index[axis] < t.dims()[axis]) break;
      p -= t.strides()[axis] * size * t.dims()[axis];
      index[axis] = 0;
    }
  }
}

// Every byte but 0 is true; a bool stored as another byte than 1 is not in canonical form.
bool has_odd_bools(const Tensor& t) {
  if (t.dtype() != DType::Bool) return false;
  if (t.is_splat()) return t.data()[0] > std::byte{1};
  bool odd = false;
  for_each_element(t, [&](const std::byte* p) { odd = odd || *p > std::byte{1}; });
  return odd;
}

}  // namespace

std::vector<std::int64_t> row_major_strides(const StaticDims& dims) {
  std::vector<std::int64_t> strides(dims.size());
  std::int64_t next = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    strides[i] = next;
    next = checked_mul(next, std::max<std::int64_t>(dims[i], 1));
  }
  return strides;
}

Tensor::Tensor() : Tensor(zeros({DType::F32, {}})) {}

Tensor::Tensor(Type type, std::shared_ptr<const std::byte> storage, const std::byte* first,
               std::vector<std::int64_t> strides)
    : type_(std::move(type)),
      dims_(type_.static_dims()),
      numel_(product(type_.dims).value()),
      strides_(std::move(strides)),
      storage_(std::move(storage)),
      first_(first) {}

Tensor Tensor::zeros(const Type& type) {
  require_static_and_positive(type);
  const std::int64_t bytes = checked_mul(product(type.dims).value(), size_of(type.dtype));
  auto storage = allocate_zeroed(bytes);
  const std::byte* first = storage.get();
  return {type, std::move(storage), first, row_major_strides(type.static_dims())};
}

Tensor Tensor::one_element(const Type& type) {
  require_static_and_positive(type);
  (void)checked_mul(product(type.dims).value(), size_of(type.dtype));
  auto storage = allocate_zeroed(size_of(type.dtype));
  const std::byte* first = storage.get();
  return {type, std::move(storage), first, std::vector<std::int64_t>(type.rank(), 0)};
}

Tensor Tensor::splat(const Type& type, double value) {
  const DefaultFloatEnvironment floats;
  Tensor t = one_element(type);
  detail::store_number(type.dtype, t.mutable_data(), value);
  return t;
}

Tensor Tensor::splat(const Type& type, std::int64_t value) {
  const DefaultFloatEnvironment floats;
  Tensor t = one_element(type);
  detail::store_number(type.dtype, t.mutable_data(), value);
  return t;
}

Tensor Tensor::splat(const Type& type, std::complex<double> value) {
  const DefaultFloatEnvironment floats;
  Tensor t = one_element(type);
  detail::store_number(type.dtype, t.mutable_data(), value);
  return t;
}

template <class N>
Tensor Tensor::from_numbers(const Type& type, std::span<const N> numbers) {
  const DefaultFloatEnvironment floats;
  Tensor t = zeros(type);
  if (std::cmp_not_equal(numbers.size(), t.numel())) {
    throw UserError(ErrorCode::Shape, fmt::format("{} needs {} elements, but {} were given",
                                                  type.to_string(), t.numel(), numbers.size()));
  }
  std::byte* out = t.mutable_data();
  const std::int64_t size = size_of(type.dtype);
  for (const N& n : numbers) {
    detail::store_number(type.dtype, out, n);
    out += size;
  }
  return t;
}

template Tensor Tensor::from_numbers(const Type&, std::span<const double>);
template Tensor Tensor::from_numbers(const Type&, std::span<const std::int64_t>);
template Tensor Tensor::from_numbers(const Type&, std::span<const std::complex<double>>);

Tensor Tensor::from_bytes(const Type& type, std::span<const std::byte> bytes) {
  require_static_and_positive(type);
  const std::int64_t expected = checked_mul(product(type.dims).value(), size_of(type.dtype));
  if (std::cmp_not_equal(bytes.size(), expected)) {
    throw UserError(ErrorCode::Shape, fmt::format("{} needs {} bytes, but {} were given",
                                                  type.to_string(), expected, bytes.size()));
  }
  Tensor t = zeros(type);
  if (!bytes.empty()) std::memcpy(t.mutable_data(), bytes.data(), bytes.size());
  return t;
}

Tensor Tensor::borrow(const Type& type, const void* first, std::vector<std::int64_t> strides,
                      std::shared_ptr<const void> owner) {
  require_static_and_positive(type);
  if (strides.size() != type.rank()) {
    throw UserError(ErrorCode::Shape, fmt::format("{} needs {} strides, but {} were given",
                                                  type.to_string(), type.rank(), strides.size()));
  }
  if (first == nullptr && !product(type.dims).is(0)) {
    throw UserError(ErrorCode::Shape,
                    fmt::format("{} cannot be borrowed from a null pointer", type.to_string()));
  }
  const auto* bytes = static_cast<const std::byte*>(first);
  // The aliasing constructor: keeps `owner` alive while pointing at the elements.
  return {type, std::shared_ptr<const std::byte>(std::move(owner), bytes), bytes,
          std::move(strides)};
}

bool Tensor::is_contiguous() const noexcept {
  if (numel_ <= 1) return true;
  std::int64_t next = 1;
  for (std::size_t i = dims_.size(); i-- > 0;) {
    if (dims_[i] != 1 && strides_[i] != next) return false;
    next *= dims_[i];
  }
  return true;
}

bool Tensor::is_splat() const noexcept {
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    if (dims_[i] > 1 && strides_[i] != 0) return false;
  }
  return true;
}

Tensor Tensor::contiguous() const {
  if (is_contiguous()) return *this;
  Tensor t = zeros(type_);
  std::byte* out = t.mutable_data();
  const auto size = static_cast<std::size_t>(size_of(dtype()));
  for_each_element(*this, [&](const std::byte* p) {
    std::memcpy(out, p, size);
    out += size;
  });
  return t;
}

std::span<const std::byte> Tensor::bytes() const {
  require_view(is_contiguous(), *this, "read as bytes: its elements are strided",
               "call contiguous() first");
  return {first_, static_cast<std::size_t>(numel_ * size_of(dtype()))};
}

std::byte* Tensor::mutable_data() {
  require_view(storage_.use_count() == 1, *this, "written: another tensor shares its elements",
               "write before sharing, or copy");
  return const_cast<std::byte*>(first_);
}

template <class N>
std::vector<N> Tensor::numbers() const {
  const DefaultFloatEnvironment floats;
  std::vector<N> out;
  reserve(out, numel_);
  for_each_element(*this,
                   [&](const std::byte* p) { out.push_back(detail::load_number<N>(dtype(), p)); });
  return out;
}

template std::vector<double> Tensor::numbers<double>() const;
template std::vector<std::int64_t> Tensor::numbers<std::int64_t>() const;
template std::vector<std::complex<double>> Tensor::numbers<std::complex<double>>() const;

template <class T>
std::vector<T> Tensor::elements() const {
  if (dtype_of<T> != dtype()) {
    throw UserError(ErrorCode::DType,
                    fmt::format("the elements are {}, not {}", name(dtype()), name(dtype_of<T>)));
  }
  std::vector<T> out;
  reserve(out, numel_);
  for_each_element(*this, [&](const std::byte* p) { out.push_back(detail::load_element<T>(p)); });
  return out;
}

template std::vector<double> Tensor::elements() const;
template std::vector<float> Tensor::elements() const;
template std::vector<Float16> Tensor::elements() const;
template std::vector<BFloat16> Tensor::elements() const;
template std::vector<std::int64_t> Tensor::elements() const;
template std::vector<std::int32_t> Tensor::elements() const;
template std::vector<std::int16_t> Tensor::elements() const;
template std::vector<std::int8_t> Tensor::elements() const;
template std::vector<std::uint8_t> Tensor::elements() const;
template std::vector<std::uint32_t> Tensor::elements() const;
template std::vector<bool> Tensor::elements() const;
template std::vector<std::complex<float>> Tensor::elements() const;
template std::vector<std::complex<double>> Tensor::elements() const;

double Tensor::item() const {
  if (numel_ != 1) {
    throw UserError(ErrorCode::Shape,
                    fmt::format("item() needs one element, but this is {}", type_.to_string()));
  }
  return detail::load_number<double>(dtype(), first_);
}

Tensor Tensor::transposed(std::span<const std::int64_t> perm) const {
  std::vector<std::int64_t> axes(perm.begin(), perm.end());
  std::ranges::sort(axes);
  bool permutation = axes.size() == rank();
  for (std::size_t i = 0; permutation && i < axes.size(); ++i) {
    permutation = axes[i] == static_cast<std::int64_t>(i);
  }
  require_view(permutation, *this, "transposed by " + list(perm), "list every axis once");
  Type type{dtype(), {}};
  std::vector<std::int64_t> strides;
  for (const std::int64_t p : perm) {
    type.dims.push_back(type_.dims.at(static_cast<std::size_t>(p)));
    strides.push_back(strides_.at(static_cast<std::size_t>(p)));
  }
  return {std::move(type), storage_, first_, std::move(strides)};
}

Tensor Tensor::narrowed(std::size_t axis, std::int64_t start, std::int64_t len) const {
  require_view(
      axis < rank() && start >= 0 && len >= 0 && len <= dims_[axis] && start <= dims_[axis] - len,
      *this, fmt::format("narrowed to {} from {} along axis {}", len, start, axis));
  Type type = type_;
  type.dims[axis] = len;
  const std::byte* first = len == 0 ? first_ : first_ + start * strides_[axis] * size_of(dtype());
  return {std::move(type), storage_, first, strides_};
}

Tensor Tensor::broadcast_to(const StaticDims& dims) const {
  require_view(dims.size() >= rank(), *this, "broadcast to " + list(dims));
  const std::size_t extra = dims.size() - rank();
  std::vector<std::int64_t> strides(dims.size(), 0);
  for (std::size_t i = 0; i < rank(); ++i) {
    require_view(dims_[i] == 1 || dims_[i] == dims[i + extra], *this, "broadcast to " + list(dims),
                 "aligned from the right, sizes must be equal or 1");
    strides[i + extra] = dims_[i] == 1 ? 0 : strides_[i];
  }
  return {type_.with(Dims(dims.begin(), dims.end())), storage_, first_, std::move(strides)};
}

Tensor Tensor::reshaped(StaticDims dims) const {
  Type type = type_.with(Dims(dims.begin(), dims.end()));
  require_view(product(type.dims).value() == numel_, *this, "reshaped to " + list(dims),
               "the element counts differ");
  if (is_splat()) {
    return {std::move(type), storage_, first_, std::vector<std::int64_t>(dims.size(), 0)};
  }
  const Tensor source = contiguous();
  return {std::move(type), source.storage_, source.first_, row_major_strides(dims)};
}

Tensor Tensor::canonical() const {
  if (numel_ == 0) return one_element(type_);
  if (has_odd_bools(*this)) {
    if (is_splat()) return splat(type_, 1);
    return from_numbers<std::int64_t>(type_, numbers<std::int64_t>()).canonical();
  }
  const auto size = static_cast<std::size_t>(size_of(dtype()));
  bool uniform = true;
  if (!is_splat()) {
    for_each_element(
        *this, [&](const std::byte* p) { uniform = uniform && std::memcmp(p, first_, size) == 0; });
  }
  if (!uniform) return contiguous();
  if (is_splat() && std::ranges::all_of(strides_, [](std::int64_t s) { return s == 0; })) {
    return *this;
  }
  Tensor t = one_element(type_);
  std::memcpy(t.mutable_data(), first_, size);
  return t;
}

bool Tensor::identical(const Tensor& other) const {
  if (type_ != other.type_) return false;
  if (numel_ == 0) return true;
  if (first_ == other.first_ && strides_ == other.strides_) return true;
  const Tensor a = canonical();
  const Tensor b = other.canonical();
  if (a.is_splat() != b.is_splat()) return false;
  const auto size = static_cast<std::size_t>((a.is_splat() ? 1 : numel_) * size_of(dtype()));
  return std::memcmp(a.first_, b.first_, size) == 0;
}

std::uint64_t Tensor::hash() const {
  const Tensor c = canonical();
  Hasher h;
  h.add(type_.hash());
  if (numel_ != 0) {
    const auto size = static_cast<std::size_t>((c.is_splat() ? 1 : numel_) * size_of(dtype()));
    h.add(std::span(c.first_, size));
  }
  return h.value();
}

namespace {

// Nested lists; long axes show their first and last entries, and of many axes not all elements are
// shown: `left` counts those that still may be.
std::string nested(const Tensor& t, std::size_t axis, int& left) {
  constexpr std::int64_t Edge = 3;
  if (left == 0) return "…";
  if (axis == t.rank()) {
    --left;
    return detail::print_element(t.dtype(), t.data());
  }
  std::string out = "[";
  const std::int64_t size = t.dims()[axis];
  for (std::int64_t i = 0; i < size; ++i) {
    if (size > 2 * Edge + 1 && i == Edge) {
      out += ", …";
      i = size - Edge;
    }
    if (i != 0) out += ", ";
    out += nested(t.narrowed(axis, i, 1), axis + 1, left);
  }
  return out + "]";
}

}  // namespace

std::string Tensor::to_string() const {
  int left = 1000;
  return type_.to_string() + " " + nested(*this, 0, left);
}

}  // namespace ricci
