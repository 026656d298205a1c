// Blocks of sequences: attention, transformers, mixtures of experts, and blocks whose memory is a
// state of fixed size.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ricci/array/array.h"
#include "ricci/array/random.h"
#include "ricci/array/tree.h"
#include "ricci/nn/layers.h"

// Attention with many heads: causal or not, rotary positions, heads that share keys and values, and
// a cache of keys and values for decoding.

namespace ricci::nn {

/// Keys and values of the places so far.
struct KvCache {
  Array k, v;    ///< [batch, places, kv_heads·head width]
  Array length;  ///< i32: how many places have a value
};

/// Keys and values of sequences of different lengths, one a row.
struct KvRows {
  Array k, v;  ///< [rows, places, kv_heads·head width]
};

/// Where the new places of such sequences are.
struct StepPlaces {
  Array first;  ///< i32 [rows]: how many places of a row come before
  Array count;  ///< i32 [rows]: how many of the new places count; those behind are padding
};

struct MultiHeadAttentionOptions {
  std::int64_t kv_heads = 0;  ///< heads of keys and values, shared by groups; 0: all have their own
  bool causal = false;
  std::optional<double> rope = {};  ///< rotary positions with this base, 10000 usually
  std::int64_t memory_width = 0;    ///< of what keys and values are made of; 0: the same
  bool bias = true;
  Initializer init = glorot_uniform;
  DType dtype = DType::F32;
};

/// softmax(q kᵀ/√(head width)) v in every head, x [batch, places, width].
struct MultiHeadAttention {
  Linear q, k, v, out;
  std::int64_t heads = 1, kv_heads = 1;
  bool causal = false;
  std::optional<double> rope = {};

  MultiHeadAttention() = default;
  MultiHeadAttention(std::int64_t width, std::int64_t head_count,
                     const MultiHeadAttentionOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  /// Keys and values of something else, [batch, other places, memory width].
  [[nodiscard]] Array operator()(const Array& x, const Array& memory,
                                 Here where = Here::current()) const;

  /// Room for so many places.
  [[nodiscard]] KvCache make_cache(std::int64_t batch, std::int64_t places) const;
  /// The next places of a sequence, which see those in the cache and, up to their own, each other:
  /// what the whole sequence would give there, causally. UserError when there is no room and the
  /// length is known.
  [[nodiscard]] std::pair<Array, KvCache> decode(const Array& x, const KvCache& cache,
                                                 Here where = Here::current()) const;

  /// The next places of sequences of different lengths. Of `past` a row's first `at.first` places
  /// are read and nothing is written: what comes with the result are keys and values of the new
  /// places, [rows, new places, ..], for the owner of the past to put behind it.
  [[nodiscard]] std::pair<Array, KvRows> advance(const Array& x, const KvRows& past,
                                                 const StepPlaces& at,
                                                 Here where = Here::current()) const;
  /// What `advance` takes as a past, all zeros.
  [[nodiscard]] KvRows make_past(std::int64_t rows, std::int64_t places) const;

  void visit(TreeVisitor& visitor) {
    visitor.visit("q", q);
    visitor.visit("k", k);
    visitor.visit("v", v);
    visitor.visit("out", out);
    visitor.visit("heads", heads);
    visitor.visit("kv_heads", kv_heads);
    visitor.visit("causal", causal);
    visitor.visit("rope", rope);
  }

 private:
  [[nodiscard]] std::int64_t head_width() const { return q.out_width() / heads; }
  // Turned by their places, which start at `first`.
  [[nodiscard]] Array turned(const Array& x, const Array& first, Here where) const;
  // The same with a place for every row of [rows, heads·head width].
  [[nodiscard]] Array turned_to(const Array& x, const Array& places, Here where) const;
};

}  // namespace ricci::nn

// Blocks of transformers, and a language model made of them. Norms come first, inside the residual.

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
  /// ricci/nn/models.h.
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

// Mixtures of experts: every row goes through a few of many networks.

namespace ricci::nn {

struct MixtureOfExpertsOptions {
  std::int64_t picks = 2;  ///< experts a row goes through
  Initializer init = lecun_normal;
  DType dtype = DType::F32;
};

/// Σ p_e · (gelu(x·w_in[e])·w_out[e]) over the experts e a router picks for x, with p the softmax
/// of their scores; x [.., width].
struct MixtureOfExperts {
  Linear router;  ///< width to experts
  Array w_in;     ///< [experts, width, hidden]
  Array w_out;    ///< [experts, hidden, width]
  std::int64_t picks = 2;

  struct Routed {
    Array y;
    /// experts · Σ_e (share of picks that e gets)·(mean probability of e): 1 where all get the same
    /// (Fedus et al., 2021). Add a little of it to the loss.
    Array balance;
  };

