#include "ricci/array/nn.h"

#include <fmt/format.h>

#include "ricci/array/create.h"
#include "ricci/array/ops.h"
#include "ricci/build/conv.h"
#include "ricci/build/loss.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "array/node.h"
#include "array/wide.h"

namespace ricci {

using detail::apply;

namespace {

HeightWidth both(const Pair& p) { return {p.height, p.width}; }

Array pool_at(ReduceKind kind, const Array& x, Pair window, const PoolOptions& options,
              Here where) {
  return apply(Op(op::Pool{.kind = kind,
                           .kernel_size = both(window),
                           .stride = both(options.stride.value_or(window)),
                           .padding = both(options.padding),
                           .count_include_pad = true}),
               {x}, where);
}

}  // namespace

Array conv2d(const Array& x, const Array& w, const Conv2dOptions& options, Here where) {
  return apply(Op(op::Conv{.kernel_size = {},
                           .stride = both(options.stride),
                           .padding = both(options.padding),
                           .dilation = both(options.dilation),
                           .groups = options.groups}),
               {x, w}, where);
}
Array conv2d(const Array& x, const Array& w, const Array& bias, const Conv2dOptions& options,
             Here where) {
  return add(conv2d(x, w, options, where), reshape(bias, {-1, 1, 1}, where), where);
}
Array conv1d(const Array& x, const Array& w, const Conv1dOptions& options, Here where) {
  return apply(Op(op::Conv{.kernel_size = {},
                           .stride = {options.stride},
                           .padding = {options.padding},
                           .dilation = {options.dilation},
                           .groups = options.groups}),
               {x, w}, where);
}
Array conv_transpose2d(const Array& x, const Array& w, const ConvTranspose2dOptions& options,
                       Here where) {
  return detail::lift_one({x, w}, where, [&](auto v) {
    return ricci::conv_transpose2d(
        v[0], v[1],
        ConvTransposeOptions{.stride = both(options.stride),
                             .padding = both(options.padding),
                             .dilation = both(options.dilation),
                             .output_padding = both(options.output_padding),
                             .groups = options.groups},
        where);
  });
}
Array max_pool2d(const Array& x, Pair window, const PoolOptions& options, Here where) {
  return pool_at(ReduceKind::Max, x, window, options, where);
}
Array avg_pool2d(const Array& x, Pair window, const PoolOptions& options, Here where) {
  return pool_at(ReduceKind::Mean, x, window, options, where);
}
Array adaptive_avg_pool2d(const Array& x, Pair size, Here where) {
  const std::int64_t height = x.dim(-2).value();
  const std::int64_t width = x.dim(-1).value();
  if (size.height < 1 || size.width < 1 || height % size.height != 0 || width % size.width != 0) {
    detail::refuse(ErrorCode::Shape, "shape",
                   fmt::format("'adaptive_avg_pool2d' of {} to {} × {}", x.type().to_string(),
                               size.height, size.width),
                   "the sizes divide those of the image", where);
  }
  return avg_pool2d(x, {height / size.height, width / size.width}, {}, where);
}

Array softmax(const Array& x, std::int64_t axis, Here where) {
  return apply(Op(op::Softmax{.axis = axis}), {x}, where);
}
Array log_softmax(const Array& x, std::int64_t axis, Here where) {
  const auto of = [&](const Array& v) { return sub(v, logsumexp(v, axis, true, where), where); };
  return detail::in_wide(where, of, x);
}

Array cross_entropy(const Array& logits, const Array& target, Here where) {
  detail::require_valid(target, "cross_entropy", where);
  if (is_float(target.dtype()) && target.rank() == logits.rank()) {
    return mean(
        detail::lift_one({logits, target}, where,
                         [&](auto v) { return softmax_cross_entropy_dense(v[0], v[1], where); }),
        {}, false, where);
  }
  return mean(apply(Op(op::SoftmaxCrossEntropyWithLogits{}), {logits, target}, where), {}, false,
              where);
}
Array mse(const Array& a, const Array& b, Here where) {
  const auto of = [&](const Array& x, const Array& y) {
    return mean(square(sub(x, y, where), where), {}, false, where);
  };
  return detail::in_wide(where, of, a, b);
}
Array mse_loss(const Array& a, const Array& b, Here where) { return mse(a, b, where); }
Array l1_loss(const Array& a, const Array& b, Here where) {
  return mean(abs(sub(a, b, where), where), {}, false, where);
}
Array huber_loss(const Array& a, const Array& b, double delta, Here where) {
  const auto of = [&](const Array& x, const Array& y) {
    const Array d = abs(sub(x, y, where), where);
    const Array inside = mul(square(d, where), 0.5, where);
    const Array outside = mul(sub(d, delta / 2, where), delta, where);
    return mean(ricci::where(le(d, delta, where), inside, outside, where), {}, false, where);
  };
  return detail::in_wide(where, of, a, b);
}
Array nll_loss(const Array& log_probabilities, const Array& classes, Here where) {
  const Array index = expand_dims(classes, -1, where);
  return neg(mean(take_along_axis(log_probabilities, index, -1, where), {}, false, where), where);
}
Array binary_cross_entropy(const Array& p, const Array& target, Here where) {
  // Logarithms bounded as PyTorch's, so that 0 and 1 have finite losses.
  const auto bounded = [&](const Array& x) { return max(log(x, where), -100.0, where); };
  const Array one = sub(1.0, p, where);
  const Array no = sub(1.0, target, where);
  return neg(mean(add(mul(target, bounded(p), where), mul(no, bounded(one), where), where), {},
                  false, where),
             where);
}
Array binary_cross_entropy_with_logits(const Array& logits, const Array& target, Here where) {
  return mean(sub(softplus(logits, where), mul(logits, target, where), where), {}, false, where);
}
Array kl_div(const Array& log_p, const Array& target, Here where) {
  const auto of = [&](const Array& logs, const Array& q) {
    const Array log_q = log(ricci::where(gt(q, 0, where), q, 1.0, where), where);
    const Array each = mul(q, sub(log_q, logs, where), where);
    return mean(sum(each, -1, false, where), {}, false, where);
  };
  return detail::in_wide(where, of, log_p, target);
}
Array cosine_similarity(const Array& a, const Array& b, std::int64_t axis, double eps, Here where) {
  const auto length = [&](const Array& x) { return max(norm(x, axis, false, where), eps, where); };
  const auto of = [&](const Array& x, const Array& y) {
    return div(sum(mul(x, y, where), axis, false, where), mul(length(x), length(y), where), where);
  };
  return detail::in_wide(where, of, a, b);
}
Array normalize(const Array& x, std::int64_t axis, double eps, Here where) {
  const auto of = [&](const Array& v) {
    return div(v, max(norm(v, axis, true, where), eps, where), where);
  };
  return detail::in_wide(where, of, x);
}
Array layer_norm(const Array& x, double eps, Here where) {
  const Array gamma = full({x.dim(-1)}, 1, {.dtype = x.dtype()}, where);
  const Array beta = full({x.dim(-1)}, 0, {.dtype = x.dtype()}, where);
  return apply(Op(op::LayerNorm{.axis = -1, .eps = eps}), {x, gamma, beta}, where);
}
Array glu(const Array& x, std::int64_t axis, Here where) {
  const std::vector<Array> halves = split(x, 2, axis, where);
  return mul(halves[0], sigmoid(halves[1], where), where);
}
Array embedding(const Array& indices, const Array& table, Here where) {
  return take(table, indices, 0, where);
}
Array scaled_dot_product_attention(const Array& q, const Array& k, const Array& v,
                                   const AttentionOptions& options, Here where) {
  if (q.rank() != 4 || k.rank() != 4) {
    detail::refuse(ErrorCode::Shape, "attention",
                   fmt::format("'scaled_dot_product_attention' of {} and {}", q.type().to_string(),
                               k.type().to_string()),
                   "[batch, heads, places, width]", where);
  }
  op::Attention op{.num_heads = q.dim(1).value(),
                   .head_dim = q.dim(3).value(),
                   .mask_kind = options.causal ? MaskKind::causal() : MaskKind::none(),
                   .score_scale = {},
                   .attn_logit_softcap = {},
                   .num_kv_heads = k.dim(1).value(),
                   .layout = AttentionLayout::Bhsd};
  if (v.rank() == 4 && v.dim(3) != q.dim(3)) op.value_dim = v.dim(3).value();
  if (options.scale) op.score_scale = *options.scale;
  return apply(Op(std::move(op)), {q, k, v}, where);
}
Array linear(const Array& x, const Array& w, const Array& b, Here where) {
  return add(matmul(x, w, where), b, where);
}

}  // namespace ricci
