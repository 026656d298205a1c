// Layers: linear maps and tables of vectors, norms and dropout, convolutions, recurrent cells.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "ricci/array/array.h"
#include "ricci/array/nn.h"
#include "ricci/array/tree.h"
#include "ricci/nn/initializers.h"
#include "ricci/nn/training_scope.h"

// Linear maps and tables of vectors.

namespace ricci::nn {

/// What fine-tuning adds to a weight w [in, out] that stays as it is: see ricci/nn/adapters.h.
struct Adapter {
  enum class Kind : std::uint8_t { LoRA, DoRA, IA3 };
  Kind kind = Kind::LoRA;
  double scale = 1;  ///< alpha / rank
  Array a, b;        ///< [in, rank] and [rank, out]: w + scale·a·b
  Array magnitude;   ///< [out], DoRA: the length of every column of the weight
  Array factor;      ///< [out], IA3: what every output is multiplied by
};

/// A weight [in, out] in few bits, in a scheme of ricci/quant/scheme.h: see ricci/nn/adapters.h.
struct PackedWeight {
  std::string scheme;             ///< q4_k, int8_block_32, …
  bool int8_activations = false;  ///< what it is multiplied with is rounded to 8 bits
  std::int64_t in = 0, out = 0;
  Array codes;          ///< u8, or i8, as the scheme has them
  Array scale, offset;  ///< or without a value

  /// x·Ŵ, [.., in] to [.., out].
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
};

struct LinearOptions {
  bool bias = true;
  Initializer init = lecun_normal;
  DType dtype = DType::F32;
};

/// x [.., in] to x·w + b [.., out].
struct Linear {
  Array w;  ///< [in, out]
  Array b;  ///< [out], or without a value
  std::optional<Adapter> adapter = {};
  std::optional<PackedWeight> packed = {};  ///< in the place of w, which has no value then

  Linear() = default;
  Linear(std::int64_t in, std::int64_t out, const LinearOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w", w);
    v.visit("b", b);
    v.visit("adapter", adapter);
    v.visit("packed", packed);
  }
  [[nodiscard]] std::int64_t in_width() const;
  [[nodiscard]] std::int64_t out_width() const;

  /// The weight with the adapter in it.
  [[nodiscard]] Array effective_weight(Here where = Here::current()) const;
};

struct EmbeddingOptions {
  Initializer init = normal(1.0);
  DType dtype = DType::F32;
};

/// Rows of a table by number: indices [..] to [.., width].
struct Embedding {
  Array w;  ///< [count, width]
  /// What `attend` reads in its place: [width, count] in few bits.
  std::optional<PackedWeight> packed = {};

  Embedding() = default;
  Embedding(std::int64_t count, std::int64_t width, const EmbeddingOptions& options = {});
  [[nodiscard]] Array operator()(const Array& indices, Here where = Here::current()) const;
  /// x·wᵀ: the same table as the last layer, [.., width] to [.., count].
  [[nodiscard]] Array attend(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w", w);
    v.visit("packed", packed);
  }
};

}  // namespace ricci::nn

// Normalisations, and dropout.

namespace ricci::nn {

struct NormOptions {
  double eps = 1e-5;
  DType dtype = DType::F32;
};

/// Zero mean and unit variance along the last axis, scaled and shifted.
struct LayerNorm {
  Array w, b;  ///< [width]
  double eps = 1e-5;

  LayerNorm() = default;
  explicit LayerNorm(std::int64_t width, const NormOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w", w);
    v.visit("b", b);
    v.visit("eps", eps);
  }
};

/// Unit mean square along the last axis, scaled.
struct RMSNorm {
  Array w;  ///< [width]
  double eps = 1e-5;

  RMSNorm() = default;
  explicit RMSNorm(std::int64_t width, const NormOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w", w);
    v.visit("eps", eps);
  }
};

/// Zero mean and unit variance over groups of channels of each example, x [N, channels, ..].
struct GroupNorm {
  Array w, b;  ///< [channels]
  std::int64_t groups = 1;
  double eps = 1e-5;

