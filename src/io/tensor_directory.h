// What every directory of tensors in a file must keep to: unique names, and bytes that are in the
// file and shared by no two.
#pragma once

#include <span>

#include "ricci/io/stored_tensor.h"

namespace ricci::io {

/// UserError(file.tensor_duplicate), UserError(file.tensor_overlap).
void check_directory(std::span<const StoredTensor> tensors);

}  // namespace ricci::io
