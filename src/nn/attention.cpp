#include "ricci/build/attention.h"

#include <cmath>

#include <fmt/format.h>

#include "ricci/array/create.h"
#include "ricci/array/lift.h"
#include "ricci/array/more.h"
#include "ricci/array/ops.h"
#include "ricci/array/shape.h"
#include "ricci/nn/transformer.h"
#include "ricci/op/ops.h"

#include "array/node.h"
#include "nn/layer.h"
#include "support/float_environment.h"

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
  return turned_to(x, add(arange(x.dim(1).value()), first, where), where);
}

Array MultiHeadAttention::turned_to(const Array& x, const Array& places, Here where) const {
  const DefaultFloatEnvironment floats;
  if (!rope) return x;
  const std::int64_t half = head_width() / 2;
  const Array place = cast(places, DType::F32, where);
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
  const KvRows rows = make_past(batch, places);
  return {rows.k, rows.v, zeros({}, {.dtype = DType::I32})};
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

KvRows MultiHeadAttention::make_past(std::int64_t rows, std::int64_t places) const {
  const auto room = [&](const Linear& map) {
    const DType dtype = map.packed ? DType::F32 : map.w.dtype();
    return zeros({rows, places, map.out_width()}, {.dtype = dtype});
  };
  return {room(k), room(v)};
}

// Two attentions, to the past and among the new places, that become one by the logarithms of their
// sums: so the past is read where it lies, and never copied.
std::pair<Array, KvRows> MultiHeadAttention::advance(const Array& x, const KvRows& past,
                                                     const StepPlaces& at, Here where) const {
  require_sequence(x, where);
  const std::int64_t rows = x.dim(0).value();
  const std::int64_t next = x.dim(1).value();
  const std::int64_t width = head_width();
  const Array position = add(expand_dims(at.first, 1, where), arange(next), where);
  const Array flat = reshape(position, {rows * next}, where);
  const auto turned_rows = [&](const Array& y) {
    if (!rope) return y;
    const Dims shape = y.shape();
    return reshape(turned_to(reshape(y, {rows * next, shape[2]}, where), flat, where), shape,
                   where);
  };
  const Array query = turned_rows(q(x, where));
  const KvRows now{turned_rows(k(x, where)), v(x, where)};
  const Array seen = lt(arange(past.k.dim(1).value()), expand_dims(at.first, 1, where), where);
  const auto [old_out, old_sum] = lift(
      [&](Value a, Value b, Value c, Value m) {
        const AttentionWithLse r =
            attention_with_lse(a, b, c, attributes_of(*this, width, MaskKind::custom()), m);
        return std::pair{r.out, r.lse};
      },
      query, past.k, past.v, seen);
  const auto [new_out, new_sum] = lift(
      [&](Value a, Value b, Value c) {
        const AttentionWithLse r =
            attention_with_lse(a, b, c, attributes_of(*this, width, MaskKind::causal()));
        return std::pair{r.out, r.lse};
      },
      query, now.k, now.v);
  // [rows, heads, next] to [rows, next, heads, 1]
  const Array share = expand_dims(
      transpose(sigmoid(sub(old_sum, new_sum, where), where), {0, 2, 1}, where), 3, where);
  const auto in_heads = [&](const Array& y) {
    return reshape(y, {rows, next, heads, width}, where);
  };
  const Array a = in_heads(old_out);
  const Array b = in_heads(new_out);
  const Array y = add(b, mul(cast(share, b.dtype(), where), sub(a, b, where), where), where);
  return {out(reshape(y, {rows, next, heads * width}, where), where), now};
}

}  // namespace ricci::nn
