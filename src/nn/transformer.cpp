#include "ricci/nn/transformer.h"

#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "ricci/array/control.h"
#include "ricci/array/create.h"
#include "ricci/array/ops.h"
#include "ricci/array/shape.h"

#include "array/node.h"
#include "nn/layer.h"

namespace ricci::nn {
namespace {

Array activated(Activation activation, const Array& x, Here where) {
  switch (activation) {
    case Activation::Gelu: return gelu(x, where);
    case Activation::GeluTanh: return gelu_approx(x, where);
    case Activation::Relu: return relu(x, where);
    case Activation::Silu: return silu(x, where);
  }
  throw InternalError("there is no other activation");
}

// Positions are rows of a table: a sequence cannot have more places.
void require_places(const char* model, const Embedding& places, std::int64_t length, Here where) {
  const std::int64_t most = places.w.dim(0).value();
  if (length <= most) return;
  detail::refuse(
      ErrorCode::Shape, "context",
      fmt::format("{} '{}' with a context of {} is given {} places",
                  std::string_view(model).starts_with('E') ? "an" : "a", model, most, length),
      "cut the sequence, or make the context larger", where);
}

LinearOptions map_of(const FeedForwardOptions& o) {
  return {.bias = o.bias, .init = o.init, .dtype = o.dtype};
}

std::int64_t hidden_of(std::int64_t width, const BlockOptions& o) {
  return o.hidden == 0 ? 4 * width : o.hidden;
}

MultiHeadAttention self_attention(std::int64_t width, std::int64_t heads, bool causal,
                                  const BlockOptions& o) {
  return {
      width, heads, {.kv_heads = o.kv_heads, .causal = causal, .rope = o.rope, .dtype = o.dtype}};
}

}  // namespace

FeedForward::FeedForward(std::int64_t width, std::int64_t hidden, const FeedForwardOptions& options)
    : in(width, hidden, map_of(options)),
      out(hidden, width, map_of(options)),
      activation(options.activation) {}

Array FeedForward::operator()(const Array& x, Here where) const {
  return out(activated(activation, in(x, where), where), where);
}

SwiGLU::SwiGLU(std::int64_t width, std::int64_t hidden, const FeedForwardOptions& options)
    : gate(width, hidden, map_of(options)),
      up(width, hidden, map_of(options)),
      down(hidden, width, map_of(options)) {}

Array SwiGLU::operator()(const Array& x, Here where) const {
  return down(mul(silu(gate(x, where), where), up(x, where), where), where);
}

EncoderBlock::EncoderBlock(std::int64_t width, std::int64_t heads, const BlockOptions& options)
    : attention_norm(width, {.dtype = options.dtype}),
      attention(self_attention(width, heads, false, options)),
      feed_norm(width, {.dtype = options.dtype}),
      feed(width, hidden_of(width, options), {.dtype = options.dtype}),
      drop(options.dropout) {}

Array EncoderBlock::operator()(const Array& x, Here where) const {
  const Array y = add(x, drop(attention(attention_norm(x, where), where), where), where);
  return add(y, drop(feed(feed_norm(y, where), where), where), where);
}

CrossAttention::CrossAttention(std::int64_t width, std::int64_t heads, const BlockOptions& options)
    : norm(width, {.dtype = options.dtype}),
      attention(width, heads,
                {.kv_heads = options.kv_heads,
                 .memory_width = options.memory_width,
                 .dtype = options.dtype}) {}

Array CrossAttention::operator()(const Array& x, const Array& memory, Here where) const {
  return attention(norm(x, where), memory, where);
}

DecoderBlock::DecoderBlock(std::int64_t width, std::int64_t heads, const BlockOptions& options)
    : attention_norm(width, {.eps = options.eps, .dtype = options.dtype}),
      attention(self_attention(width, heads, true, options)),
      feed_norm(width, {.eps = options.eps, .dtype = options.dtype}),
      feed(width, hidden_of(width, options),
           {.dtype = options.dtype, .activation = options.activation}),
      drop(options.dropout) {
  if (options.memory_width > 0) cross.emplace(width, heads, options);
}

Array DecoderBlock::fed(const Array& x, Here where) const {
  return add(x, drop(feed(feed_norm(x, where), where), where), where);
}

Array DecoderBlock::operator()(const Array& x, Here where) const {
  if (cross) {
    detail::refuse(ErrorCode::Refused, "memory", "a 'DecoderBlock' with a memory is called without",
                   "call it with both: block(x, memory)", where);
  }
  return fed(add(x, drop(attention(attention_norm(x, where), where), where), where), where);
}

Array DecoderBlock::operator()(const Array& x, const Array& memory, Here where) const {
  if (!cross) {
    detail::refuse(ErrorCode::Refused, "memory", "a 'DecoderBlock' without a memory is given one",
                   "say its width: BlockOptions::memory_width", where);
  }
  const Array y = add(x, drop(attention(attention_norm(x, where), where), where), where);
  return fed(add(y, drop((*cross)(y, memory, where), where), where), where);
}

std::pair<Array, KvCache> DecoderBlock::decode(const Array& x, const KvCache& cache,
                                               Here where) const {
  auto [y, after] = attention.decode(attention_norm(x, where), cache, where);
  return {fed(add(x, y, where), where), after};
}

std::pair<Array, KvRows> DecoderBlock::advance(const Array& x, const KvRows& past,
                                               const StepPlaces& at, Here where) const {
  auto [y, now] = attention.advance(attention_norm(x, where), past, at, where);
  return {fed(add(x, y, where), where), now};
}

EncoderDecoder::EncoderDecoder(const EncoderDecoderOptions& o)
    : sources(o.source_vocabulary, o.width, {.init = normal(0.02), .dtype = o.dtype}),
      tokens(o.vocabulary, o.width, {.init = normal(0.02), .dtype = o.dtype}),
      places(o.context, o.width, {.init = normal(0.02), .dtype = o.dtype}),
      encoder_norm(o.width, {.dtype = o.dtype}),
      norm(o.width, {.dtype = o.dtype}),
      drop(o.dropout) {
  require_setting(o.layers > 0, "EncoderDecoder", "at least one layer");
  BlockOptions block{
      .hidden = o.hidden, .dropout = o.dropout, .dtype = o.dtype, .activation = o.activation};
  for (std::int64_t i = 0; i < o.layers; ++i) encoder.emplace_back(o.width, o.heads, block);
  block.memory_width = o.width;
  for (std::int64_t i = 0; i < o.layers; ++i) decoder.emplace_back(o.width, o.heads, block);
}

Array EncoderDecoder::embedded(const Embedding& table, const Array& ids, Here where) const {
  const std::int64_t length = ids.dim(1).value();
  require_places("EncoderDecoder", places, length, where);
  return drop(add(table(ids, where), places(arange(length), where), where), where);
}

Array EncoderDecoder::encode(const Array& source, Here where) const {
  Array x = embedded(sources, source, where);
  for (const EncoderBlock& block : encoder) x = block(x, where);
  return encoder_norm(x, where);
}

Array EncoderDecoder::decode(const Array& target, const Array& memory, Here where) const {
  Array x = embedded(tokens, target, where);
  for (const DecoderBlock& block : decoder) x = block(x, memory, where);
  return tokens.attend(norm(x, where), where);
}

Gpt::Gpt(const GptOptions& o)
    : tokens(o.vocabulary, o.width, {.init = normal(0.02), .dtype = o.dtype}),
      norm(o.width, {.eps = o.eps, .dtype = o.dtype}),
      drop(o.dropout) {
  require_setting(o.layers > 0, "Gpt", "at least one layer");
  if (!o.rope) places.emplace(o.context, o.width, EmbeddingOptions{normal(0.02), o.dtype});
  const BlockOptions block{.hidden = o.hidden,
                           .dropout = o.dropout,
                           .kv_heads = o.kv_heads,
                           .rope = o.rope,
                           .dtype = o.dtype,
                           .activation = o.activation,
                           .eps = o.eps};
  for (std::int64_t i = 0; i < o.layers; ++i) blocks.emplace_back(o.width, o.heads, block);
}

Array Gpt::embedded(const Array& ids, const Array& first, Here where) const {
  const Array x = tokens(ids, where);
  if (!places) return x;
  const std::int64_t length = ids.dim(1).value();
  require_places("Gpt", *places, length, where);
  return add(x, (*places)(add(arange(length), first, where), where), where);
}

Array Gpt::operator()(const Array& ids, Here where) const {
  Array x = drop(embedded(ids, cast(Array(0), DType::I32, where), where), where);
  for (const DecoderBlock& block : blocks) x = block(x, where);
  return tokens.attend(norm(x, where), where);
}

Gpt::Cache Gpt::make_cache(std::int64_t batch, std::int64_t length) const {
  Cache out;
  for (const DecoderBlock& block : blocks) {
    out.push_back(block.attention.make_cache(batch, length));
  }
  return out;
}

std::pair<Array, Gpt::Cache> Gpt::decode(const Array& next, const Cache& cache, Here where) const {
  require_setting(cache.size() == blocks.size(), "Gpt", "a cache has as many parts as blocks");
  Array x = embedded(next, cache[0].length, where);
  Cache after = cache;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    std::tie(x, after[i]) = blocks[i].decode(x, cache[i], where);
  }
  return {tokens.attend(norm(x, where), where), after};
}

