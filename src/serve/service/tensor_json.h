// Tensors as nested arrays of JSON, and back.
#pragma once

#include <string>
#include <string_view>

#include "ricci/type/tensor.h"

#include "io/json_cursor.h"

namespace ricci::serve {

/// What comes next, as a tensor of a type whose sizes may be symbols. UserError(file.json) with the
/// byte when rows differ in length, or when it has another rank or size or other elements.
[[nodiscard]] Tensor read_tensor(io::JsonCursor& json, std::string_view text, const Type& type);
/// Rows in rows. What is no finite number is null.
void write_tensor(std::string& out, const Tensor& tensor);

}  // namespace ricci::serve
