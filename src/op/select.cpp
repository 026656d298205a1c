#include "ricci/op/select.h"

#include <cmath>

#include "op/index_rules.h"

namespace ricci {
namespace {

void require_order(const InferContext& in, std::string_view label) {
  if (!is_complex(in[0].dtype)) return;
  in.reject(label, fmt::format("{} numbers have no order", name(in[0].dtype)),
            "compare a real quantity, such as the squared norm");
}

std::vector<Type> values_and_indices(const Type& values, DType index_dtype) {
  return {values, values.with(index_dtype)};
}

}  // namespace

Inferred infer(const op::Sort& op, const InferContext& in) {
  require_order(in, "c1");
  require_index_dtype(in, "c2", op.index_dtype);
  return values_and_indices(in[0], op.index_dtype);
}

Inferred infer(const op::ArgReduce& op, const InferContext& in) {
  require_order(in, "c1");
  require_index_dtype(in, "c2", op.index_dtype);
  const auto at = in[0].dims.begin() + op.axis.value;
  if (at->is(0)) {
    in.reject("c3", fmt::format("axis {} of {} is empty", op.axis.value, in[0].to_string()),
              "an empty range has no largest element");
  }
  Dims dims(in[0].dims.begin(), at);
  if (op.keep_dim) dims.emplace_back(1);
  dims.insert(dims.end(), at + 1, in[0].dims.end());
  return Type{op.index_dtype, std::move(dims)};
}

Inferred infer(const op::TopK& op, const InferContext& in) {
  require_order(in, "c1");
  require_index_dtype(in, "c2", op.index_dtype);
  if (in[0].rank() == 0) in.reject("c3", "a rank-0 value has no last axis", "reshape it to [1]");
  const Dim& size = in[0].dims.back();
  if (is_negative(op.k - 1)) {
    in.reject("c4", fmt::format("k is {}", op.k.to_string()), "one element or more is taken");
  }
  if (is_negative(size - op.k)) {
    in.reject("c4", fmt::format("k is {}, but the last axis of {} has size {}", op.k.to_string(),
                                in[0].to_string(), size.to_string()));
  }
  Type values = in[0];
  values.dims.back() = op.k;
  return values_and_indices(values, op.index_dtype);
}

Inferred infer(const op::Sample& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 1, dtypes::floats);
  require_index_dtype(in, "c2", op.index_dtype);
  const std::size_t rank = in[0].rank();
  if (rank < 1 || rank > 2 || in[0].dims.back().is(0)) {
    in.reject("c3", fmt::format("logits are {}", in[0].to_string()),
              "give [ids] or [batch, ids]; fold other axes into the batch");
  }
  if (!(op.temperature >= 0) || std::isinf(op.temperature)) {
    in.reject("c4", fmt::format("temperature is {}", op.temperature.value),
              "0 takes the largest logit, 1 leaves them as they are");
  }
  if (!(op.top_p > 0)) {
    in.reject("c5", fmt::format("top_p is {}", op.top_p.value), "1 keeps every id");
  }
  if (op.top_k < 0) in.reject("c5", fmt::format("top_k is {}", op.top_k), "0 keeps every id");
  if (in.operands.size() > 1 && (!is_int(in[1].dtype) || in[1].rank() != 0)) {
    in.reject("c6",
              fmt::format("the key operand is {}, not an integer of rank 0", in[1].to_string()));
  }
  return Type{op.index_dtype, Dims(in[0].dims.begin(), in[0].dims.end() - 1)};
}

}  // namespace ricci
