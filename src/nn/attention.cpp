#include "ricci/nn/attention.h"

#include <cmath>

#include <fmt/format.h>

#include "ricci/array/create.h"
#include "ricci/array/more.h"
#include "ricci/array/ops.h"
#include "ricci/array/shape.h"
#include "ricci/op/ops.h"

#include "array/node.h"
#include "nn/layer.h"

namespace ricci::nn {
namespace {

op::Attention attributes_of(const MultiHeadAttention& a, std::int64_t head_width, MaskKind mask) {
  return {.num_heads = a.heads,
          .head_dim = head_width,
          .mask_kind = mask,
          .score_scale = {},
          .attn_logit_softcap = {},
          .num_kv_heads = a.kv_heads,
          .layout = {}};
}

void require_sequence(const Array& x, Here where) {
  if (x.rank() == 3) return;
  detail::refuse(ErrorCode::Shape, "attention",
                 fmt::format("'MultiHeadAttention' of {}", x.type().to_string()),
                 "it takes [batch, places, width]", where);
}

// A full cache would be written at its end again, so its length is checked where it is known.
void require_room(const KvCache& cache, const Array& x, Here where) {
  const std::int64_t places = cache.k.dim(1).value();
  const std::int64_t next = x.dim(1).value();
  const bool known = cache.length.node()->trace == nullptr;
  const auto length = known ? static_cast<std::int64_t>(cache.length.item(where)) : 0;
  if (length + next <= places) return;
  detail::refuse(
      ErrorCode::Shape, "cache",
      fmt::format("a cache for {} places has {} and is given {} more", places, length, next),
      "make it for as many places as there will be", where);
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(std::int64_t width, std::int64_t head_count,
                                       const MultiHeadAttentionOptions& options)
    : heads(head_count),
      kv_heads(options.kv_heads == 0 ? head_count : options.kv_heads),
      causal(options.causal),
      rope(options.rope) {
  require_setting(heads > 0 && width % heads == 0, "MultiHeadAttention",
                  "the number of heads divides the width");
  require_setting(kv_heads > 0 && heads % kv_heads == 0, "MultiHeadAttention",
                  "the number of heads of keys and values divides the number of heads");
  require_setting(!rope || (width / heads) % 2 == 0, "MultiHeadAttention",
                  "rotary positions need heads of an even width");
  const LinearOptions map{.bias = options.bias, .init = options.init, .dtype = options.dtype};
  const std::int64_t memory = options.memory_width == 0 ? width : options.memory_width;
  q = Linear(width, width, map);
  k = Linear(memory, width / heads * kv_heads, map);
  v = Linear(memory, width / heads * kv_heads, map);
  out = Linear(width, width, map);
}

Array MultiHeadAttention::turned(const Array& x, const Array& first, Here where) const {
  if (!rope) return x;
  const std::int64_t half = head_width() / 2;
  const Array place = cast(add(arange(x.dim(1).value()), first, where), DType::F32, where);
  const double step = -std::log(*rope) / static_cast<double>(half);
  const Array speed = exp(mul(cast(arange(half), DType::F32, where), step, where), where);
  const Array angle = outer(place, speed, where);
  return ricci::rope(
      x, cast(cos(angle, where), x.dtype(), where), cast(sin(angle, where), x.dtype(), where),
      op::Rope{.head_dim = head_width(), .n_rot = {}, .style = RopeStyle::Neox}, where);
}

Array MultiHeadAttention::operator()(const Array& x, Here where) const {
  return (*this)(x, x, where);
}

Array MultiHeadAttention::operator()(const Array& x, const Array& memory, Here where) const {
  require_sequence(x, where);
  require_sequence(memory, where);
  const Array start = cast(Array(0), DType::I32, where);
  const op::Attention op =
      attributes_of(*this, head_width(), causal ? MaskKind::causal() : MaskKind::none());
  return out(attention(turned(q(x, where), start, where), turned(k(memory, where), start, where),
                       v(memory, where), op, where),
             where);
}

KvCache MultiHeadAttention::make_cache(std::int64_t batch, std::int64_t places) const {
  require_setting(batch > 0 && places > 0, "MultiHeadAttention", "a cache has a positive size");
  const Dims shape = {batch, places, k.w.dim(1)};
  return {zeros(shape, {.dtype = k.w.dtype()}), zeros(shape, {.dtype = v.w.dtype()}),
          zeros({}, {.dtype = DType::I32})};
}

std::pair<Array, KvCache> MultiHeadAttention::decode(const Array& x, const KvCache& cache,
                                                     Here where) const {
  require_sequence(x, where);
  require_room(cache, x, where);
  const std::int64_t next = x.dim(1).value();
  const std::int64_t places = cache.k.dim(1).value();
  const Array zero = cast(Array(0), DType::I32, where);
  const std::vector<Array> at = {zero, cache.length, zero};
  const KvCache after{
      dynamic_update_slice(cache.k, turned(k(x, where), cache.length, where), at, where),
      dynamic_update_slice(cache.v, v(x, where), at, where), add(cache.length, next, where)};
  const Array row = add(expand_dims(arange(next), 1, where), cache.length, where);
  const Array seen = le(expand_dims(arange(places), 0, where), row, where);
  const Array mask = reshape(seen, {1, 1, next, places}, where);
  const Array y = attention(turned(q(x, where), cache.length, where), after.k, after.v, mask,
                            attributes_of(*this, head_width(), MaskKind::custom()), where);
  return {out(y, where), after};
}

}  // namespace ricci::nn
