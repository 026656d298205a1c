// Blocks of transformers, and a language model made of them. Norms come first, inside the residual.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ricci/array/array.h"
#include "ricci/array/random.h"
#include "ricci/array/tree.h"
#include "ricci/nn/attention.h"
#include "ricci/nn/linear.h"
#include "ricci/nn/norm.h"

namespace ricci::nn {

/// What is between the two maps: gelu as it is, or with a tanh in the place of erf, as GPT-2 has
/// it.
enum class Activation : std::uint8_t { Gelu, GeluTanh, Relu, Silu };

struct FeedForwardOptions {
  bool bias = true;
  Initializer init = lecun_normal;
  DType dtype = DType::F32;
  Activation activation = Activation::Gelu;
};

/// out(gelu(in(x)))
struct FeedForward {
  Linear in, out;
  Activation activation = Activation::Gelu;

  FeedForward() = default;
  FeedForward(std::int64_t width, std::int64_t hidden, const FeedForwardOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("in", in);
    v.visit("out", out);
    v.visit("activation", activation);
  }
};

/// down(silu(gate(x)) · up(x)), without biases unless asked for (Shazeer, 2020).
struct SwiGLU {
  Linear gate, up, down;

  SwiGLU() = default;
  SwiGLU(std::int64_t width, std::int64_t hidden,
         const FeedForwardOptions& options = {.bias = false});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("gate", gate);
    v.visit("up", up);
    v.visit("down", down);
  }
};

struct BlockOptions {
  std::int64_t hidden = 0;  ///< of the feed-forward part; 0: four times the width
  double dropout = 0;       ///< of what each part adds
  std::int64_t kv_heads = 0;
  std::optional<double> rope = {};
  std::int64_t memory_width = 0;  ///< DecoderBlock: with attention to a memory of this width
  DType dtype = DType::F32;
  Activation activation = Activation::Gelu;
  double eps = 1e-5;  ///< of the norms
};

/// x + attention(norm(x)), then x + feed(norm(x)): every place sees every other.
struct EncoderBlock {
  LayerNorm attention_norm;
  MultiHeadAttention attention;
  LayerNorm feed_norm;
  FeedForward feed;
  Dropout drop;

  EncoderBlock() = default;
  EncoderBlock(std::int64_t width, std::int64_t heads, const BlockOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("attention_norm", attention_norm);
    v.visit("attention", attention);
    v.visit("feed_norm", feed_norm);
    v.visit("feed", feed);
    v.visit("drop", drop);
  }
};

/// Attention to a memory, with its norm.
struct CrossAttention {
  LayerNorm norm;
  MultiHeadAttention attention;

  CrossAttention() = default;
  CrossAttention(std::int64_t width, std::int64_t heads, const BlockOptions& options);
  [[nodiscard]] Array operator()(const Array& x, const Array& memory,
                                 Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("norm", norm);
    v.visit("attention", attention);
  }
};

/// The same where a place sees those up to its own, and between the two parts, where a memory's
/// width is given, attention to that.
struct DecoderBlock {
  LayerNorm attention_norm;
  MultiHeadAttention attention;
  std::optional<CrossAttention> cross;
  LayerNorm feed_norm;
  FeedForward feed;
  Dropout drop;

  DecoderBlock() = default;
  DecoderBlock(std::int64_t width, std::int64_t heads, const BlockOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  [[nodiscard]] Array operator()(const Array& x, const Array& memory,
                                 Here where = Here::current()) const;
  /// The next places; see MultiHeadAttention::decode.
  [[nodiscard]] std::pair<Array, KvCache> decode(const Array& x, const KvCache& cache,
                                                 Here where = Here::current()) const;
  /// The same for sequences of different lengths; see MultiHeadAttention::advance.
  [[nodiscard]] std::pair<Array, KvRows> advance(const Array& x, const KvRows& past,
                                                 const StepPlaces& at,
                                                 Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("attention_norm", attention_norm);
    v.visit("attention", attention);
    v.visit("cross", cross);
    v.visit("feed_norm", feed_norm);
    v.visit("feed", feed);
    v.visit("drop", drop);
  }

 private:
  [[nodiscard]] Array fed(const Array& x, Here where) const;
};

struct EncoderDecoderOptions {
  std::int64_t source_vocabulary = 256;
  std::int64_t vocabulary = 256;
  std::int64_t context = 256;  ///< places of the longer side
  std::int64_t width = 128;
  std::int64_t heads = 4;
  std::int64_t layers = 4;  ///< of either side
  double dropout = 0;
  DType dtype = DType::F32;
  std::int64_t hidden = 0;  ///< of the feed-forward parts; 0: four times the width
  Activation activation = Activation::Gelu;
};

/// A model from one text to another: every place of the source is seen, of the target those up to
/// its own. The last layer is the table of the target's tokens again.
struct EncoderDecoder {
  Embedding sources;
  Embedding tokens;
  Embedding places;
  std::vector<EncoderBlock> encoder;
  LayerNorm encoder_norm;
  std::vector<DecoderBlock> decoder;
  LayerNorm norm;
  Dropout drop;

