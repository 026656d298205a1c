// Images of scenes made of three-dimensional Gaussians, and their derivatives.
//
// A scene is six flat arrays: positions [3N], scales [3N] (natural logarithms), rotations [4N]
// (quaternions w, x, y, z of any length but 0), opacities [N], colors [3N] and sh_coeffs [N·K·3].
// `meta` [23] is the camera: position 0-2, target 3-5, up 6-8, vertical field of view in degrees 9,
// near 10, far 11, background 12-14; the rest repeats attributes and is not read. With [35] it has
// a lens: focal lengths fx 23 and fy 24 and the principal point cx 25, cy 26 in pixels, which the
// field of view then does not give, and the distortion k1 k2 p1 p2 k3 k4 k5 k6 27-34. Every operand
// may have a batch in front, [B, …]; those without are shared by all images.
//
// A splat whose position, scales or rotation are not finite, or whose opacity is NaN, is not seen.
#pragma once

#include <array>
#include <string_view>

#include "ricci/op/fields.h"

namespace ricci {

/// How opacities are given: between 0 and 1 (clamped), or as logits.
enum class OpacitySpace : std::uint8_t { Linear, Logit };
constexpr auto enumerator_names(OpacitySpace) {
  return std::to_array<std::string_view>({"linear", "logit"});
}

/// Where a splat's colour comes from: spherical harmonics of the view direction, or `colors`.
enum class SplatColor : std::uint8_t { Sh, Rgb };
constexpr auto enumerator_names(SplatColor) {
  return std::to_array<std::string_view>({"sh", "rgb"});
}

/// Numbers in `meta`, without and with a lens.
inline constexpr std::int64_t SplatMetaLength = 23;
inline constexpr std::int64_t SplatLensMetaLength = 35;

}  // namespace ricci

namespace ricci::op {

/// The image [H·W·4] of a scene. Along the ray d of a pixel a splat's opacity is the Gaussian's
/// maximum:
///   A = diag(1/(e^s·radius_scale)) Rᵀ;  p = A (camera - μ);  r = A d;  t = -(p·r)/(r·r);
///   α = o·e^(-|p + t·r|²/2), nothing where α < alpha_cutoff or t ≤ 0
/// and splats are composed by distance, C += T·α·c, T ← T·(1-α), until T < transmittance_threshold
/// or after max_splat_steps; rgb = max(0, C + T·background)^gamma, alpha = 1 - T. Tiles are how it
/// is computed, not what: the image does not depend on tile_size. Derivatives take what is discrete
/// (order, cutoffs, the early stop) as constant. Reverse mode runs the two halves of it instead and
/// keeps what they find, unless lists for every splat in every tile would be longer than 2^24.
struct GaussianSplatRender {
  std::int64_t width = 64;
  std::int64_t height = 64;
  std::int64_t tile_size = 16;
  Real radius_scale = 1.6;
  Real alpha_cutoff = 1.0 / 255;
  std::int64_t max_splat_steps = 32;
  Real transmittance_threshold = 0.01;
  std::int64_t max_list_entries = 0;
  OpacitySpace opacity_space = OpacitySpace::Linear;
  SplatColor color_source = SplatColor::Sh;
  std::int64_t sh_band = 3;
  bool view_from_splat = false;
  Real gamma = 2.2;

  static constexpr OpInfo info{
      .name = "gaussian_splat_render",
      .operands = "positions, scales, rotations, opacities, colors, sh_coeffs, meta",
      .results = "rgba",
      .help = "image of a scene of three-dimensional Gaussians",
      .formula = "rgb = max(0, Σ_i T_i α_i c_i + T background)^gamma, alpha = 1 - T, "
                 "T_i = Π_{j<i} (1 - α_j)",
      .constraints =
          "c1 dtype: all operands have one dtype, f32 or f64\n"
          "c2 shape: operands are flat, those with a batch in front have one batch size\n"
          "c3 shape: positions, scales and colors are [3N], rotations [4N], opacities [N]\n"
          "c4 shape: sh_coeffs is [N·K·3] with 1 to 16 coefficients K\n"
          "c5 shape: meta is [23], or [35] with a lens\n"
          "c6 attr: width, height and tile_size are between 1 and 65536\n"
          "c7 attr: radius_scale and gamma are positive, alpha_cutoff between 0 and 1, "
          "transmittance_threshold at least 0 and below 1\n"
          "c8 attr: max_splat_steps is not negative, max_list_entries between 0 and 2^31 - 1, "
          "sh_band between 0 and 3",
      .jvp = RuleSource::Expansion,
      .keeps_residuals = true,
      .numerics = Numerics::Reduction};
  static void fields(auto& self, auto&& f) {
    f("width", self.width, "of the image, in pixels");
    f("height", self.height, "of the image, in pixels");
    f("tile_size", self.tile_size, "side of a tile, in pixels");
    f("radius_scale", self.radius_scale, "factor on every scale", Presence::Defaulted,
      Range::Factor);
    f("alpha_cutoff", self.alpha_cutoff, "opacities below do not count");
    f("max_splat_steps", self.max_splat_steps, "splats a pixel sees at most; 0: all");
    f("transmittance_threshold", self.transmittance_threshold, "where a pixel counts as opaque");
    f("max_list_entries", self.max_list_entries,
      "entries of all tile lists that prepare has room for; 0: every splat in every tile");
    f("opacity_space", self.opacity_space, "how opacities are given");
    f("color_source", self.color_source, "where colours come from");
    f("sh_band", self.sh_band, "highest band of spherical harmonics, as far as there are any");
    f("view_from_splat", self.view_from_splat,
      "take the view direction from the splat to the camera");
    f("gamma", self.gamma, "exponent of the colours in the image; 1: linear", Presence::Defaulted,
      Range::Factor);
  }
  bool operator==(const GaussianSplatRender&) const = default;
};

/// The derivative of gaussian_splat_render, exact for every parameter and for the camera (position,
/// target, up, field of view, background, lens), from the cotangent of the image. What the way
/// there has found, the results of gaussian_splat_rasterize and gaussian_splat_prepare for this
/// scene, spares finding it again; it says nothing new, so it carries no derivative.
struct GaussianSplatBackward {
  std::int64_t width = 64;
  std::int64_t height = 64;
  std::int64_t tile_size = 16;
  Real radius_scale = 1.6;
  Real alpha_cutoff = 1.0 / 255;
  std::int64_t max_splat_steps = 32;
  Real transmittance_threshold = 0.01;
  std::int64_t max_list_entries = 0;
  OpacitySpace opacity_space = OpacitySpace::Linear;
  SplatColor color_source = SplatColor::Sh;
  std::int64_t sh_band = 3;
  bool view_from_splat = false;
  Real gamma = 2.2;

