// Gaussian splats as calls.
#include "rule/gaussian_splat_parts.h"
#include "rule/tables/lower_rules.h"

namespace ricci::rule {
namespace {

using Stage = loop::Splats::Stage;

void set_sizes(loop::Splats& s, const auto& op, OperandDims operands) {
  for (const StaticDims& d : operands) {
    if (d.size() == 2) s.batch = d[0];
  }
  s.width = op.width;
  s.height = op.height;
  s.tile_size = op.tile_size;
  s.alpha_cutoff = op.alpha_cutoff;
}

// What says how the scene is read.
void set_scene(loop::Splats& s, const auto& op, OperandDims operands) {
  s.count = operands[3].back();
  s.coefficients = s.count == 0 ? 1 : operands[5].back() / (3 * s.count);
  s.radius_scale = op.radius_scale;
  s.opacity_space = op.opacity_space;
  s.color_source = op.color_source;
  s.degree = highest_band(op.sh_band, s.coefficients);
  s.view_from_splat = op.view_from_splat;
  s.lens = operands[6].back() == SplatLensMetaLength;
}

// What says how a pixel is composed.
void set_composing(loop::Splats& s, const auto& op) {
  s.max_steps = op.max_splat_steps;
  s.transmittance_threshold = op.transmittance_threshold;
  s.gamma = op.gamma;
}

loop::Splats whole(Stage stage, const auto& op, OperandDims operands) {
  loop::Splats s{.stage = stage};
  set_sizes(s, op, operands);
  set_scene(s, op, operands);
  set_composing(s, op);
  return s;
}

template <class To>
To with_attributes_of(const auto& op) {
  return {.width = op.width,
          .height = op.height,
          .tile_size = op.tile_size,
          .radius_scale = op.radius_scale,
          .alpha_cutoff = op.alpha_cutoff,
          .max_splat_steps = op.max_splat_steps,
          .transmittance_threshold = op.transmittance_threshold,
          .max_list_entries = op.max_list_entries,
          .opacity_space = op.opacity_space,
          .color_source = op.color_source,
          .sh_band = op.sh_band,
          .view_from_splat = op.view_from_splat,
          .gamma = op.gamma};
}

}  // namespace

std::int64_t highest_band(std::int64_t asked, std::int64_t coefficients) {
  std::int64_t band = 0;
  while (band < asked && (band + 2) * (band + 2) <= coefficients) ++band;
  return band;
}

op::GaussianSplatPrepare prepare_of(const op::GaussianSplatRender& op) {
  return {.width = op.width,
          .height = op.height,
          .tile_size = op.tile_size,
          .radius_scale = op.radius_scale,
          .alpha_cutoff = op.alpha_cutoff,
          .max_list_entries = op.max_list_entries,
          .opacity_space = op.opacity_space,
          .color_source = op.color_source,
          .sh_band = op.sh_band,
          .view_from_splat = op.view_from_splat};
}
op::GaussianSplatRasterize rasterize_of(const op::GaussianSplatRender& op) {
  return {.width = op.width,
          .height = op.height,
          .tile_size = op.tile_size,
          .alpha_cutoff = op.alpha_cutoff,
          .max_splat_steps = op.max_splat_steps,
          .transmittance_threshold = op.transmittance_threshold,
          .max_list_entries = op.max_list_entries,
          .gamma = op.gamma};
}

op::GaussianSplatRender render_of(const op::GaussianSplatBackward& op) {
  return with_attributes_of<op::GaussianSplatRender>(op);
}
op::GaussianSplatBackward backward_of(const op::GaussianSplatRender& op) {
  return with_attributes_of<op::GaussianSplatBackward>(op);
}

loop::Splats splats_of(const op::GaussianSplatRender& op, OperandDims operands) {
  return whole(Stage::Render, op, operands);
}
loop::Splats splats_of(const op::GaussianSplatBackward& op, OperandDims operands) {
  loop::Splats s = whole(Stage::Backward, op, operands);
  s.known = operands.size() > FirstKnown;
  if (s.known) s.entries = operands[FirstKnown + KnownIds].back();
  return s;
}
loop::Splats splats_of(const op::GaussianSplatPrepare& op, OperandDims operands) {
  loop::Splats s{.stage = Stage::Prepare};
  set_sizes(s, op, operands);
  set_scene(s, op, operands);
  s.entries = op.max_list_entries > 0 ? op.max_list_entries : s.count * s.tiles();
  return s;
}
loop::Splats splats_of(const op::GaussianSplatRasterize& op, OperandDims operands) {
  loop::Splats s{.stage = Stage::Rasterize};
  set_sizes(s, op, operands);
  set_composing(s, op);
  s.count = operands[0].back() / 4;
  s.entries = operands[4].back();
  return s;
}

Lowering lower(const op::GaussianSplatRender& op, const LowerContext& c) {
  return as_call(splats_of(op, c.operands));
}
Lowering lower(const op::GaussianSplatBackward& op, const LowerContext& c) {
  return as_call(splats_of(op, c.operands));
}
Lowering lower(const op::GaussianSplatPrepare& op, const LowerContext& c) {
  return as_call(splats_of(op, c.operands));
}
Lowering lower(const op::GaussianSplatRasterize& op, const LowerContext& c) {
  return as_call(splats_of(op, c.operands));
}

}  // namespace ricci::rule