Gpt::Past Gpt::make_past(std::int64_t rows, std::int64_t length) const {
  Past out;
  for (const DecoderBlock& block : blocks) out.push_back(block.attention.make_past(rows, length));
  return out;
}

std::int64_t Gpt::context() const { return places ? places->w.dim(0).value() : 0; }

std::pair<Array, Gpt::Past> Gpt::advance(const Array& next, const StepPlaces& at, const Past& past,
                                         Here where) const {
  Array x = tokens(next, where);
  if (places) {
    const Array place = add(expand_dims(at.first, 1, where), arange(next.dim(1).value()), where);
    x = add(x, (*places)(minimum(place, context() - 1, where), where), where);  // padding too
  }
  Past now(blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    std::tie(x, now[i]) = blocks[i].advance(x, past[i], at, where);
  }
  return {tokens.attend(norm(last_counted(x, at.count, where), where), where), now};
}

Array Gpt::generate(const Array& prompt, std::int64_t count, const Key& key, double temperature,
                    Here where) const {
  require_setting(count > 0, "Gpt", "it generates at least one token");
  require_setting(temperature >= 0, "Gpt", "a temperature is not negative");
  const std::int64_t length = prompt.dim(1).value();
  require_setting(!places || length + count <= places->w.dim(0).value() + 1, "Gpt",
                  "prompt and continuation are longer than the context");
  const auto pick = [&](const Array& logits, const Key& k) {
    const Array last = logits(slice(), -1);
    const Array id = temperature == 0 ? argmax(last, -1, false, where)
                                      : categorical(k, last / temperature, where);
    return cast(id, DType::I32, where);
  };
  struct State {
    Cache cache;
    Array token;
    Array step;
  };
  auto [logits, cache] = decode(prompt, make_cache(prompt.dim(0).value(), length + count), where);
  const Array first = pick(logits, key.fold_in(0, where));
  if (count == 1) return expand_dims(first, 1, where);
  const auto body = [&](const State& s) {
    auto [next, after] = decode(expand_dims(s.token, 1, where), s.cache, where);
    const Array token = pick(next, key.fold_in(s.step, where));
    return carry_and(State{after, token, s.step + 1}, token);
  };
  const State start{cache, first, cast(Array(1), DType::I32, where)};
  const Array rest = scan(start, count - 1, body, {}, where).ys;
  return concat({expand_dims(first, 1, where), transpose(rest, {1, 0}, where)}, 1, where);
}

}  // namespace ricci::nn