  MixtureOfExperts() = default;
  MixtureOfExperts(std::int64_t width, std::int64_t hidden, std::int64_t experts,
                   const MixtureOfExpertsOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  /// The same, and how evenly rows were spread.
  [[nodiscard]] Routed route(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("router", router);
    v.visit("w_in", w_in);
    v.visit("w_out", w_out);
    v.visit("picks", picks);
  }
};

}  // namespace ricci::nn

// Blocks whose memory is a state of fixed size: x [batch, places, width] to the same.

namespace ricci::nn {

struct MambaOptions {
  std::int64_t expand = 2;  ///< inner width over width
  std::int64_t state = 16;  ///< numbers a channel remembers
  std::int64_t window = 4;  ///< of the convolution
  std::int64_t rank = 0;    ///< of the step sizes; 0: width/16, rounded up
  DType dtype = DType::F32;
};

/// What a MambaBlock remembers of the places so far.
struct MambaState {
  Array past;  ///< [rows, window - 1, inner]: what the convolution still reads
  Array h;     ///< [rows, inner, state]
};

/// A selective state space (Gu and Dao, 2023). With [u, z] = in(x), u = silu(conv(u)),
/// [δ, B, C] = select(u) and Δ = softplus(step(δ)):
///   y = scan(u, Δ, -e^(a_log), B, C) + d·u;  out(y · silu(z))
struct MambaBlock {
  Linear in;
  Conv1d conv;  ///< each channel with its past
  Linear select, step;
  Array a_log;  ///< [inner, state]
  Array d;      ///< [inner]
  Linear out;

  MambaBlock() = default;
  explicit MambaBlock(std::int64_t width, const MambaOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  /// The next places of sequences of different lengths, and the state behind those that count.
  [[nodiscard]] std::pair<Array, MambaState> advance(const Array& x, const MambaState& state,
                                                     const StepPlaces& at,
                                                     Here where = Here::current()) const;
  /// The state before the first place.
  [[nodiscard]] MambaState make_state(std::int64_t rows) const;
  void visit(TreeVisitor& v) {
    v.visit("in", in);
    v.visit("conv", conv);
    v.visit("select", select);
    v.visit("step", step);
    v.visit("a_log", a_log);
    v.visit("d", d);
    v.visit("out", out);
  }
};

/// What a GatedDeltaNet remembers of the places so far.
struct GatedDeltaState {
  Array q, k, v;  ///< [rows, window - 1, channels]: what the convolutions still read
  Array s;        ///< [rows, heads, key width, value width]
};

struct GatedDeltaNetOptions {
  std::int64_t key_width = 0;    ///< of a head; 0: width/heads
  std::int64_t value_width = 0;  ///< of a head; 0: the same
  std::int64_t window = 4;       ///< of the convolutions
  double eps = 1e-5;
  DType dtype = DType::F32;
};

/// Gated delta-rule attention (Yang et al., 2024). With q, k, v = silu(conv(..(x))), q and k of
/// length 1, β = σ(beta(x)) and g = -e^(a_log)·softplus(decay(x)):
///   o = gated_delta_net(q, k, v, g, β);  out(norm(o) · silu(gate(x)))
struct GatedDeltaNet {
  Linear q, k, v;
  Conv1d q_conv, k_conv, v_conv;
  Linear beta, decay;
  Array a_log;  ///< [heads]
  RMSNorm norm;
  Linear gate, out;
  std::int64_t heads = 1;

  GatedDeltaNet() = default;
  GatedDeltaNet(std::int64_t width, std::int64_t head_count,
                const GatedDeltaNetOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  /// The next places of sequences of different lengths, and the state behind those that count.
  [[nodiscard]] std::pair<Array, GatedDeltaState> advance(const Array& x,
                                                          const GatedDeltaState& state,
                                                          const StepPlaces& at,
                                                          Here where = Here::current()) const;
  /// The state before the first place.
  [[nodiscard]] GatedDeltaState make_state(std::int64_t rows) const;
  void visit(TreeVisitor& visitor) {
    visitor.visit("q", q);
    visitor.visit("k", k);
    visitor.visit("v", v);
    visitor.visit("q_conv", q_conv);
    visitor.visit("k_conv", k_conv);
    visitor.visit("v_conv", v_conv);
    visitor.visit("beta", beta);
    visitor.visit("decay", decay);
    visitor.visit("a_log", a_log);
    visitor.visit("norm", norm);
    visitor.visit("gate", gate);
    visitor.visit("out", out);
    visitor.visit("heads", heads);
  }
};

}  // namespace ricci::nn