  static constexpr OpInfo info{
      .name = "gaussian_splat_backward",
      .operands = "positions, scales, rotations, opacities, colors, sh_coeffs, meta, drgba, rgba?, "
                  "before_last?, last_hit?, color_alpha?, pos_local?, inv_scale?, quaternion?, "
                  "ids?, tile_ranges?, rays?",
      .results = "dpositions, dscales, drotations, dopacities, dcolors, dsh_coeffs, dmeta",
      .traits = Trait::Faults,
      .help = "derivative of gaussian_splat_render",
      .formula = "dc_i = du T_i α_i; dα_i = T_i (w_i - dT_{i+1}); dT_i = α_i w_i + (1 - α_i) "
                 "dT_{i+1}, w_i = du·c_i; then through α_i(μ, s, q, o, camera) and c_i(sh, μ)",
      .constraints =
          "c1 dtype: all operands have one dtype, f32 or f64\n"
          "c2 shape: operands are flat, those with a batch in front have one batch size\n"
          "c3 shape: positions, scales and colors are [3N], rotations [4N], opacities [N]\n"
          "c4 shape: sh_coeffs is [N·K·3] with 1 to 16 coefficients K\n"
          "c5 shape: meta is [23], or [35] with a lens\n"
          "c6 attr: width, height and tile_size are between 1 and 65536\n"
          "c7 attr: radius_scale and gamma are positive, alpha_cutoff between 0 and 1, "
          "transmittance_threshold at least 0 and below 1\n"
          "c8 attr: max_splat_steps is not negative, max_list_entries between 0 and 2^31 - 1, "
          "sh_band between 0 and 3\n"
          "c9 shape: drgba is [height·width·4]\n"
          "c10 shape: all of rgba to rays are given, as gaussian_splat_rasterize and "
          "gaussian_splat_prepare give them, or none",
      .no_gradient = "rgba, before_last, last_hit, color_alpha, pos_local, inv_scale, quaternion, "
                     "ids, tile_ranges, rays",
      .numerics = Numerics::Reduction};
  static void fields(auto& self, auto&& f) { GaussianSplatRender::fields(self, f); }
  bool operator==(const GaussianSplatBackward&) const = default;
};

/// The first half of gaussian_splat_render, what does not depend on a pixel's neighbours:
///   color_alpha [4N]  colour and opacity, 0 for a splat that is not seen
///   pos_local [3N], inv_scale [3N], quaternion [4N]  the splat's own frame, in units of three
///     standard deviations: α = o·e^(-4.5·|e_local|²)
///   ids i32 [entries], tile_ranges i32 [2·tiles]  splats tile by tile, each list by distance; a
///     tile without any has the range -1, 0
///   rays [3·H·W]  unit directions
/// Numbers are f64 whatever the scene's dtype: pos_local of a flat splat has none to spare. A scene
/// with more than max_list_entries entries is an error.
struct GaussianSplatPrepare {
  std::int64_t width = 64;
  std::int64_t height = 64;
  std::int64_t tile_size = 16;
  Real radius_scale = 1.6;
  Real alpha_cutoff = 1.0 / 255;
  std::int64_t max_list_entries = 0;
  OpacitySpace opacity_space = OpacitySpace::Linear;
  SplatColor color_source = SplatColor::Sh;
  std::int64_t sh_band = 3;
  bool view_from_splat = false;

