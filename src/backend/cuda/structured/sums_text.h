// What the texts of kernels that add up products have in common.
#pragma once

#include <string>
#include <string_view>

#include "ricci/type/dtype.h"

namespace ricci::cuda {

/// What is added up: small floats as f32, integers as they wrap.
[[nodiscard]] inline DType summed_in(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 ? DType::F32 : dtype;
}

/// Puts a text wherever a code has a name.
inline void fill_in(std::string& code, std::string_view name, std::string_view value) {
  for (std::size_t at = code.find(name); at != std::string::npos;
       at = code.find(name, at + value.size())) {
    code.replace(at, name.size(), value);
  }
}

}  // namespace ricci::cuda
