#include "ricci/build/gaussian_splat.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ricci/build/elementwise.h"
#include "ricci/build/reduce.h"
#include "ricci/support/checked.h"

#include "support/float_environment.h"

namespace ricci {
namespace {

constexpr std::int64_t Three = 3;
constexpr std::int64_t PackedParams = 11;

std::array<Value, 7> operands_of(const GaussianSplatInputs& in) {
  return {in.positions, in.scales, in.rotations, in.opacities, in.colors, in.sh_coeffs, in.meta};
}

// Scales of which none is smaller than the splat's largest by more than a factor.
Value less_anisotropic(Value scales, double most) {
  const DefaultFloatEnvironment floats;
  Dims by_splat = scales.dims();
  by_splat.back() = *Dim::divide(by_splat.back(), Three);
  by_splat.emplace_back(Three);
  const Value rows = reshape_to(scales, by_splat);
  const Axis last = static_cast<std::int64_t>(by_splat.size()) - 1;
  const Value largest = reduce_max(rows, {last}, true);
  return reshape_to(max(rows, largest - std::log(most)), scales.dims());
}

}  // namespace

std::vector<double> gaussian_splat_meta_numbers(const GaussianSplatCamera& camera,
                                                const GaussianSplatRenderParams& params) {
  std::vector<double> out;
  for (const auto& v : {camera.position, camera.target, camera.up}) {
    out.insert(out.end(), v.begin(), v.end());
  }
  out.insert(out.end(), {camera.field_of_view, camera.near_plane, camera.far_plane});
  out.insert(out.end(), camera.background.begin(), camera.background.end());
  const auto number = [](std::int64_t n) { return static_cast<double>(n); };
  out.insert(out.end(), {number(params.width), number(params.height), number(params.tile_size),
                         params.radius_scale, params.alpha_cutoff, number(params.max_splat_steps),
                         params.transmittance_threshold, number(params.max_list_entries)});
  if (!camera.lens) return out;
  out.insert(out.end(), camera.lens->focal.begin(), camera.lens->focal.end());
  out.insert(out.end(), camera.lens->principal_point.begin(), camera.lens->principal_point.end());
  out.insert(out.end(), camera.lens->distortion.begin(), camera.lens->distortion.end());
  return out;
}

Value gaussian_splat_render_meta(Graph& graph, const GaussianSplatCamera& camera,
                                 const GaussianSplatRenderParams& params, DType dtype,
                                 std::source_location loc) {
  const std::vector<double> numbers = gaussian_splat_meta_numbers(camera, params);
  const Type type{dtype, {static_cast<std::int64_t>(numbers.size())}};
  return graph.constant(Tensor::from_numbers<double>(type, numbers), loc);
}

Value gaussian_splat_render(const GaussianSplatInputs& inputs,
                            const GaussianSplatRenderParams& params, std::source_location loc) {
  return detail::build(operands_of(inputs), params, loc);
}

GaussianSplatPrepared gaussian_splat_prepare(const GaussianSplatInputs& inputs,
                                             const op::GaussianSplatPrepare& params,
                                             std::source_location loc) {
  const auto [color_alpha, pos_local, inv_scale, quaternion, ids, tile_ranges, rays] =
      detail::build(operands_of(inputs), params, loc);
  return {color_alpha, pos_local, inv_scale, quaternion, ids, tile_ranges, rays};
}

Value gaussian_splat_rasterize(const GaussianSplatPrepared& p, Value meta,
                               const op::GaussianSplatRasterize& params, std::source_location loc) {
  return detail::build(std::array{p.color_alpha, p.pos_local, p.inv_scale, p.quaternion, p.ids,
                                  p.tile_ranges, p.rays, meta},
                       params, loc);
}

Value gaussian_splat_render_decomposed(const GaussianSplatInputs& inputs,
                                       const GaussianSplatRenderParams& params,
                                       std::source_location loc) {
  const GaussianSplatPrepared prepared =
      gaussian_splat_prepare(inputs,
                             {.width = params.width,
                              .height = params.height,
                              .tile_size = params.tile_size,
                              .radius_scale = params.radius_scale,
                              .alpha_cutoff = params.alpha_cutoff,
                              .max_list_entries = params.max_list_entries,
                              .opacity_space = params.opacity_space,
                              .color_source = params.color_source,
                              .sh_band = params.sh_band,
                              .view_from_splat = params.view_from_splat},
                             loc);
  return gaussian_splat_rasterize(prepared, inputs.meta,
                                  {.width = params.width,
                                   .height = params.height,
                                   .tile_size = params.tile_size,
                                   .alpha_cutoff = params.alpha_cutoff,
                                   .max_splat_steps = params.max_splat_steps,
                                   .transmittance_threshold = params.transmittance_threshold,
                                   .max_list_entries = params.max_list_entries,
                                   .gamma = params.gamma},
                                  loc);
}

Value gaussian_splat_render_backward(const GaussianSplatInputs& inputs, Value d_rgba,
                                     const GaussianSplatBackwardParams& params,
                                     std::source_location loc) {
  const GaussianSplatRenderParams& r = params.render;
  const op::GaussianSplatBackward op{.width = r.width,
                                     .height = r.height,
                                     .tile_size = r.tile_size,
                                     .radius_scale = r.radius_scale,
                                     .alpha_cutoff = r.alpha_cutoff,
                                     .max_splat_steps = r.max_splat_steps,
                                     .transmittance_threshold = r.transmittance_threshold,
                                     .max_list_entries = r.max_list_entries,
                                     .opacity_space = r.opacity_space,
                                     .color_source = r.color_source,
                                     .sh_band = r.sh_band,
                                     .view_from_splat = r.view_from_splat,
                                     .gamma = r.gamma};
  GaussianSplatInputs in = inputs;
  if (params.max_anisotropy > 0) in.scales = less_anisotropic(in.scales, params.max_anisotropy);
  if (params.loss_grad_clip > 0) {
    d_rgba = min(max(d_rgba, -params.loss_grad_clip), params.loss_grad_clip);
  }
  const auto scene = operands_of(in);
  std::vector<Value> operands(scene.begin(), scene.end());
  operands.push_back(d_rgba);
  const auto gradients = detail::build(operands, op, loc);
  const Axis last = static_cast<std::int64_t>(gradients[0].rank()) - 1;
  return concat(std::span(gradients).first(6), {.axis = last}, loc);
}

GaussianSplatGradients unpack_gaussian_splat_packed_grads(Graph& graph, Value packed,
                                                          std::int64_t count,
                                                          std::int64_t coefficients,
                                                          std::source_location loc) {
  if (count < 0 || coefficients < 0) {
    throw UserError(ErrorCode::Attr, "a scene cannot have a negative number of splats");
  }
  if (packed.valid() && &packed.graph() != &graph) {
    throw UserError(ErrorCode::Name, "packed gradients belong to another graph");
  }
  const Axis last = static_cast<std::int64_t>(packed.rank()) - 1;
  std::int64_t start = 0;
  const auto next = [&](std::int64_t length) {
    const Value part = narrow(packed, {.axis = last, .start = start, .len = length}, loc);
    start += length;
    return part;
  };
  const std::int64_t used = count == 0 ? 1 : coefficients;
  GaussianSplatGradients out;
  out.positions = next(3 * count);
  out.scales = next(3 * count);
  out.rotations = next(4 * count);
  out.opacities = next(count);
  out.colors = next(3 * count);
  out.sh_coeffs = next(3 * count * used);
  return out;
}

std::int64_t gaussian_splat_packed_grad_length(std::int64_t count, std::int64_t coefficients) {
  const std::int64_t each = checked_mul(3, count == 0 ? 1 : coefficients);
  return checked_mul(count, checked_add(14, each));
}

std::int64_t gaussian_splat_tile_count(std::int64_t width, std::int64_t height,
                                       std::int64_t tile_size) {
  if (width < 0 || height < 0 || tile_size < 1) {
    throw UserError(ErrorCode::Attr, fmt::format("there are no tiles of {} in an image of {} × {}",
                                                 tile_size, width, height));
  }
  const auto tiles = [&](std::int64_t n) { return n / tile_size + (n % tile_size != 0 ? 1 : 0); };
  return checked_mul(tiles(width), tiles(height));
}

std::int64_t gaussian_splat_prepare_length(const op::GaussianSplatPrepare& params,
                                           std::int64_t count) {
  constexpr std::int64_t PerSplat = 15;
  const std::int64_t tiles =
      gaussian_splat_tile_count(params.width, params.height, params.tile_size);
  const std::int64_t entries =
      params.max_list_entries > 0 ? params.max_list_entries : checked_mul(count, tiles);
  const std::int64_t rays = checked_mul(3, checked_mul(params.width, params.height));
  std::int64_t length = PackedParams;
  for (const std::int64_t part : {checked_mul(PerSplat, std::max<std::int64_t>(count, 1)), entries,
                                  checked_mul(2, tiles), rays}) {
    length = checked_add(length, part);
  }
  return length;
}

namespace {

void require_flat(Value v, std::string_view what) {
  if (v.rank() == 1) return;
  throw UserError(ErrorCode::Shape,
                  fmt::format("{} is {}, but a buffer holds one image", what, v.type().to_string()),
                  "pack the images of a batch one by one");
}

// The params at the end of a buffer.
Value packed_params(Value meta, const op::GaussianSplatRasterize& p, DType dtype,
                    std::source_location loc) {
  const auto number = [](std::int64_t n) { return static_cast<double>(n); };
  const auto constant = [&](const std::vector<double>& numbers) {
    const Type type{dtype, {static_cast<std::int64_t>(numbers.size())}};
    return meta.graph().constant(Tensor::from_numbers<double>(type, numbers), loc);
  };
  const Value background = cast_to(narrow(meta, {.axis = 0, .start = 12, .len = 3}, loc), dtype);
  const Value shown = pow(max(background, 0), p.gamma);
  const std::int64_t across = (p.width + p.tile_size - 1) / p.tile_size;
  return concat({constant({number(p.width), number(p.height), number(p.tile_size), number(across),
                           p.alpha_cutoff, p.transmittance_threshold}),
                 shown, constant({number(p.max_splat_steps), 0})},
                {.axis = 0}, loc);
}

}  // namespace

Value pack_gaussian_splat_prepared(const GaussianSplatPrepared& prepared, Value meta,
                                   const op::GaussianSplatRasterize& params, DType dtype,
                                   std::source_location loc) {
  require_flat(prepared.color_alpha, "color_alpha");
  require_flat(meta, "meta");
  const std::int64_t count = prepared.color_alpha.dims()[0].value() / 4;
  if (dtype == DType::F32 && count > (std::int64_t{1} << 24)) {
    throw UserError(ErrorCode::Attr,
                    fmt::format("f32 cannot hold the ids of {} splats exactly", count),
                    "pack in f64");
  }
  const auto part = [&](Value v, std::int64_t room) {
    const Value numbers = cast_to(v, dtype);
    return count > 0 ? numbers : filled(v.graph(), {dtype, {room}}, 0);
  };
  const Value opacity = count > 0 ? reshape_to(narrow(reshape_to(prepared.color_alpha, {count, 4}),
                                                      {.axis = 1, .start = 3, .len = 1}, loc),
                                               {count})
                                  : prepared.color_alpha;
  return concat(
      {part(prepared.color_alpha, 4), part(gt(opacity, 0), 1), part(prepared.pos_local, 3),
       part(prepared.inv_scale, 3), part(prepared.quaternion, 4), cast_to(prepared.ids, dtype),
       cast_to(prepared.tile_ranges, dtype), cast_to(prepared.rays, dtype),
       packed_params(meta, params, dtype, loc)},
      {.axis = 0}, loc);
}

GaussianSplatPrepared unpack_gaussian_splat_prepared(Value packed, std::int64_t count,
                                                     const op::GaussianSplatRasterize& params,
                                                     std::source_location loc) {
  require_flat(packed, "packed");
  const std::int64_t room = std::max<std::int64_t>(count, 1);
  const std::int64_t tiles =
      gaussian_splat_tile_count(params.width, params.height, params.tile_size);
  const std::int64_t rays = checked_mul(3, checked_mul(params.width, params.height));
  const std::int64_t others = checked_add(checked_add(checked_mul(15, room), checked_mul(2, tiles)),
                                          checked_add(rays, PackedParams));
  const std::int64_t entries = checked_add(packed.dims()[0].value(), -others);
  if (count < 0 || entries < 0) {
    throw UserError(ErrorCode::Shape,
                    fmt::format("a buffer of {} numbers cannot hold {} splats in {} tiles",
                                packed.dims()[0].value(), count, tiles));
  }
  std::int64_t start = 0;
  const auto next = [&](std::int64_t length, std::int64_t held, DType dtype) {
    const Value part = narrow(packed, {.axis = 0, .start = start, .len = held}, loc);
    start += length;
    return cast_to(part, dtype);
  };
  GaussianSplatPrepared out;
  out.color_alpha = next(4 * room, 4 * count, DType::F64);
  start += room;  // valid: what has an opacity
  out.pos_local = next(3 * room, 3 * count, DType::F64);
  out.inv_scale = next(3 * room, 3 * count, DType::F64);
  out.quaternion = next(4 * room, 4 * count, DType::F64);
  out.ids = next(entries, entries, DType::I32);
  out.tile_ranges = next(2 * tiles, 2 * tiles, DType::I32);
  out.rays = next(rays, rays, DType::F64);
  return out;
}

}  // namespace ricci
