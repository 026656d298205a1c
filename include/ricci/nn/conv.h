// Convolutions over one, two and three axes. Weights lie as PyTorch has them.
#pragma once

#include <array>
#include <cstdint>

#include "ricci/array/array.h"
#include "ricci/array/nn.h"
#include "ricci/array/tree.h"
#include "ricci/nn/initializers.h"

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
