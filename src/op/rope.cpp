#include "ricci/op/rope.h"

#include <algorithm>

#include <fmt/format.h>

#include "op/infer_rules.h"

namespace ricci {
namespace op {

void Rope::normalize(std::span<const Type>) {
  if (n_rot == head_dim) n_rot.reset();
}

void RopeBackward::normalize(std::span<const Type>) {
  if (n_rot == head_dim) n_rot.reset();
}

}  // namespace op

namespace {

// Both directions: operand 0 (x or dy), cos, sin; c1 to c5 mean the same in both.
void check_rope(const auto& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, in.operands.size(), dtypes::floats);
  const std::int64_t rotated = op.n_rot.value_or(op.head_dim);
  if (op.head_dim < 1 || op.head_dim % 2 != 0 || rotated < 0 || rotated % 2 != 0 ||
      rotated > op.head_dim) {
    in.reject("c2", fmt::format("head_dim is {} and n_rot is {}", op.head_dim, rotated),
              "both are even, and n_rot lies between 0 and head_dim");
  }
  const Dims& x = in[0].dims;
  const Dim width(op.head_dim);
  const bool fits = x.size() == 4   ? x[3] == width
                    : x.size() == 2 ? Dim::divide(x[1], width).has_value()
                                    : x.size() == 3 && Dim::divide(x[2], width).has_value();
  if (!fits) {
    in.reject("c3",
              fmt::format("{} does not hold heads of width {}", in[0].to_string(), op.head_dim));
  }
  const Dims& table = in[1].dims;
  if (table.size() != 2 || table[1] != Dim(op.head_dim / 2) || in[2].dims != table) {
    in.reject("c4", fmt::format("cos is {} and sin is {}, but a table has {} columns",
                                in[1].to_string(), in[2].to_string(), op.head_dim / 2));
  }
  const Dim& positions = x[x.size() == 2 ? 0 : 1];
  const auto spare = (table[0] - positions).try_value();
  if (spare && *spare < 0) {
    in.reject("c5", fmt::format("the tables have {} rows for {} positions", table[0].to_string(),
                                positions.to_string()));
  }
}

}  // namespace

Inferred infer(const op::Rope& op, const InferContext& in) {
  check_rope(op, in);
  return in[0];
}

Inferred infer(const op::RopeBackward& op, const InferContext& in) {
  check_rope(op, in);
  if (in.operands.size() < 4) return in[0];
  if (in[3].dims != in[0].dims) {
    in.reject("c6", fmt::format("x is {}, but dy is {}", in[3].to_string(), in[0].to_string()));
  }
  return std::vector<Type>{in[0], in[1], in[2]};
}

Inferred infer(const op::AxialRope2d& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 1, dtypes::floats);
  const bool sizes = op.end_x > 0 && op.end_y > 0 && op.num_heads > 0 && op.repeat_factor >= 0;
  if (!sizes || op.head_dim < 4 || op.head_dim % 4 != 0 || !(op.theta > 0)) {
    in.reject(
        "c2",
        fmt::format("a grid of {} by {}, {} heads of width {}, theta {}, repeated {}", op.end_x,
                    op.end_y, op.num_heads, op.head_dim, op.theta.value, op.repeat_factor),
        "sizes are positive and the width of a head a multiple of 4");
  }
  const Dim tokens = Dim(op.end_x) * op.end_y * std::max<std::int64_t>(op.repeat_factor, 1);
  if (in[0].rank() != 3 || in[0].dims[1] != tokens ||
      in[0].dims[2] != Dim(op.num_heads) * op.head_dim) {
    in.reject("c3", fmt::format("x is {}, not [batch, {}, {}]", in[0].to_string(),
                                tokens.to_string(), (Dim(op.num_heads) * op.head_dim).to_string()));
  }
  return in[0];
}

}  // namespace ricci
