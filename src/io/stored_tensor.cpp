#include "ricci/io/stored_tensor.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_set>

#include <fmt/format.h>

#include "ricci/support/checked.h"
#include "ricci/support/text.h"

#include "io/fault.h"
#include "io/tensor_directory.h"

namespace ricci::io {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are stored little-endian");

std::string shown_name(std::string_view name) { return quote(shortened(name)); }

bool is_aligned(const std::byte* at, DType dtype) {
  const std::int64_t align = size_of(real_part_of(dtype));
  return reinterpret_cast<std::uintptr_t>(at) % static_cast<std::uintptr_t>(align) == 0;
}

// Someone may write into a mapped file while a program runs. Numbers are then other numbers; but
// what says where to read and write has been checked, and must stay what it was.
bool decides_places(DType dtype) { return is_int(dtype) || dtype == DType::Bool; }

void check_bools(const StoredTensor& t, std::span<const std::byte> bytes) {
  if (t.type.dtype != DType::Bool) return;
  const auto odd = std::ranges::find_if(bytes, [](std::byte b) { return b > std::byte{1}; });
  if (odd == bytes.end()) return;
  file_fault("tensor_bool",
             fmt::format("tensor {} holds the byte {}", shown_name(t.name),
                         std::to_integer<unsigned>(*odd)),
             t.offset + static_cast<std::size_t>(odd - bytes.begin()),
             "bools are stored as 0 or 1");
}

// Numbers without a sign become such of the next larger size, or keep theirs where there is none.
Tensor widened(const StoredTensor& t, const Type& type) {
  Tensor out = Tensor::zeros(type);
  const auto size = static_cast<std::size_t>(t.type.block_bytes);
  const auto wide = static_cast<std::size_t>(size_of(type.dtype));
  std::byte* to = t.bytes.empty() ? nullptr : out.mutable_data();
  for (std::size_t i = 0; i < t.bytes.size() / size; ++i) {
    std::uint64_t value = 0;  // little-endian
    std::memcpy(&value, t.bytes.data() + i * size, size);
    if (wide == size &&
        value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      file_fault(
          "tensor_range",
          fmt::format("tensor {} holds {}, which does not fit in i64", shown_name(t.name), value),
          t.offset + i * size, "numbers of 64 bits without a sign are read as i64");
    }
    std::memcpy(to + i * wide, &value, wide);
  }
  return out;
}

}  // namespace

std::int64_t StoredTensor::numel() const {
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count = checked_mul(count, d);
  return count;
}

// Zero sizes count as one on the way, so that no product of a part of them overflows either.
std::optional<std::int64_t> stored_bytes(const StoredType& type, const StaticDims& dims) {
  if ((dims.empty() ? 1 : dims.back()) % type.block_length != 0) return std::nullopt;
  std::optional<std::int64_t> count = 1;
  bool empty = false;
  for (const std::int64_t d : dims) {
    empty = empty || d == 0;
    if (count) count = try_mul(*count, std::max<std::int64_t>(d, 1));
  }
  if (count) count = try_mul((*count - 1) / type.block_length + 1, type.block_bytes);
  if (count && !try_mul(*count, 4)) return std::nullopt;
  return count && empty ? std::optional<std::int64_t>(0) : count;
}

Tensor load(const StoredTensor& stored, const std::shared_ptr<const void>& owner) {
  const Type type = {stored.type.dtype.value_or(stored.type.widened.value_or(DType::F32)),
                     Dims(stored.dims.begin(), stored.dims.end())};
  if (!stored.type.can_be_read()) {
    file_fault("tensor_type",
               fmt::format("tensor {} has elements of type {}, which cannot be decoded",
                           shown_name(stored.name), stored.type.name),
               stored.offset, "convert the file to another type first");
  }
  if (stored.type.dtype) {
    const bool borrows = owner && !stored.bytes.empty() && !decides_places(type.dtype) &&
                         is_aligned(stored.bytes.data(), type.dtype);
    if (borrows) {
      return Tensor::borrow(type, stored.bytes.data(), row_major_strides(stored.dims), owner);
    }
    Tensor out = Tensor::from_bytes(type, stored.bytes);
    check_bools(stored, out.bytes());
    return out;
  }
  if (stored.type.widened) return widened(stored, type);
  Tensor out = Tensor::zeros(type);
  if (out.numel() != 0) {
    quant::decode(
        *stored.type.format, stored.bytes,
        {reinterpret_cast<float*>(out.mutable_data()), static_cast<std::size_t>(out.numel())});
  }
  return out;
}

void check_directory(std::span<const StoredTensor> tensors) {
  std::unordered_set<std::string_view> names;
  std::vector<const StoredTensor*> order;
  for (const StoredTensor& t : tensors) {
    if (!names.insert(t.name).second) {
      file_fault("tensor_duplicate", fmt::format("two tensors are named {}", shown_name(t.name)),
                 t.offset);
    }
    if (!t.bytes.empty()) order.push_back(&t);
  }
  std::ranges::sort(order, {}, &StoredTensor::offset);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const StoredTensor& before = *order[i - 1];
    if (before.offset + before.bytes.size() > order[i]->offset) {
      file_fault("tensor_overlap",
                 fmt::format("tensors {} and {} overlap", shown_name(before.name),
                             shown_name(order[i]->name)),
                 order[i]->offset);
    }
  }
}

}  // namespace ricci::io
