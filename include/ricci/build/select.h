// Indices of chosen elements by name.
#pragma once

#include "ricci/build/build.h"

namespace ricci {

struct ArgOptions {
  Axis axis = -1;
  bool keep_dim = false;
  DType index_dtype = DType::I32;
};
/// Where the largest element along an axis is.
Value arg_max(Value x, ArgOptions options = {},
              std::source_location loc = std::source_location::current());
/// Where the smallest element along an axis is.
Value arg_min(Value x, ArgOptions options = {},
              std::source_location loc = std::source_location::current());

/// The indices of `sort` alone.
Value arg_sort(Value x, op::Sort attrs = {},
               std::source_location loc = std::source_location::current());
/// The indices of `top_k` alone.
Value top_k_indices(Value x, op::TopK attrs,
                    std::source_location loc = std::source_location::current());

}  // namespace ricci