  GroupNorm() = default;
  GroupNorm(std::int64_t group_count, std::int64_t channels, const NormOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w", w);
    v.visit("b", b);
    v.visit("groups", groups);
    v.visit("eps", eps);
  }
};

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;  ///< the share of a batch in the running statistics, as in PyTorch
  DType dtype = DType::F32;
};

/// Zero mean and unit variance of every channel, x [N, channels, ..]: of the batch in training,
/// which the running statistics follow; of the running statistics otherwise. The variance that is
/// kept is unbiased.
struct BatchNorm {
  Array w, b;        ///< [channels]
  Buffer mean, var;  ///< [channels]
  double eps = 1e-5;
  double momentum = 0.1;

  BatchNorm() = default;
  explicit BatchNorm(std::int64_t channels, const BatchNormOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w", w);
    v.visit("b", b);
    v.visit("mean", mean);
    v.visit("var", var);
    v.visit("eps", eps);
    v.visit("momentum", momentum);
  }
};

/// In training: elements are left out with probability p, and the others made larger by 1/(1 - p).
/// Every call of every step has a mask of its own. Otherwise the identity.
struct Dropout {
  double p = 0.5;

  Dropout() = default;
  explicit Dropout(double probability);
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) { v.visit("p", p); }
};

}  // namespace ricci::nn

// Convolutions over one, two and three axes. Weights lie as PyTorch has them.

namespace ricci {

template <>
struct TreeTraits<Pair> {
  static void visit(Pair& x, TreeVisitor& v) {
    v.visit(x.height);
    v.visit(x.width);
  }
};

namespace nn {

template <class Geometry>
struct ConvLayerOptions {
  Geometry stride = 1;
  Geometry padding = 0;
  Geometry dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  Initializer init = lecun_normal;
  DType dtype = DType::F32;
};

/// x [N, in, L] to [N, out, L'].
struct Conv1d {
  Array w;  ///< [out, in/groups, k]
  Array b;  ///< [out], or without a value
  Conv1dOptions geometry = {};

  Conv1d() = default;
  Conv1d(std::int64_t in, std::int64_t out, std::int64_t window,
         const ConvLayerOptions<std::int64_t>& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w", w);
    v.visit("b", b);
    v.visit("geometry", geometry);
  }
};

/// x [N, in, H, W] to [N, out, H', W'].
struct Conv2d {
  Array w;  ///< [out, in/groups, kH, kW]
  Array b;  ///< [out], or without a value
  Conv2dOptions geometry = {};

  Conv2d() = default;
  Conv2d(std::int64_t in, std::int64_t out, Pair window,
         const ConvLayerOptions<Pair>& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w", w);
    v.visit("b", b);
    v.visit("geometry", geometry);
  }
};

/// One number for depth, height and width, or three.
struct Triple {
  std::array<std::int64_t, 3> sizes;
  constexpr Triple(int all) : sizes{all, all, all} {}                                   // NOLINT
  constexpr Triple(std::int64_t d, std::int64_t h, std::int64_t w) : sizes{d, h, w} {}  // NOLINT
  void visit(TreeVisitor& v) { v.visit(sizes); }
};
struct Conv3dGeometry {
  Triple stride = 1;
  Triple padding = 0;
  Triple dilation = 1;
  std::int64_t groups = 1;
};

/// x [N, in, D, H, W] to [N, out, D', H', W'].
struct Conv3d {
  Array w;  ///< [out, in/groups, kD, kH, kW]
  Array b;  ///< [out], or without a value
  Conv3dGeometry geometry = {};

  Conv3d() = default;
  Conv3d(std::int64_t in, std::int64_t out, Triple window,
         const ConvLayerOptions<Triple>& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w", w);
    v.visit("b", b);
    v.visit("geometry", geometry);
  }
};

template <class Sizes>
struct ConvTransposeLayerOptions {
  Sizes stride = 1;
  Sizes padding = 0;
  Sizes output_padding = 0;
  Sizes dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  Initializer init = lecun_normal;
  DType dtype = DType::F32;
};
template <class Sizes>
struct ConvTransposeGeometry {
  Sizes stride = 1;
  Sizes padding = 0;
  Sizes output_padding = 0;
  Sizes dilation = 1;
  std::int64_t groups = 1;
};

/// The transpose of a convolution: x [N, in, L] to [N, out, L'], longer by the stride.
struct ConvTranspose1d {
  Array w;  ///< [in, out/groups, window]
  Array b;  ///< [out], or without a value
  ConvTransposeGeometry<std::int64_t> geometry = {};

