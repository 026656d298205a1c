// What the functions of ricci/array/op_list.h do with an op.
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "ricci/array/array.h"
#include "ricci/op/op.h"

namespace ricci::detail {

[[nodiscard]] Array apply_op(Op op, std::vector<Array> operands, Here where);
[[nodiscard]] std::vector<Array> apply_op_all(Op op, std::vector<Array> operands, Here where);
template <std::size_t N>
[[nodiscard]] std::array<Array, N> apply_op_some(Op op, std::vector<Array> operands, Here where) {
  const std::vector<Array> all = apply_op_all(std::move(op), std::move(operands), where);
  std::array<Array, N> out;
  for (std::size_t i = 0; i < N; ++i) out[i] = all[i];
  return out;
}

}  // namespace ricci::detail
