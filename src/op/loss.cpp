#include "ricci/op/loss.h"

#include <fmt/format.h>

#include "op/infer_rules.h"

namespace ricci {
namespace {

constexpr DTypeSet LabelDTypes = dtypes::ints | DTypeSet{DType::F32, DType::F64};

// Checks logits and labels (c1 to c4); gives the type of one loss per label.
Type loss_type(const InferContext& in) {
  const Type& logits = in[0];
  if (logits.rank() < 1 || logits.dims.back().is(0)) {
    in.reject("c1", fmt::format("'logits' ({}) hold no classes", logits.to_string()),
              "the last axis counts classes");
  }
  const Dims leading(logits.dims.begin(), logits.dims.end() - 1);
  if (in[1].dims != leading) {
    in.reject("c2", fmt::format("'labels' ({}) are not {}, one per row of 'logits' ({})",
                                in[1].to_string(), to_string(leading), logits.to_string()));
  }
  require_dtypes(in, "c3", 0, 1, dtypes::floats);
  if (!LabelDTypes.has(in[1].dtype)) {
    in.reject("c4", fmt::format("{} cannot hold class numbers", name(in[1].dtype)),
              "cast the labels to i32 or i64");
  }
  return logits.with(leading);
}

}  // namespace

Inferred infer(const op::SoftmaxCrossEntropyWithLogits&, const InferContext& in) {
  return loss_type(in);
}

Inferred infer(const op::SoftmaxCrossEntropyBackward&, const InferContext& in) {
  const Type loss = loss_type(in);
  if (in[2].dims != loss.dims) {
    in.reject("c5", fmt::format("'d_loss' ({}) has another shape than 'labels' ({})",
                                in[2].to_string(), in[1].to_string()));
  }
  if (in[2].dtype != loss.dtype) {
    in.reject(
        "c6",
        fmt::format("'d_loss' is {}, but 'logits' are {}", name(in[2].dtype), name(loss.dtype)),
        "cast one of them");
  }
  return in[0];
}

}  // namespace ricci
