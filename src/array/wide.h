// What is computed in f32 of smaller floats: counts leave their range, and sums of squares too.
#pragma once

#include <optional>

#include "ricci/array/array.h"
#include "ricci/array/ops.h"

#include "type/small_dtype.h"

namespace ricci::detail {

/// The small float that all floats among the arrays are.
template <class... X>
[[nodiscard]] std::optional<DType> common_small_float(const X&... x) {
  std::optional<DType> common;
  bool differ = false;
  const auto meet = [&](DType dtype) {
    if (!is_float(dtype)) return;
    differ = differ || !is_small_float(dtype) || common.value_or(dtype) != dtype;
    common = dtype;
  };
  (meet(x.dtype()), ...);
  return differ ? std::nullopt : common;
}

/// Small floats as f32; anything else as it is.
[[nodiscard]] inline Array wide_float(const Array& x, Here where) {
  return is_small_float(x.dtype()) ? cast(x, DType::F32, where) : x;
}

/// f(x…), for small floats of one dtype in f32 and rounded once.
template <class F, class... X>
[[nodiscard]] Array in_wide(Here where, F&& f, const X&... x) {
  const std::optional<DType> dtype = common_small_float(x...);
  if (!dtype) return f(x...);
  return cast(f(wide_float(x, where)...), *dtype, where);
}

}  // namespace ricci::detail
