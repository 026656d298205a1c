#include "backend/cpu/host/numbers.h"

#include <algorithm>

#include "backend/cpu/host/element.h"
#include "backend/cpu/host/simd.h"
#include "backend/cpu/host/view.h"

namespace ricci::cpu {
namespace {

template <class N, class T>
void read_run(const T* from, std::int64_t stride, std::int64_t count, N* to) {
  if (stride == 1) {
    vectorised([&]() RICCI_INLINE {
      for (std::int64_t i = 0; i < count; ++i) to[i] = load_as<N>(from + i);
    });
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = load_as<N>(from + i * stride);
  }
}

// Calls `run(offset, stride, count)` for stretches along the last axis.
template <class F>
void for_each_run(const ArrayView& v, std::int64_t begin, std::int64_t count, const F& run) {
  const std::size_t rank = v.dims.size();
  if (is_row_major(v)) {
    run(begin, 1, count);
    return;
  }
  const std::int64_t width = v.dims[rank - 1];
  const std::int64_t stride = v.strides[rank - 1];
  while (count > 0) {
    const std::int64_t column = begin % width;
    std::int64_t offset = column * stride;
    std::int64_t rest = begin / width;
    for (std::size_t a = rank - 1; a-- > 0;) {
      offset += rest % v.dims[a] * v.strides[a];
      rest /= v.dims[a];
    }
    const std::int64_t length = std::min(count, width - column);
    run(offset, stride, length);
    begin += length;
    count -= length;
  }
}

}  // namespace

template <class N>
void read_numbers(const ArrayView& from, std::int64_t begin, std::int64_t count, N* to) {
  if (count == 0) return;
  with_element_type(from.dtype, [&]<class T>() {
    for_each_run(from, begin, count,
                 [&](std::int64_t offset, std::int64_t stride, std::int64_t length) {
                   read_run(from.as<T>() + offset, stride, length, to);
                   to += length;
                 });
  });
}

template <class N>
void write_numbers(const ArrayView& to, std::int64_t begin, std::int64_t count, const N* from) {
  with_element_type(to.dtype, [&]<class T>() {
    T* out = to.as<T>() + begin;
    vectorised([&]() RICCI_INLINE {
      for (std::int64_t i = 0; i < count; ++i) out[i] = element_cast<T>(from[i]);
    });
  });
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define RICCI_NUMBERS(N)                                                           \
  template void read_numbers<N>(const ArrayView&, std::int64_t, std::int64_t, N*); \
  template void write_numbers<N>(const ArrayView&, std::int64_t, std::int64_t, const N*)
// NOLINTEND(bugprone-macro-parentheses)
RICCI_NUMBERS(float);
RICCI_NUMBERS(double);
RICCI_NUMBERS(std::int64_t);
RICCI_NUMBERS(std::complex<float>);
RICCI_NUMBERS(std::complex<double>);
#undef RICCI_NUMBERS

std::int64_t read_integer(const ArrayView& from) {
  std::int64_t value = 0;
  read_numbers(from, 0, 1, &value);
  return value;
}

std::uint64_t stream_key(const HostArguments& call, std::uint64_t key, std::int64_t operand) {
  if (operand < 0) return key;
  const ArrayView& from = call.operands[static_cast<std::size_t>(operand)];
  return key + static_cast<std::uint64_t>(read_integer(from));
}

}  // namespace ricci::cpu
