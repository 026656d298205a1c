// Checks shared by the type rules of ops that take or give indices.
#pragma once

#include <fmt/format.h>

#include "op/infer_rules.h"

namespace ricci {

/// Dtypes an index operand may have. Narrower floats hold too few integers.
inline constexpr DTypeSet IndexOperandDTypes = dtypes::ints | DTypeSet{DType::F32, DType::F64};
/// Dtypes an op may give indices in.
inline constexpr DTypeSet IndexResultDTypes = {DType::I32, DType::I64, DType::U32, DType::F32};

inline void require_indices(const InferContext& in, std::string_view label, std::size_t k) {
  if (IndexOperandDTypes.has(in[k].dtype)) return;
  in.reject(label, fmt::format("{} cannot hold indices", name(in[k].dtype)),
            "cast to an integer dtype");
}

inline void require_index_dtype(const InferContext& in, std::string_view label, DType dtype) {
  if (IndexResultDTypes.has(dtype)) return;
  in.reject(label, fmt::format("indices are not given in {}", name(dtype)),
            "choose i32, i64, u32 or f32");
}

/// Certainly negative; with symbols left nothing is certain.
[[nodiscard]] inline bool is_negative(const Dim& d) { return d.try_value().value_or(0) < 0; }

}  // namespace ricci
