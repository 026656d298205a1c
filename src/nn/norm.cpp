#include <fmt/format.h>

#include "ricci/array/create.h"
#include "ricci/array/ops.h"
#include "ricci/array/shape.h"
#include "ricci/nn/layers.h"
#include "ricci/op/ops.h"

#include "array/node.h"
#include "array/wide.h"
#include "nn/layer.h"
#include "support/float_environment.h"

namespace ricci::nn {
namespace {

void require_width(std::int64_t width, const char* layer) {
  require_setting(width > 0, layer, "its width is a positive number");
}

Array unit(std::int64_t n, DType dtype) { return ones({n}, {.dtype = dtype}); }
Array zero(std::int64_t n, DType dtype) { return zeros({n}, {.dtype = dtype}); }

}  // namespace

LayerNorm::LayerNorm(std::int64_t width, const NormOptions& options) : eps(options.eps) {
  require_width(width, "LayerNorm");
  w = unit(width, options.dtype);
  b = zero(width, options.dtype);
}

Array LayerNorm::operator()(const Array& x, Here where) const {
  return layer_norm(x, w, b, op::LayerNorm{.axis = -1, .eps = eps}, where);
}

RMSNorm::RMSNorm(std::int64_t width, const NormOptions& options) : eps(options.eps) {
  require_width(width, "RMSNorm");
  w = unit(width, options.dtype);
}

Array RMSNorm::operator()(const Array& x, Here where) const {
  return rms_norm(x, w, full(w.shape(), 0, {.dtype = w.dtype()}, where),
                  op::RmsNorm{.axis = -1, .eps = eps}, where);
}

GroupNorm::GroupNorm(std::int64_t group_count, std::int64_t channels, const NormOptions& options)
    : groups(group_count), eps(options.eps) {
  require_setting(groups > 0 && channels > 0 && channels % groups == 0, "GroupNorm",
                  "the number of groups divides the number of channels");
  w = unit(channels, options.dtype);
  b = zero(channels, options.dtype);
}

Array GroupNorm::operator()(const Array& x, Here where) const {
  return group_norm(x, w, b, op::GroupNorm{.num_groups = groups, .eps = eps}, where);
}

BatchNorm::BatchNorm(std::int64_t channels, const BatchNormOptions& options)
    : eps(options.eps), momentum(options.momentum) {
  require_width(channels, "BatchNorm");
  w = unit(channels, options.dtype);
  b = zero(channels, options.dtype);
  mean.value = zero(channels, options.dtype);
  var.value = unit(channels, options.dtype);
}

Array BatchNorm::operator()(const Array& x, Here where) const {
  const DefaultFloatEnvironment floats;
  if (!is_training()) {
    return batch_norm_inference(x, w, b, mean.value, var.value,
                                op::BatchNormInference{.axis = 1, .eps = eps}, where);
  }
  const std::int64_t channels = w.size();
  const std::int64_t count = x.size() / channels;
  if (x.rank() < 2 || x.dim(1) != channels || count < 2) {
    detail::refuse(
        ErrorCode::Shape, "batch_norm",
        fmt::format("'BatchNorm' of {} channels is trained on {}", channels, x.type().to_string()),
        "it takes [N, channels, ..] with at least two numbers for every channel", where);
  }
  Axes others;
  Dims shape(x.rank(), Dim(1));
  shape[1] = channels;
  for (std::size_t a = 0; a < x.rank(); ++a) {
    if (a != 1) others.emplace_back(static_cast<std::int64_t>(a));
  }
  // Of small floats in f32: squares and counts leave their range.
  const auto wide = [&](const Array& v) { return detail::wide_float(v, where); };
  const Array all = wide(x);
  const Array center = ricci::mean(all, others, true, where);
  const Array offset = sub(all, center, where);
  const Array spread = ricci::mean(square(offset, where), others, true, where);
  const auto follow = [&](const Buffer& buffer, const Array& now) {
    const Array before = buffer.current();
    const Array next = stop_gradient(reshape(now, {channels}, where), where);
    const Array moved =
        add(mul(wide(before), 1 - momentum, where), mul(next, momentum, where), where);
    buffer.update(cast(moved, before.dtype(), where), where);
  };
  const double unbiased = static_cast<double>(count) / static_cast<double>(count - 1);
  follow(mean, center);
  follow(var, mul(spread, unbiased, where));
  const Array scale =
      div(reshape(wide(w), shape, where), sqrt(add(spread, eps, where), where), where);
  const Array out = add(mul(offset, scale, where), reshape(wide(b), shape, where), where);
  const std::optional<DType> small = detail::common_small_float(x, w);
  return small ? cast(out, *small, where) : out;
}

Dropout::Dropout(double probability) : p(probability) {
  require_setting(p >= 0 && p < 1, "Dropout", "a probability in [0, 1)");
}

Array Dropout::operator()(const Array& x, Here where) const {
  TrainingScope* scope = training_scope();
  if (scope == nullptr || p == 0) return x;
  return dropout(scope->next_key(where), x, p, where);
}

}  // namespace ricci::nn
