// Models of the usual kinds, ready to be trained, beside `Gpt`: what `ricci train` makes. Plain
// structs of layers, as models of your own are.
//
//   nn::Vit vit{{.size = 16, .patch = 4, .classes = 10}};
//   Array logits = vit(images);
#pragma once

#include <cstdint>
#include <vector>

#include "ricci/array/array.h"
#include "ricci/array/tree.h"
#include "ricci/nn/conv.h"
#include "ricci/nn/linear.h"
#include "ricci/nn/norm.h"
#include "ricci/nn/sequence.h"
#include "ricci/nn/transformer.h"

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
