// Language models of the shapes that public ones have, beside nn::Gpt: tokens [batch, places] to
// logits [batch, places, vocabulary], and what a Generator (ricci/serve/generator.h) asks for.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ricci/array/array.h"
#include "ricci/array/tree.h"
#include "ricci/nn/attention.h"
#include "ricci/nn/linear.h"
#include "ricci/nn/norm.h"
#include "ricci/nn/sequence.h"
#include "ricci/nn/transformer.h"

namespace ricci::nn {

struct LlamaOptions {
  std::int64_t vocabulary = 256;
  std::int64_t context = 2048;  ///< how many places it was made for
  std::int64_t width = 128;
  std::int64_t hidden = 0;  ///< of the feed-forward parts; 0: 8/3 of the width
  std::int64_t heads = 4;
  std::int64_t kv_heads = 0;  ///< 0: all have their own
  std::int64_t layers = 4;
  double rope = 10000;
  double eps = 1e-5;
  bool tied = false;  ///< the last layer is the table of tokens again
  DType dtype = DType::F32;
};

/// x + attention(norm(x)), then x + feed(norm(x)), without biases.
struct LlamaBlock {
  RMSNorm attention_norm;
  MultiHeadAttention attention;
  RMSNorm feed_norm;
  SwiGLU feed;

  LlamaBlock() = default;
  explicit LlamaBlock(const LlamaOptions& options);
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  [[nodiscard]] std::pair<Array, KvRows> advance(const Array& x, const KvRows& past,
                                                 const StepPlaces& at,
                                                 Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("attention_norm", attention_norm);
    v.visit("attention", attention);
    v.visit("feed_norm", feed_norm);
    v.visit("feed", feed);
  }
};

/// RMS norms, rotary positions, grouped heads and SwiGLU (Touvron et al., 2023).
struct Llama {
  Embedding tokens;
  std::vector<LlamaBlock> blocks;
  RMSNorm norm;
  Linear head;  ///< without a weight: the table of tokens again
  std::int64_t places = 0;

  Llama() = default;
  explicit Llama(const LlamaOptions& options);
  [[nodiscard]] Array operator()(const Array& tokens, Here where = Here::current()) const;

  using Past = std::vector<KvRows>;
  [[nodiscard]] Past make_past(std::int64_t rows, std::int64_t length) const;
  [[nodiscard]] std::pair<Array, Past> advance(const Array& next, const StepPlaces& at,
                                               const Past& past,
                                               Here where = Here::current()) const;
  [[nodiscard]] std::int64_t context() const { return places; }
  [[nodiscard]] std::int64_t vocabulary() const { return tokens.w.dim(0).value(); }

  void visit(TreeVisitor& v) {
    v.visit("tokens", tokens);
    v.visit("blocks", blocks);
    v.visit("norm", norm);
    v.visit("head", head);
    v.visit("context", places);
  }
};

struct MambaModelOptions {
  std::int64_t vocabulary = 256;
  std::int64_t width = 128;
  std::int64_t layers = 4;
  MambaOptions block = {};
  double eps = 1e-5;
  bool tied = true;
  DType dtype = DType::F32;
};

/// x + mixer(norm(x))
struct MambaResidual {
  RMSNorm norm;
  MambaBlock mixer;

  void visit(TreeVisitor& v) {
    v.visit("norm", norm);
    v.visit("mixer", mixer);
  }
};

/// A language model of selective state spaces (Gu and Dao, 2023): its past has one size whatever
/// the length.
struct MambaModel {
  Embedding tokens;
  std::vector<MambaResidual> layers;
  RMSNorm norm;
  Linear head;  ///< without a weight: the table of tokens again

  MambaModel() = default;
  explicit MambaModel(const MambaModelOptions& options);
  [[nodiscard]] Array operator()(const Array& tokens, Here where = Here::current()) const;

  using Past = std::vector<MambaState>;
  [[nodiscard]] Past make_past(std::int64_t rows, std::int64_t length) const;
  [[nodiscard]] std::pair<Array, Past> advance(const Array& next, const StepPlaces& at,
                                               const Past& past,
                                               Here where = Here::current()) const;
  [[nodiscard]] std::int64_t context() const { return 0; }
  [[nodiscard]] std::int64_t vocabulary() const { return tokens.w.dim(0).value(); }

  void visit(TreeVisitor& v) {
    v.visit("tokens", tokens);
    v.visit("layers", layers);
    v.visit("norm", norm);
    v.visit("head", head);
  }
};

}  // namespace ricci::nn