  ConvTranspose1d() = default;
  ConvTranspose1d(std::int64_t in, std::int64_t out, std::int64_t window,
                  const ConvTransposeLayerOptions<std::int64_t>& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w", w);
    v.visit("b", b);
    v.visit("geometry", geometry);
  }
};

/// The same for volumes: x [N, in, D, H, W] to [N, out, D', H', W'].
struct ConvTranspose3d {
  Array w;  ///< [in, out/groups, kD, kH, kW]
  Array b;  ///< [out], or without a value
  ConvTransposeGeometry<Triple> geometry = {};

  ConvTranspose3d() = default;
  ConvTranspose3d(std::int64_t in, std::int64_t out, Triple window,
                  const ConvTransposeLayerOptions<Triple>& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w", w);
    v.visit("b", b);
    v.visit("geometry", geometry);
  }
};

struct ConvTranspose2dLayerOptions {
  Pair stride = 1;
  Pair padding = 0;
  Pair output_padding = 0;
  Pair dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  Initializer init = lecun_normal;
  DType dtype = DType::F32;
};

/// The transpose of a convolution: x [N, in, H, W] to [N, out, H', W'], larger by the stride.
struct ConvTranspose2d {
  Array w;  ///< [in, out/groups, kH, kW]
  Array b;  ///< [out], or without a value
  ConvTranspose2dOptions geometry = {};

  ConvTranspose2d() = default;
  ConvTranspose2d(std::int64_t in, std::int64_t out, Pair window,
                  const ConvTranspose2dLayerOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w", w);
    v.visit("b", b);
    v.visit("geometry", geometry);
  }
};

}  // namespace nn
}  // namespace ricci

// Recurrent layers over sequences [batch, places, width]. Gates lie as PyTorch has them, its
// weights transposed.

namespace ricci::nn {

struct RecurrentOptions {
  Initializer init = glorot_uniform;
  Initializer hidden_init = orthogonal;
  DType dtype = DType::F32;
};

/// i, f, o = σ(..), g = tanh(..), of x·w_in + h·w_hidden + b in the order i, f, g, o;
/// c ← f·c + i·g;  h ← o·tanh(c)
struct LSTM {
  Array w_in;      ///< [in, 4·hidden]
  Array w_hidden;  ///< [hidden, 4·hidden]
  Array b;         ///< [4·hidden]: the sum of PyTorch's two

  struct State {
    Array h, c;  ///< [batch, hidden]
  };
  struct Result {
    Array y;  ///< h of every place, [batch, places, hidden]
    State last;
  };

  LSTM() = default;
  LSTM(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options = {});
  /// From a state, or from zeros.
  [[nodiscard]] Result operator()(const Array& x, const std::optional<State>& start = {},
                                  Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w_in", w_in);
    v.visit("w_hidden", w_hidden);
    v.visit("b", b);
  }
};

/// r, z = σ(x·w_in + h·w_hidden + biases), n = tanh(x·w_in + b + r·(h·w_hidden + b_hidden)), in the
/// order r, z, n;  h ← (1 - z)·n + z·h
struct GRU {
  Array w_in;      ///< [in, 3·hidden]
  Array w_hidden;  ///< [hidden, 3·hidden]
  Array b;         ///< [3·hidden]
  Array b_hidden;  ///< [3·hidden]

  struct Result {
    Array y;     ///< [batch, places, hidden]
    Array last;  ///< [batch, hidden]
  };

  GRU() = default;
  GRU(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options = {});
  [[nodiscard]] Result operator()(const Array& x, const std::optional<Array>& start = {},
                                  Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w_in", w_in);
    v.visit("w_hidden", w_hidden);
    v.visit("b", b);
    v.visit("b_hidden", b_hidden);
  }
};

}  // namespace ricci::nn
