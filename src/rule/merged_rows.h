// The rows of all examples as one table, and indices into the rows of one example as indices into
// it.
#pragma once

#include "ricci/build/build.h"

namespace ricci::rule {

/// [B, N, …] → [B·N, …]
[[nodiscard]] inline Value merge_front(Value v) {
  Dims dims(v.dims().begin() + 1, v.dims().end());
  dims[0] = v.dims()[0] * dims[0];
  return reshape_to(v, std::move(dims));
}

/// Indices [B, k…] into `size` rows of each example as rows of the merged table: b·size + index.
/// Looked up rather than computed, so that each index is checked as the op alone does it.
[[nodiscard]] inline Value merged_rows(Value indices, const Dim& size) {
  const Dim batch = indices.dims()[0];
  Dim count = 1;
  for (std::size_t i = 1; i < indices.rank(); ++i) count = count * indices.dims()[i];
  const Value all = iota(indices.graph(), {.shape = {batch * size}, .dtype = DType::I64});
  const Value rows = take_along_axis(reshape_to(all, {batch, size}),
                                     reshape_to(indices, {batch, count}), {.axis = 1});
  return reshape_to(rows, indices.dims());
}

}  // namespace ricci::rule
