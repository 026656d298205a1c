// Shapes of views, and views that are made from others.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "backend/cpu/run/host_call.h"

namespace ricci::cpu {

[[nodiscard]] inline std::int64_t count_of(std::span<const std::int64_t> dims) {
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= d;
  return count;
}

using loop::AxisSplit;

[[nodiscard]] inline bool is_row_major(const ArrayView& v) {
  std::int64_t expected = 1;
  for (std::size_t a = v.dims.size(); a-- > 0;) {
    if (v.dims[a] == 0) return true;
    if (v.dims[a] != 1 && v.strides[a] != expected) return false;
    expected *= v.dims[a];
  }
  return true;
}

/// A view that owns its sizes and strides.
class OwnedView {
 public:
  static constexpr std::size_t MostAxes = 64;

  explicit OwnedView(const ArrayView& v) : OwnedView(v.data, v.dtype, v.dims) {
    std::copy(v.strides.begin(), v.strides.end(), strides_.begin());
  }
  /// Row-major.
  OwnedView(std::byte* data, DType dtype, std::span<const std::int64_t> dims)
      : data_(data), dtype_(dtype), rank_(dims.size()) {
    check_internal(rank_ <= MostAxes, "an array has too many axes");
    std::copy(dims.begin(), dims.end(), dims_.begin());
    std::int64_t stride = 1;
    for (std::size_t a = rank_; a-- > 0;) {
      strides_[a] = stride;
      stride *= dims[a];
    }
  }

  /// Keeps [start, start + len) of an axis.
  OwnedView& narrow(std::size_t axis, std::int64_t start, std::int64_t len) {
    data_ += start * strides_[axis] * size_of(dtype_);
    dims_[axis] = len;
    return *this;
  }
  /// Axis k becomes what axis perm(k) was.
  template <class Perm>
  OwnedView& permute(const Perm& perm) {
    const OwnedView old = *this;
    for (std::size_t k = 0; k < rank_; ++k) {
      dims_[k] = old.dims_[perm(k)];
      strides_[k] = old.strides_[perm(k)];
    }
    return *this;
  }

  [[nodiscard]] ArrayView view() const {
    return {data_, dtype_, std::span(dims_).first(rank_), std::span(strides_).first(rank_)};
  }

 private:
  std::byte* data_;
  DType dtype_;
  std::size_t rank_;
  std::array<std::int64_t, MostAxes> dims_;
  std::array<std::int64_t, MostAxes> strides_;
};

}  // namespace ricci::cpu
