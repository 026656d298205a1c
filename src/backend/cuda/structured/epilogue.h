// What a product's library can do with the result before it stores it. Whether the kernel behind a
// product is such a thing is read from its instructions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ricci/compiler/schedule/program.h"

namespace ricci::cuda {

/// y = f(product + bias + added): `bias` one number a column, `added` an array as the product.
/// Arguments are those of the call's kernel behind it; -1: there is none.
struct Epilogue {
  enum class Function : std::uint8_t { None, Relu, Gelu };
  Function function = Function::None;
  DType dtype = DType::F32;  ///< of all but the product's operands
  std::int32_t bias = -1;
  std::int64_t bias_offset = 0;  ///< of its first number, in elements
  std::int32_t added = -1;
  std::int32_t inner = -1;  ///< where what f is applied to is stored too
  std::int32_t result = -1;
};

/// Nothing when the kernel behind the call does anything else, or when somebody else reads the
/// product itself.
[[nodiscard]] std::optional<Epilogue> epilogue_of(const Program& program, const CallStep& call);

/// `bias gelu`, for reports.
[[nodiscard]] std::string words_for(const Epilogue& epilogue);

}  // namespace ricci::cuda
