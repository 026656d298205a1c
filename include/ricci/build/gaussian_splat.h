// Builders of Gaussian splats: scenes and cameras as records, gradients in one packed array, and
// the original's prepare buffer as a format.
//
//   const Value meta = gaussian_splat_render_meta(graph, {.position = {0, 0, -4}});
//   const Value image = gaussian_splat_render(scene, {.width = 128, .height = 96});
#pragma once

#include <array>
#include <optional>
#include <source_location>
#include <vector>

#include "ricci/build/build.h"

namespace ricci {

/// The seven inputs.
struct GaussianSplatInputs {
  Value positions;  ///< [3N]
  Value scales;     ///< [3N], natural logarithms
  Value rotations;  ///< [4N], quaternions w, x, y, z
  Value opacities;  ///< [N]
  Value colors;     ///< [3N]
  Value sh_coeffs;  ///< [N·K·3]
  Value meta;       ///< [23]
};

/// What is rendered and how: the attributes of the op.
using GaussianSplatRenderParams = op::GaussianSplatRender;

/// The same for a gradient that is asked for by itself, with means for training that are no part
/// of the exact gradient. [splat-no-clip-in-vjp]
struct GaussianSplatBackwardParams {
  GaussianSplatRenderParams render = {};
  double loss_grad_clip = 0;  ///< numbers of d_rgba are clamped to ± this; 0: not
  double max_anisotropy = 0;  ///< scales of a splat differ at most by this factor; 0: as they are
};

/// What is between the scene and the pixels, in their units, in place of a field of view.
struct GaussianSplatLens {
  std::array<double, 2> focal = {1, 1};
  std::array<double, 2> principal_point = {0, 0};
  /// k1 k2 p1 p2 k3 k4 k5 k6: radial (1 + k1 r² + k2 r⁴ + k3 r⁶)/(1 + k4 r² + k5 r⁴ + k6 r⁶), and
  /// tangential.
  std::array<double, 8> distortion = {};
};

/// A camera that looks at a target.
struct GaussianSplatCamera {
  std::array<double, 3> position = {0, 0, -1};
  std::array<double, 3> target = {0, 0, 0};
  std::array<double, 3> up = {0, 1, 0};
  double field_of_view = 60;  ///< vertical, in degrees
  double near_plane = 0.01;
  double far_plane = 100;
  std::array<double, 3> background = {0, 0, 0};
  std::optional<GaussianSplatLens> lens = {};
};

/// The numbers of `meta` for a camera and the attributes they repeat: 23, or 35 with a lens.
[[nodiscard]] std::vector<double> gaussian_splat_meta_numbers(
    const GaussianSplatCamera& camera, const GaussianSplatRenderParams& params = {});
/// The same as a constant.
Value gaussian_splat_render_meta(Graph& graph, const GaussianSplatCamera& camera,
                                 const GaussianSplatRenderParams& params = {},
                                 DType dtype = DType::F32,
                                 std::source_location loc = std::source_location::current());

/// The image [H·W·4].
Value gaussian_splat_render(const GaussianSplatInputs& inputs,
                            const GaussianSplatRenderParams& params,
                            std::source_location loc = std::source_location::current());
/// The same in two steps: gaussian_splat_prepare, then gaussian_splat_rasterize.
Value gaussian_splat_render_decomposed(const GaussianSplatInputs& inputs,
                                       const GaussianSplatRenderParams& params,
                                       std::source_location loc = std::source_location::current());

/// The gradients of the scene's six arrays behind each other, in their order.
Value gaussian_splat_render_backward(const GaussianSplatInputs& inputs, Value d_rgba,
                                     const GaussianSplatBackwardParams& params,
                                     std::source_location loc = std::source_location::current());

/// The six gradients.
struct GaussianSplatGradients {
  Value positions;
  Value scales;
  Value rotations;
  Value opacities;
  Value colors;
  Value sh_coeffs;
};
/// Takes packed gradients apart. Without splats there is nothing in any, whatever `coefficients`.
GaussianSplatGradients unpack_gaussian_splat_packed_grads(
    Graph& graph, Value packed, std::int64_t count, std::int64_t coefficients,
    std::source_location loc = std::source_location::current());

/// Numbers in a packed gradient: 14N + 3NK.
[[nodiscard]] std::int64_t gaussian_splat_packed_grad_length(std::int64_t count,
                                                             std::int64_t coefficients);
/// ⌈W/tile⌉·⌈H/tile⌉
[[nodiscard]] std::int64_t gaussian_splat_tile_count(std::int64_t width, std::int64_t height,
                                                     std::int64_t tile_size);
/// Numbers in a prepare buffer of so many splats and list entries, as it is imported and exported.
[[nodiscard]] std::int64_t gaussian_splat_prepare_length(const op::GaussianSplatPrepare& params,
                                                         std::int64_t count);

/// What gaussian_splat_prepare gives.
struct GaussianSplatPrepared {
  Value color_alpha;
  Value pos_local;
  Value inv_scale;
  Value quaternion;
  Value ids;
  Value tile_ranges;
  Value rays;
};
GaussianSplatPrepared gaussian_splat_prepare(
    const GaussianSplatInputs& inputs, const op::GaussianSplatPrepare& params,
    std::source_location loc = std::source_location::current());
/// The image of it, [H·W·4].
Value gaussian_splat_rasterize(const GaussianSplatPrepared& prepared, Value meta,
                               const op::GaussianSplatRasterize& params,
                               std::source_location loc = std::source_location::current());

/// The original's flat prepare buffer, to import and export: color_alpha 4N, valid N, pos_local 3N,
/// inv_scale 3N, quaternion 4N, ids, tile ranges, rays, and 11 params; without splats there is room
/// for one. In f64 nothing is lost; in f32, the original's dtype, ids from 2^24 on would be, and
/// are an error.
Value pack_gaussian_splat_prepared(const GaussianSplatPrepared& prepared, Value meta,
                                   const op::GaussianSplatRasterize& params,
                                   DType dtype = DType::F64,
                                   std::source_location loc = std::source_location::current());
GaussianSplatPrepared unpack_gaussian_splat_prepared(
    Value packed, std::int64_t count, const op::GaussianSplatRasterize& params,
    std::source_location loc = std::source_location::current());

}  // namespace ricci
