#include "ricci/array/create.h"
#include "ricci/array/ops.h"
#include "ricci/array/shape.h"
#include "ricci/nn/layers.h"
#include "ricci/op/ops.h"

#include "nn/layer.h"

namespace ricci::nn {

Array PackedWeight::operator()(const Array& x, Here where) const {
  const op::DequantMatmul how{.scheme = scheme, .depth = in, .int8_activations = int8_activations};
  if (offset.valid()) return dequant_matmul(x, codes, scale, offset, how, where);
  if (scale.valid()) return dequant_matmul(x, codes, scale, how, where);
  return dequant_matmul(x, codes, how, where);
}

std::int64_t Linear::in_width() const { return packed ? packed->in : w.dim(0).value(); }

std::int64_t Linear::out_width() const { return packed ? packed->out : w.dim(1).value(); }

Linear::Linear(std::int64_t in, std::int64_t out, const LinearOptions& options)
    : w(drawn_weight("Linear", options.init, {in, out}, options.dtype)) {
  if (options.bias) b = zeros({out}, {.dtype = options.dtype});
}

Array Linear::effective_weight(Here where) const {
  require_setting(!packed, "Linear", "a weight in few bits takes no adapter");
  if (!adapter) return w;
  const Adapter& a = *adapter;
  if (a.kind == Adapter::Kind::IA3) return mul(w, a.factor, where);
  const Array moved = add(w, mul(matmul(a.a, a.b, where), a.scale, where), where);
  if (a.kind == Adapter::Kind::LoRA) return moved;
  // The length counts as a constant, as in the paper: its gradient is costly and hardly matters.
  const Array length = stop_gradient(norm(moved, 0, true, where), where);
  return mul(moved, div(a.magnitude, length, where), where);
}

Array Linear::operator()(const Array& x, Here where) const {
  Array y;
  if (packed) {
    y = (*packed)(x, where);
  } else if (adapter && adapter->kind == Adapter::Kind::LoRA) {
    y = lora_matmul(x, w, adapter->a, adapter->b, op::LoraMatmul{.scale = adapter->scale}, where);
  } else {
    y = matmul(x, !adapter || adapter->kind == Adapter::Kind::IA3 ? w : effective_weight(where),
               where);
  }
  if (b.valid()) y = add(y, b, where);
  if (adapter && adapter->kind == Adapter::Kind::IA3) y = mul(y, adapter->factor, where);
  return y;
}

Embedding::Embedding(std::int64_t count, std::int64_t width, const EmbeddingOptions& options)
    : w(drawn_weight("Embedding", options.init, {count, width}, options.dtype)) {}

Array Embedding::operator()(const Array& indices, Here where) const {
  return take(w, indices, 0, where);
}

Array Embedding::attend(const Array& x, Here where) const {
  return packed ? (*packed)(x, where) : matmul(x, transpose(w, {}, where), where);
}

}  // namespace ricci::nn
