#include "ricci/op/block.h"

#include <fmt/format.h>

#include "op/infer_rules.h"

namespace ricci {
namespace {

Inferred infer_linear(const InferContext& in, const std::optional<UnaryKind>& activation) {
  require_dtypes(in, "c1", 0, in.operands.size(), dtypes::floats);
  const Dims& x = in[0].dims;
  const Dims& w = in[1].dims;
  if (x.empty() || w.size() != 2 || !(x.back() == w[0])) {
    in.reject("c2", fmt::format("x {} does not meet w {}", to_string(x), to_string(w)),
              "w is [inputs, outputs], and x ends in inputs");
  }
  if (in.operands.size() == 3 && in[2].dims != Dims{w[1]}) {
    in.reject("c3", fmt::format("the bias is {}, but the layer has {} outputs", in[2].to_string(),
                                w[1].to_string()));
  }
  if (activation) require_activation(in, "c4", *activation);
  Type out = in[0];
  out.dims.back() = w[1];
  return out;
}

}  // namespace

Inferred infer(const op::Linear& op, const InferContext& in) {
  return infer_linear(in, op.activation);
}
Inferred infer(const op::LinearFused& op, const InferContext& in) {
  return infer_linear(in, op.activation);
}

}  // namespace ricci
