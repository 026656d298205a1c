// The one element of a constant that repeats it.
#pragma once

#include <optional>

#include "ricci/type/tensor.h"

namespace ricci {

/// The element all elements are, as a rank-0 tensor; nothing for no tensor, an empty one, or one
/// that stores several.
[[nodiscard]] inline std::optional<Tensor> splat_element(const Tensor* t) {
  if (t == nullptr || !t->is_splat() || t->numel() == 0) return std::nullopt;
  Tensor element = *t;
  for (std::size_t axis = 0; axis < t->rank(); ++axis) element = element.narrowed(axis, 0, 1);
  return element.reshaped({});
}

}  // namespace ricci
