#include <tuple>

#include "ricci/array/ops.h"
#include "ricci/nn/models.h"

#include "nn/layer.h"

namespace ricci::nn {
namespace {

EmbeddingOptions table_of(DType dtype) { return {.init = normal(0.02), .dtype = dtype}; }

Linear head_of(std::int64_t width, std::int64_t vocabulary, bool tied, DType dtype) {
  if (tied) return {};
  return {width, vocabulary, {.bias = false, .init = normal(0.02), .dtype = dtype}};
}

bool has_weight(const Linear& map) { return map.w.valid() || map.packed; }

Array logits(const Linear& head, const Embedding& tokens, const Array& x, Here where) {
  return has_weight(head) ? head(x, where) : tokens.attend(x, where);
}

}  // namespace

LlamaBlock::LlamaBlock(const LlamaOptions& o)
    : attention_norm(o.width, {.eps = o.eps, .dtype = o.dtype}),
      attention(o.width, o.heads,
                {.kv_heads = o.kv_heads,
                 .causal = true,
                 .rope = o.rope,
                 .bias = false,
                 .dtype = o.dtype}),
      feed_norm(o.width, {.eps = o.eps, .dtype = o.dtype}),
      feed(o.width, o.hidden == 0 ? o.width * 8 / 3 : o.hidden, {.bias = false, .dtype = o.dtype}) {
}

Array LlamaBlock::operator()(const Array& x, Here where) const {
  const Array y = add(x, attention(attention_norm(x, where), where), where);
  return add(y, feed(feed_norm(y, where), where), where);
}

std::pair<Array, KvRows> LlamaBlock::advance(const Array& x, const KvRows& past,
                                             const StepPlaces& at, Here where) const {
  auto [seen, now] = attention.advance(attention_norm(x, where), past, at, where);
  const Array y = add(x, seen, where);
  return {add(y, feed(feed_norm(y, where), where), where), now};
}

Llama::Llama(const LlamaOptions& o)
    : tokens(o.vocabulary, o.width, table_of(o.dtype)),
      norm(o.width, {.eps = o.eps, .dtype = o.dtype}),
      head(head_of(o.width, o.vocabulary, o.tied, o.dtype)),
      places(o.context) {
  require_setting(o.layers > 0 && o.context > 0, "Llama", "at least one layer and one place");
  for (std::int64_t i = 0; i < o.layers; ++i) blocks.emplace_back(o);
}

Array Llama::operator()(const Array& ids, Here where) const {
  Array x = tokens(ids, where);
  for (const LlamaBlock& block : blocks) x = block(x, where);
  return logits(head, tokens, norm(x, where), where);
}

Llama::Past Llama::make_past(std::int64_t rows, std::int64_t length) const {
  Past out;
  for (const LlamaBlock& block : blocks) out.push_back(block.attention.make_past(rows, length));
  return out;
}

std::pair<Array, Llama::Past> Llama::advance(const Array& next, const StepPlaces& at,
                                             const Past& past, Here where) const {
  Array x = tokens(next, where);
  Past now(blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    std::tie(x, now[i]) = blocks[i].advance(x, past[i], at, where);
  }
  const Array last = norm(last_counted(x, at.count, where), where);
  return {logits(head, tokens, last, where), now};
}

MambaModel::MambaModel(const MambaModelOptions& o)
    : tokens(o.vocabulary, o.width, table_of(o.dtype)),
      norm(o.width, {.eps = o.eps, .dtype = o.dtype}),
      head(head_of(o.width, o.vocabulary, o.tied, o.dtype)) {
  require_setting(o.layers > 0, "MambaModel", "at least one layer");
  MambaOptions block = o.block;
  block.dtype = o.dtype;
  for (std::int64_t i = 0; i < o.layers; ++i) {
    layers.push_back(
        {RMSNorm(o.width, {.eps = o.eps, .dtype = o.dtype}), MambaBlock(o.width, block)});
  }
}

Array MambaModel::operator()(const Array& ids, Here where) const {
  Array x = tokens(ids, where);
  for (const MambaResidual& layer : layers) {
    x = add(x, layer.mixer(layer.norm(x, where), where), where);
  }
  return logits(head, tokens, norm(x, where), where);
}

MambaModel::Past MambaModel::make_past(std::int64_t rows, std::int64_t /*length*/) const {
  Past out;
  for (const MambaResidual& layer : layers) out.push_back(layer.mixer.make_state(rows));
  return out;
}

std::pair<Array, MambaModel::Past> MambaModel::advance(const Array& next, const StepPlaces& at,
                                                       const Past& past, Here where) const {
  Array x = tokens(next, where);
  Past now(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Array y;
    std::tie(y, now[i]) = layers[i].mixer.advance(layers[i].norm(x, where), past[i], at, where);
    x = add(x, y, where);
  }
  const Array last = norm(last_counted(x, at.count, where), where);
  return {logits(head, tokens, last, where), now};
}

}  // namespace ricci::nn