  EncoderDecoder() = default;
  explicit EncoderDecoder(const EncoderDecoderOptions& options);
  /// What the decoder looks at: [batch, places] to [batch, places, width].
  [[nodiscard]] Array encode(const Array& source, Here where = Here::current()) const;
  /// The logits behind every token of the target, [batch, places, vocabulary].
  [[nodiscard]] Array decode(const Array& target, const Array& memory,
                             Here where = Here::current()) const;
  [[nodiscard]] Array operator()(const Array& source, const Array& target,
                                 Here where = Here::current()) const {
    return decode(target, encode(source, where), where);
  }
  void visit(TreeVisitor& v) {
    v.visit("sources", sources);
    v.visit("tokens", tokens);
    v.visit("places", places);
    v.visit("encoder", encoder);
    v.visit("encoder_norm", encoder_norm);
    v.visit("decoder", decoder);
    v.visit("norm", norm);
    v.visit("drop", drop);
  }

 private:
  [[nodiscard]] Array embedded(const Embedding& table, const Array& ids, Here where) const;
};

struct GptOptions {
  std::int64_t vocabulary = 256;
  std::int64_t context = 256;  ///< places that have a position of their own
  std::int64_t width = 128;
  std::int64_t heads = 4;
  std::int64_t layers = 4;
  double dropout = 0;
  /// Rotary positions with this base instead of a table of learned ones.
  std::optional<double> rope = {};
  std::int64_t kv_heads = 0;
  DType dtype = DType::F32;
  std::int64_t hidden = 0;  ///< of the feed-forward parts; 0: four times the width
  Activation activation = Activation::Gelu;
  double eps = 1e-5;  ///< of the norms
};

/// A language model: tokens [batch, places] to logits [batch, places, vocabulary]. The last layer
/// is the table of tokens again.
struct Gpt {
  Embedding tokens;
  std::optional<Embedding> places;
  std::vector<DecoderBlock> blocks;
  LayerNorm norm;
  Dropout drop;

  Gpt() = default;
  explicit Gpt(const GptOptions& options);
  [[nodiscard]] Array operator()(const Array& tokens, Here where = Here::current()) const;

  using Cache = std::vector<KvCache>;
  [[nodiscard]] Cache make_cache(std::int64_t batch, std::int64_t places) const;
  /// The logits of the next places, and the cache with them.
  [[nodiscard]] std::pair<Array, Cache> decode(const Array& next, const Cache& cache,
                                               Here where = Here::current()) const;
  /// [batch, count] tokens that follow a prompt [batch, places], drawn at a temperature, or the
  /// likeliest ones where it is 0. One program, with a cache.
  [[nodiscard]] Array generate(const Array& prompt, std::int64_t count, const Key& key,
                               double temperature = 1, Here where = Here::current()) const;

  /// What a `Generator` (ricci/serve/generator.h) asks of a model, here and in
  /// ricci/nn/language_models.h.
  using Past = std::vector<KvRows>;
  [[nodiscard]] Past make_past(std::int64_t rows, std::int64_t length) const;
  /// The logits [rows, vocabulary] behind the last of the next tokens [rows, places] that count,
  /// and what the past goes on with.
  [[nodiscard]] std::pair<Array, Past> advance(const Array& next, const StepPlaces& at,
                                               const Past& past,
                                               Here where = Here::current()) const;
  /// How many places there can be; 0: as many as one likes.
  [[nodiscard]] std::int64_t context() const;
  [[nodiscard]] std::int64_t vocabulary() const { return tokens.w.dim(0).value(); }

  void visit(TreeVisitor& v) {
    v.visit("tokens", tokens);
    v.visit("places", places);
    v.visit("blocks", blocks);
    v.visit("norm", norm);
    v.visit("drop", drop);
  }

 private:
  [[nodiscard]] Array embedded(const Array& ids, const Array& first, Here where) const;
};

}  // namespace ricci::nn
