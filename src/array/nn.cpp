#include "ricci/array/nn.h"

#include "ricci/array/ops.h"
#include "ricci/build/loss.h"
#include "ricci/op/ops.h"

#include "array/node.h"

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
Array max_pool2d(const Array& x, Pair window, const PoolOptions& options, Here where) {
  return pool_at(ReduceKind::Max, x, window, options, where);
}
Array avg_pool2d(const Array& x, Pair window, const PoolOptions& options, Here where) {
  return pool_at(ReduceKind::Mean, x, window, options, where);
}

Array softmax(const Array& x, std::int64_t axis, Here where) {
  return apply(Op(op::Softmax{.axis = axis}), {x}, where);
}
Array log_softmax(const Array& x, std::int64_t axis, Here where) {
  return sub(x, logsumexp(x, axis, true, where), where);
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
  return mean(square(sub(a, b, where), where), {}, false, where);
}
Array linear(const Array& x, const Array& w, const Array& b, Here where) {
  return add(matmul(x, w, where), b, where);
}

}  // namespace ricci
