#include "ricci/type/tensor.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "ricci/support/checked.h"
#include "ricci/support/hash.h"

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

void require_static_and_positive(const Type& type) {
  for (const Dim& d : type.dims) {
    if (d.value() < 0) {
      throw UserError(ErrorCode::Shape,
                      fmt::format("a tensor cannot have the negative size {}", d.value()));
    }
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
  auto storage = allocate_zeroed(size_of(type.dtype));
  const std::byte* first = storage.get();
  return {type, std::move(storage), first, std::vector<std::int64_t>(type.rank(), 0)};
}

Tensor Tensor::splat(const Type& type, double value) {
  Tensor t = one_element(type);
  detail::store_number(type.dtype, t.mutable_data(), value);
  return t;
}

Tensor Tensor::splat(const Type& type, std::int64_t value) {
  Tensor t = one_element(type);
  detail::store_number(type.dtype, t.mutable_data(), value);
  return t;
}

Tensor Tensor::splat(const Type& type, std::complex<double> value) {
  Tensor t = one_element(type);
  detail::store_number(type.dtype, t.mutable_data(), value);
  return t;
}

template <class N>
Tensor Tensor::from_numbers(const Type& type, std::span<const N> numbers) {
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
  const auto* bytes = static_cast<const std::byte*>(first);
  // The aliasing constructor: keeps `owner` alive while pointing at the elements.
  return {type, std::shared_ptr<const std::byte>(owner, bytes), bytes, std::move(strides)};
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
  check_internal(is_contiguous(), "Tensor::bytes needs row-major elements");
  return {first_, static_cast<std::size_t>(numel_ * size_of(dtype()))};
}

std::byte* Tensor::mutable_data() {
  check_internal(storage_.use_count() == 1, "a tensor that is shared cannot be written");
  return const_cast<std::byte*>(first_);
}

template <class N>
std::vector<N> Tensor::numbers() const {
  std::vector<N> out;
  out.reserve(static_cast<std::size_t>(numel_));
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
  out.reserve(static_cast<std::size_t>(numel_));
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
  check_internal(perm.size() == rank(), "transposed: one entry per axis");
  Type type{dtype(), {}};
  std::vector<std::int64_t> strides;
  for (const std::int64_t p : perm) {
    type.dims.push_back(type_.dims.at(static_cast<std::size_t>(p)));
    strides.push_back(strides_.at(static_cast<std::size_t>(p)));
  }
  return {std::move(type), storage_, first_, std::move(strides)};
}

Tensor Tensor::narrowed(std::size_t axis, std::int64_t start, std::int64_t len) const {
  check_internal(axis < rank() && start >= 0 && len >= 0 && start + len <= dims_[axis],
                 "narrowed: range outside the axis");
  Type type = type_;
  type.dims[axis] = len;
  const std::byte* first = len == 0 ? first_ : first_ + start * strides_[axis] * size_of(dtype());
  return {std::move(type), storage_, first, strides_};
}

Tensor Tensor::broadcast_to(const StaticDims& dims) const {
  check_internal(dims.size() >= rank(), "broadcast_to: rank shrinks");
  const std::size_t extra = dims.size() - rank();
  std::vector<std::int64_t> strides(dims.size(), 0);
  for (std::size_t i = 0; i < rank(); ++i) {
    check_internal(dims_[i] == 1 || dims_[i] == dims[i + extra], "broadcast_to: sizes clash");
    strides[i + extra] = dims_[i] == 1 ? 0 : strides_[i];
  }
  return {type_.with(Dims(dims.begin(), dims.end())), storage_, first_, std::move(strides)};
}

Tensor Tensor::reshaped(StaticDims dims) const {
  Type type = type_.with(Dims(dims.begin(), dims.end()));
  check_internal(product(type.dims).value() == numel_, "reshaped: element counts differ");
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

std::string Tensor::to_string() const {
  constexpr std::int64_t Shown = 8;
  std::string out = type_.to_string() + " [";
  const Tensor flat = reshaped({numel_});
  for (std::int64_t i = 0; i < numel_; ++i) {
    if (numel_ > Shown && i == Shown / 2) {
      out += ", …";
      i = numel_ - Shown / 2;
    }
    if (i != 0) out += ", ";
    out += detail::print_element(dtype(), flat.first_ + i * flat.strides_[0] * size_of(dtype()));
  }
  return out + "]";
}

}  // namespace ricci