  static constexpr OpInfo info{
      .name = "gaussian_splat_prepare",
      .operands = "positions, scales, rotations, opacities, colors, sh_coeffs, meta",
      .results = "color_alpha, pos_local, inv_scale, quaternion, ids, tile_ranges, rays",
      .traits = Trait::Faults,
      .help = "splats as a camera sees them, with lists by tile",
      .formula = "inv_scale = 1/max(3 e^s radius_scale, 1e-6); pos_local = inv_scale Rᵀ(camera - "
                 "μ); ids of tile t = ids[tile_ranges[2t] … tile_ranges[2t+1])",
      .constraints =
          "c1 dtype: all operands have one dtype, f32 or f64\n"
          "c2 shape: operands are flat, those with a batch in front have one batch size\n"
          "c3 shape: positions, scales and colors are [3N], rotations [4N], opacities [N]\n"
          "c4 shape: sh_coeffs is [N·K·3] with 1 to 16 coefficients K\n"
          "c5 shape: meta is [23], or [35] with a lens\n"
          "c6 attr: width, height and tile_size are between 1 and 65536\n"
          "c7 attr: radius_scale is positive, alpha_cutoff between 0 and 1\n"
          "c8 attr: max_list_entries is between 0 and 2^31 - 1, sh_band between 0 and 3",
      .numerics = Numerics::Reduction};
  static void fields(auto& self, auto&& f) {
    f("width", self.width, "of the image, in pixels");
    f("height", self.height, "of the image, in pixels");
    f("tile_size", self.tile_size, "side of a tile, in pixels");
    f("radius_scale", self.radius_scale, "factor on every scale", Presence::Defaulted,
      Range::Factor);
    f("alpha_cutoff", self.alpha_cutoff, "opacities below do not count");
    f("max_list_entries", self.max_list_entries,
      "entries of all tile lists there is room for; 0: every splat in every tile");
    f("opacity_space", self.opacity_space, "how opacities are given");
    f("color_source", self.color_source, "where colours come from");
    f("sh_band", self.sh_band, "highest band of spherical harmonics, as far as there are any");
    f("view_from_splat", self.view_from_splat,
      "take the view direction from the splat to the camera");
  }
  bool operator==(const GaussianSplatPrepare&) const = default;
};

/// The second half of gaussian_splat_render: the image, in the dtype of `meta`, from what
/// gaussian_splat_prepare gives. Of `meta` it reads the background. A pixel's `before_last` is the
/// transmittance in front of its last hit (1 without any), `last_hit` the number of entries of its
/// tile's list up to there: where the way back begins, also behind a splat that hides all.
struct GaussianSplatRasterize {
  std::int64_t width = 64;
  std::int64_t height = 64;
  std::int64_t tile_size = 16;
  Real alpha_cutoff = 1.0 / 255;
  std::int64_t max_splat_steps = 32;
  Real transmittance_threshold = 0.01;
  std::int64_t max_list_entries = 0;
  Real gamma = 2.2;

  static constexpr OpInfo info{
      .name = "gaussian_splat_rasterize",
      .operands = "color_alpha, pos_local, inv_scale, quaternion, ids, tile_ranges, rays, meta",
      .results = "rgba, before_last?, last_hit?",
      .traits = Trait::Faults,
      .help = "image of prepared splats",
      .formula = "rgb = max(0, Σ_i T_i α_i c_i + T background)^gamma over the list of the pixel's "
                 "tile, alpha = 1 - T",
      .constraints =
          "c1 dtype: meta is f32 or f64, ids and tile_ranges are i32, the others f64\n"
          "c2 shape: operands are flat, those with a batch in front have one batch size\n"
          "c3 shape: color_alpha and quaternion are [4N], pos_local and inv_scale [3N]\n"
          "c4 shape: tile_ranges is [2·tiles], rays [3·height·width], meta [23] or "
          "[35]\n"
          "c5 attr: width, height and tile_size are between 1 and 65536\n"
          "c6 attr: gamma is positive, alpha_cutoff between 0 and 1, transmittance_threshold at "
          "least 0 and below 1\n"
          "c7 attr: max_splat_steps is not negative, max_list_entries between 0 and 2^31 - 1",
      .numerics = Numerics::Reduction};
  static void fields(auto& self, auto&& f) {
    f("width", self.width, "of the image, in pixels");
    f("height", self.height, "of the image, in pixels");
    f("tile_size", self.tile_size, "side of a tile, in pixels");
    f("alpha_cutoff", self.alpha_cutoff, "opacities below do not count");
    f("max_splat_steps", self.max_splat_steps, "splats a pixel sees at most; 0: all");
    f("transmittance_threshold", self.transmittance_threshold, "where a pixel counts as opaque");
    f("max_list_entries", self.max_list_entries, "as gaussian_splat_prepare has it");
    f("gamma", self.gamma, "exponent of the colours in the image; 1: linear", Presence::Defaulted,
      Range::Factor);
  }
  bool operator==(const GaussianSplatRasterize&) const = default;
};

}  // namespace ricci::op
