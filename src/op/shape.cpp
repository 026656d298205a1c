#include "ricci/op/shape.h"

#include <algorithm>

#include <fmt/format.h>

#include "op/infer_rules.h"

namespace ricci {
namespace op {

void Reshape::normalize(std::span<const Type> operands) {
  const auto open = std::ranges::find_if(new_shape, [](const Dim& d) { return d.is(-1); });
  if (open == new_shape.end()) return;
  Dims known(new_shape.begin(), open);
  known.insert(known.end(), open + 1, new_shape.end());
  // What cannot be divided stays -1, and infer says why.
  if (const auto rest = Dim::divide(product(operands[0].dims), product(known))) *open = *rest;
}

void Expand::normalize(std::span<const Type> operands) {
  const Dims& from = operands[0].dims;
  for (std::size_t i = 0; i < target_shape.size(); ++i) {
    const std::size_t from_end = target_shape.size() - i;
    if (target_shape[i].is(-1) && from_end <= from.size()) {
      target_shape[i] = from[from.size() - from_end];
    }
  }
}

void Reverse::normalize(std::span<const Type>) { std::ranges::sort(axes, {}, &Axis::value); }

}  // namespace op

Inferred infer(const op::Reshape& op, const InferContext& in) {
  const auto negative = [](const Dim& d) { return d.is_static() && d.value() < 0; };
  if (std::ranges::any_of(op.new_shape, negative)) {
    in.reject(
        "c2",
        fmt::format("{} cannot be reshaped to {}", in[0].to_string(), to_string(op.new_shape)),
        "leave at most one entry as -1, next to sizes that divide the element count");
  }
  if (product(op.new_shape) != product(in[0].dims)) {
    in.reject("c1", fmt::format("{} has {} elements, {} has {}", to_string(in[0].dims),
                                product(in[0].dims).to_string(), to_string(op.new_shape),
                                product(op.new_shape).to_string()));
  }
  return in[0].with(op.new_shape);
}

Inferred infer(const op::Transpose& op, const InferContext& in) {
  Type out{in[0].dtype, {}};
  std::vector<bool> seen(in[0].rank(), false);
  for (const Axis a : op.perm) {
    if (seen[a.index()]) break;
    seen[a.index()] = true;
    out.dims.push_back(in[0].dims[a.index()]);
  }
  if (out.rank() != in[0].rank() || op.perm.size() != in[0].rank()) {
    in.reject("c1",
              fmt::format("perm has {} entries and is no permutation of the {} axes of {}",
                          op.perm.size(), in[0].rank(), in[0].to_string()),
              "list every axis once");
  }
  return out;
}

Inferred infer(const op::Expand& op, const InferContext& in) {
  for (const Dim& d : op.target_shape) {
    if (d.is_static() && d.value() < 0) {
      in.reject(
          "c2",
          fmt::format("{} does not expand to {}", in[0].to_string(), to_string(op.target_shape)),
          "-1 keeps a size of x, right-aligned; new leading axes need their size");
    }
  }
  const auto result = broadcast(in[0].dims, op.target_shape);
  if (!result || *result != op.target_shape) {
    in.reject(
        "c1",
        fmt::format("{} does not expand to {}", in[0].to_string(), to_string(op.target_shape)),
        "aligned from the right, sizes must be equal or 1 in the operand");
  }
  return in[0].with(op.target_shape);
}

Inferred infer(const op::Narrow& op, const InferContext& in) {
  const Dim& size = in[0].dims[op.axis.index()];
  const auto negative = [](const Dim& d) { return d.is_static() && d.value() < 0; };
  // With symbols left, only what is certain is refused.
  const Dim room = size - (op.start + op.len);
  if (negative(op.start) || negative(op.len) || negative(room)) {
    in.reject("c1", fmt::format("[{}, {} + {}) is outside axis {} of size {}", op.start.to_string(),
                                op.start.to_string(), op.len.to_string(), op.axis.value,
                                size.to_string()));
  }
  Type out = in[0];
  out.dims[op.axis.index()] = op.len;
  return out;
}

Inferred infer(const op::TakeEvery& op, const InferContext& in) {
  if (op.stride < 1) in.reject("c1", fmt::format("the stride is {}", op.stride));
  const Dim& size = in[0].dims[op.axis.index()];
  const auto count = floor_divide(size + (op.stride - 1), op.stride);
  if (!count) {
    in.reject("c2",
              fmt::format("{} / {} is not a whole number of symbols", size.to_string(), op.stride),
              "bind the size, or write it as a multiple of the stride");
  }
  Type out = in[0];
  out.dims[op.axis.index()] = *count;
  return out;
}

Inferred infer(const op::Concat& op, const InferContext& in) {
  if (in.operands.empty()) in.reject("c1", "there is nothing to join", "give at least one operand");
  require_dtypes(in, "c2", 0, in.operands.size(), dtypes::all);
  Type out = in[0];
  Dim& total = out.dims[op.axis.index()];
  for (std::size_t k = 1; k < in.operands.size(); ++k) {
    Dims rest = in[k].dims;
    if (rest.size() == out.rank()) {
      rest[op.axis.index()] = in[0].dims[op.axis.index()];
    }
    if (rest != in[0].dims) {
      in.reject("c3",
                fmt::format("{} and {} do not join along axis {}", to_string(in[0].dims),
                            to_string(in[k].dims), op.axis.value),
                "ranks and all other sizes must be equal");
    }
    total += in[k].dims[op.axis.index()];
  }
  return out;
}

Inferred infer(const op::Reverse& op, const InferContext& in) {
  if (std::ranges::adjacent_find(op.axes) != op.axes.end()) {
    in.reject("c1", "an axis is listed twice", "list every axis once");
  }
  return in[0];
}

Inferred infer(const op::Pad& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 2, dtypes::all);
  if (in[1].rank() != 0) {
    in.reject("c2", fmt::format("value has shape {}, not []", to_string(in[1].dims)),
              "reshape it to rank 0");
  }
  if (op.low.size() != in[0].rank() || op.high.size() != in[0].rank()) {
    in.reject("c3", fmt::format("low has {} entries and high {}, but {} has {} axes", op.low.size(),
                                op.high.size(), in[0].to_string(), in[0].rank()));
  }
  Type out = in[0];
  for (std::size_t i = 0; i < out.rank(); ++i) out.dims[i] += op.low[i] + op.high[i];
  require_non_negative(in, "c4", out.dims);
  return out;
}

}  // namespace ricci
