// Models made of layers and blocks: those of public language models, and the usual ones.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ricci/array/array.h"
#include "ricci/array/tree.h"
#include "ricci/nn/layers.h"
#include "ricci/nn/transformer.h"

// Language models of the shapes that public ones have, beside nn::Gpt: tokens [batch, places] to
// logits [batch, places, vocabulary], and what a Generator (ricci/serve/generator.h) asks for.

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

// Models of the usual kinds, ready to be trained, beside `Gpt`: what `ricci train` makes. Plain
// structs of layers, as models of your own are.
//
//   nn::Vit vit{{.size = 16, .patch = 4, .classes = 10}};
//   Array logits = vit(images);

namespace ricci::nn {

struct MambaLmOptions {
  std::int64_t vocabulary = 256;
  std::int64_t width = 128;
  std::int64_t layers = 4;
  std::int64_t state = 16;
  double dropout = 0;
  DType dtype = DType::F32;
};

/// x + mixer(norm(x))
struct MambaLmLayer {
  nn::RMSNorm norm;
  nn::MambaBlock mixer;

  void visit(TreeVisitor& v) {
    v.visit("norm", norm);
    v.visit("mixer", mixer);
  }
};

/// A language model of Mamba blocks: tokens [batch, places] to logits [batch, places, vocabulary].
/// The last layer is the table of tokens again.
struct MambaLm {
  nn::Embedding tokens;
  std::vector<MambaLmLayer> layers;
  nn::RMSNorm norm;
  nn::Dropout drop;

  MambaLm() = default;
  explicit MambaLm(const MambaLmOptions& options);
  [[nodiscard]] Array operator()(const Array& tokens, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("tokens", tokens);
    v.visit("layers", layers);
    v.visit("norm", norm);
    v.visit("drop", drop);
  }
};

/// What images are like, [batch, channels, size, size], and how many classes there are.
struct ImageOptions {
  std::int64_t channels = 1;
  std::int64_t height = 16;
  std::int64_t width = 16;
  std::int64_t classes = 10;
};

struct CnnOptions {
  ImageOptions image = {};
  std::int64_t width = 16;  ///< channels of the first stage; each next one has twice as many
  std::int64_t stages = 2;  ///< each halves height and width
  double dropout = 0;
  DType dtype = DType::F32;
};

/// pool(relu(norm(conv(x))))
struct CnnStage {
  nn::Conv2d conv;
  nn::BatchNorm norm;

  void visit(TreeVisitor& v) {
    v.visit("conv", conv);
    v.visit("norm", norm);
  }
};

/// Convolutions, and a linear map of the mean over places: images to logits [batch, classes].
struct Cnn {
  std::vector<CnnStage> stages;
  nn::Dropout drop;
  nn::Linear out;

  Cnn() = default;
  explicit Cnn(const CnnOptions& options);
  [[nodiscard]] Array operator()(const Array& images, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("stages", stages);
    v.visit("drop", drop);
    v.visit("out", out);
  }
};

struct MlpOptions {
  std::int64_t inputs = 256;
  std::int64_t classes = 10;
  std::int64_t width = 128;
  std::int64_t layers = 2;  ///< hidden ones
  double dropout = 0;
  DType dtype = DType::F32;
};

/// Linear maps with ReLU between them: [batch, ..] to logits [batch, classes].
struct Mlp {
  std::vector<nn::Linear> hidden;
  nn::Dropout drop;
  nn::Linear out;

  Mlp() = default;
  explicit Mlp(const MlpOptions& options);
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("hidden", hidden);
    v.visit("drop", drop);
    v.visit("out", out);
  }
};

struct VitOptions {
  ImageOptions image = {};
  std::int64_t patch = 4;  ///< divides height and width
  std::int64_t width = 64;
  std::int64_t heads = 4;
  std::int64_t layers = 3;
  double dropout = 0;
  DType dtype = DType::F32;
};

/// A vision transformer (Dosovitskiy et al., 2021) with the mean over patches in the place of a
/// class token: images to logits [batch, classes].
struct Vit {
  nn::Conv2d patches;
  Array places;  ///< [patches, width]
  std::vector<nn::EncoderBlock> blocks;
  nn::LayerNorm norm;
  nn::Dropout drop;
  nn::Linear out;

  Vit() = default;
  explicit Vit(const VitOptions& options);
  [[nodiscard]] Array operator()(const Array& images, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("patches", patches);
    v.visit("places", places);
    v.visit("blocks", blocks);
    v.visit("norm", norm);
    v.visit("drop", drop);
    v.visit("out", out);
  }
};

}  // namespace ricci::nn
