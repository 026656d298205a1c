#include "ricci/op/norm.h"

#include <initializer_list>

#include <fmt/format.h>

#include "op/infer_rules.h"

namespace ricci {
namespace {

// Every listed operand is a vector along x's `axis`.
void require_channel_vectors(const InferContext& in, const OpInfo& info, std::string_view label,
                             std::size_t axis, std::initializer_list<std::size_t> operands) {
  const Dims expected = {in[0].dims[axis]};
  for (const std::size_t k : operands) {
    if (in[k].dims == expected) continue;
    in.reject(label,
              fmt::format("{} is not {}, the size of axis {} of x {}", operand_text(in, info, k),
                          to_string(expected), axis, in[0].to_string()));
  }
}

void require_eps(const InferContext& in, std::string_view label, double eps) {
  if (eps >= 0) return;
  in.reject(label, fmt::format("eps is {}, but must not be negative", eps));
}

void require_shape_of_x(const InferContext& in, std::string_view label, std::size_t dy) {
  if (in[dy].dims == in[0].dims) return;
  in.reject(label, fmt::format("dy {} and x {} have different shapes", in[dy].to_string(),
                               in[0].to_string()));
}

void require_groups(const InferContext& in, std::int64_t groups) {
  if (in[0].rank() < 2) {
    in.reject("c2", fmt::format("x {} has no channel axis", in[0].to_string()),
              "x is [N, C, spatial…]");
  }
  const Dim& channels = in[0].dims[1];
  const bool uneven = channels.is_static() && groups > 0 && channels.value() % groups != 0;
  if (groups < 1 || uneven) {
    in.reject("c3", fmt::format("{} groups do not divide the {} channels of x {}", groups,
                                channels.to_string(), in[0].to_string()));
  }
}

// layer_norm and rms_norm have one set of constraints.
template <class T>
Inferred infer_along_axis(const T& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 3, dtypes::floats);
  require_channel_vectors(in, T::info, "c2", op.axis.index(), {1, 2});
  require_eps(in, "c3", op.eps);
  return in[0];
}

template <class T>
Inferred infer_along_axis_backward(const T& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 3, dtypes::floats);
  require_channel_vectors(in, T::info, "c2", op.axis.index(), {1});
  require_eps(in, "c3", op.eps);
  require_shape_of_x(in, "c4", 2);
  return std::vector<Type>{in[0], in[1], in[1]};
}

}  // namespace

Inferred infer(const op::LayerNorm& op, const InferContext& in) { return infer_along_axis(op, in); }
Inferred infer(const op::RmsNorm& op, const InferContext& in) { return infer_along_axis(op, in); }
Inferred infer(const op::LayerNormBackward& op, const InferContext& in) {
  return infer_along_axis_backward(op, in);
}
Inferred infer(const op::RmsNormBackward& op, const InferContext& in) {
  return infer_along_axis_backward(op, in);
}

Inferred infer(const op::GroupNorm& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 3, dtypes::floats);
  require_groups(in, op.num_groups);
  require_channel_vectors(in, op.info, "c4", 1, {1, 2});
  require_eps(in, "c5", op.eps);
  return in[0];
}

Inferred infer(const op::GroupNormBackward& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 3, dtypes::floats);
  require_groups(in, op.num_groups);
  require_channel_vectors(in, op.info, "c4", 1, {1});
  require_eps(in, "c5", op.eps);
  require_shape_of_x(in, "c6", 2);
  return std::vector<Type>{in[0], in[1], in[1]};
}

Inferred infer(const op::BatchNormInference& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 5, dtypes::floats);
  require_channel_vectors(in, op.info, "c2", op.axis.index(), {1, 2, 3, 4});
  require_eps(in, "c3", op.eps);
  return in[0];
}

Inferred infer(const op::BatchNormInferenceBackward& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 5, dtypes::floats);
  require_channel_vectors(in, op.info, "c2", op.axis.index(), {1, 2, 3});
  require_eps(in, "c3", op.eps);
  require_shape_of_x(in, "c4", 4);
  return std::vector<Type>{in[0], in[1], in[1], in[1], in[1]};
}

}  // namespace ricci
