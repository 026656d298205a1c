#include "rule/gaussian_splat_expand.h"

#include <cmath>
#include <numbers>

#include "ricci/build/reduce.h"
#include "ricci/build/select.h"

#include "rule/gaussian_splat_parts.h"
#include "rule/tables/expand_rules.h"

namespace ricci::rule {
namespace {

// Three values that go together.
struct Triple {
  Value x;
  Value y;
  Value z;

  [[nodiscard]] Triple map(const auto& f) const { return {f(x), f(y), f(z)}; }
};
Triple operator+(const Triple& a, const Triple& b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
Triple operator-(const Triple& a, const Triple& b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
Triple operator*(const Triple& a, const Triple& b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }
Triple operator*(const Triple& a, Value s) { return {a.x * s, a.y * s, a.z * s}; }
Value dot_of(const Triple& a, const Triple& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
Triple cross_of(const Triple& a, const Triple& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
Triple unit_of(const Triple& a) { return a * rsqrt(dot_of(a, a)); }

Value zero_where_not(Value condition, Value v) { return where(condition, v, scalar_like(v, 0)); }
Value one_where_not(Value condition, Value v) { return where(condition, v, scalar_like(v, 1)); }

// Part k of the last axis, without that axis.
Value part(Value v, std::int64_t k) {
  const auto last = static_cast<std::int64_t>(v.rank()) - 1;
  Dims dims = v.dims();
  dims.pop_back();
  return reshape_to(narrow(v, {.axis = last, .start = k, .len = 1}), dims);
}
Triple triple(Value v, std::int64_t first = 0) {
  return {part(v, first), part(v, first + 1), part(v, first + 2)};
}
// The inverse of `part`: values [B, M] as [B, M, n].
Value joined(std::span<const Value> parts) {
  std::vector<Value> with_axis;
  for (const Value& v : parts) {
    Dims dims = v.dims();
    dims.emplace_back(1);
    with_axis.push_back(reshape_to(v, dims));
  }
  return concat(with_axis, {.axis = static_cast<std::int64_t>(parts[0].rank())});
}
Value per_splat(Value v) { return reshape_to(v, {v.dims()[0], 1, v.dims()[1]}); }
Value per_pixel(Value v) { return reshape_to(v, {v.dims()[0], v.dims()[1], 1}); }

// All operands with a batch in front, of one where there is none. Numbers are f64: along the short
// axis of a flat splat no others would do.
struct Batched {
  std::vector<Value> operands;
  Dim size = 1;
  bool given = false;

  explicit Batched(std::span<const Value> flat) {
    for (const Value& v : flat) {
      if (v.rank() != 2) continue;
      size = v.dims()[0];
      given = true;
    }
    for (const Value& v : flat) {
      const Value row = v.rank() == 2 ? v : reshape_to(v, {1, v.dims()[0]});
      const Value rows = broadcast_to(row, {size, row.dims()[1]});
      operands.push_back(is_float(v.dtype()) ? cast_to(rows, DType::F64) : rows);
    }
  }
  // Operand k as [B, M, n].
  [[nodiscard]] Value by(std::size_t k, const Dim& n) const {
    const Value v = operands[k];
    const auto count = Dim::divide(v.dims()[1], n);
    return reshape_to(v, {size, v.dims()[1].is(0) ? Dim(0) : *count, n});
  }
  // [B, …] as a result: flat, with the batch if there is one.
  [[nodiscard]] Value flat(Value v) const {
    Dim length = 1;
    for (std::size_t a = 1; a < v.rank(); ++a) length = length * v.dims()[a];
    return reshape_to(v, given ? Dims{size, length} : Dims{length});
  }
};

// Two values that go together.
struct Pair {
  Value x;
  Value y;
};

// A lens, as loop/splat_camera.h has it; coefficients are [B, 1].
struct LensGraph {
  std::array<Value, 8> k;

  // One step of Newton's method from v towards the point that the lens brings to `seen`.
  [[nodiscard]] Pair step(const Pair& v, const Pair& seen) const {
    const auto& [k1, k2, p1, p2, k3, k4, k5, k6] = k;
    const auto& [x, y] = v;
    const Value rr = square(x) + square(y);
    const Value over = rr * (k1 + rr * (k2 + rr * k3)) + 1;
    const Value under = rr * (k4 + rr * (k5 + rr * k6)) + 1;
    const Value rho = over / under;
    const Value slope =
        (k1 + rr * (k2 * 2 + rr * k3 * 3) - rho * (k4 + rr * (k5 * 2 + rr * k6 * 3))) / under;
    const Value xy = x * y;
    const Value jxx = rho + square(x) * slope * 2 + p1 * y * 2 + p2 * x * 6;
    const Value jxy = xy * slope * 2 + p1 * x * 2 + p2 * y * 2;
    const Value jyy = rho + square(y) * slope * 2 + p1 * y * 6 + p2 * x * 2;
    const Value dx = x * rho + p1 * xy * 2 + p2 * (rr + square(x) * 2) - seen.x;
    const Value dy = y * rho + p1 * (rr + square(y) * 2) + p2 * xy * 2 - seen.y;
    const Value det = jxx * jyy - square(jxy);
    return {x - (jyy * dx - jxy * dy) / det, y - (jxx * dy - jxy * dx) / det};
  }

  // Two steps from the solution have its derivatives up to the third.
  [[nodiscard]] Pair undone(const Pair& seen) const {
    const auto still = [](const Pair& v) { return Pair{stop_gradient(v.x), stop_gradient(v.y)}; };
    LensGraph fixed;
    for (std::size_t i = 0; i < k.size(); ++i) fixed.k[i] = stop_gradient(k[i]);
    const Pair target = still(seen);
    Pair v = target;
    for (int i = 0; i < 6; ++i) v = fixed.step(v, target);
    return step(step(still(v), seen), seen);
  }
};

struct View {
  Triple position;
  Triple forward;
  Triple rays;  // [B, P]

  View(Value meta, std::int64_t width, std::int64_t height) {
    const auto number = [&](std::int64_t k) {
      return narrow(meta, {.axis = 1, .start = k, .len = 1});
    };
    const auto numbers = [&](std::int64_t k) {
      return Triple{number(k), number(k + 1), number(k + 2)};
    };
    position = numbers(0);
    forward = unit_of(numbers(3) - position);
    const Triple right = unit_of(cross_of(numbers(6), forward));
    const Triple above = unit_of(cross_of(forward, right));
    const auto centres = [&](std::int64_t axis) {
      const Value index =
          iota(meta.graph(), {.shape = {1, height, width}, .axis = axis, .dtype = meta.dtype()});
      return reshape_to(index + 0.5, {1, height * width});
    };
    const auto half = [](std::int64_t side) { return static_cast<double>(side) / 2; };
    Pair at;
    if (meta.dims()[1].is(SplatLensMetaLength)) {
      LensGraph lens;
      for (std::size_t k = 0; k < 8; ++k) lens.k[k] = number(27 + static_cast<std::int64_t>(k));
      at = lens.undone(
          {(centres(2) - number(25)) / number(23), (centres(1) - number(26)) / number(24)});
    } else {
      const Value slope = tan(number(9) * (std::numbers::pi / 360)) / half(height);
      at = {(centres(2) - half(width)) * slope, (centres(1) - half(height)) * slope};
    }
    const auto& [x, y] = at;
    rays = (right * x + above * y + forward) * rsqrt(square(x) + square(y) + 1);
  }
};

// Splats in some order, each value [B, M], or [B, P or 1, M] for pixels. Of one that is not seen
// all is 0.
struct Frames {
  Value valid;
  Value opacity;
  Triple color;
  Triple origin;   // in deviations
  Triple inverse;  // 1/deviation
  std::array<Value, 4> quaternion;

  [[nodiscard]] Frames map(const auto& f) const {
    return {
        f(valid),       f(opacity),
        color.map(f),   origin.map(f),
        inverse.map(f), {f(quaternion[0]), f(quaternion[1]), f(quaternion[2]), f(quaternion[3])}};
  }

  [[nodiscard]] std::array<Triple, 3> rotation() const {
    const auto& [w, x, y, z] = quaternion;
    const auto one_minus = [](Value v) { return 1.0 - v * 2; };
    return {{{one_minus(y * y + z * z), (x * y + w * z) * 2, (x * z - w * y) * 2},
             {(x * y - w * z) * 2, one_minus(x * x + z * z), (y * z + w * x) * 2},
             {(x * z + w * y) * 2, (y * z - w * x) * 2, one_minus(x * x + y * y)}}};
  }
};
Triple turned_back(const std::array<Triple, 3>& columns, const Triple& v) {
  return {dot_of(columns[0], v), dot_of(columns[1], v), dot_of(columns[2], v)};
}

// Σ_k basis_k(v)·sh_k + 1/2 for each channel; sh is [B, N, K·3].
Triple color_from(Value sh, const Triple& v, std::int64_t degree) {
  const auto& [x, y, z] = v;
  std::vector<Value> basis = {scalar_like(x, 0.28209479177387814)};
  if (degree >= 1) {
    const double c = 0.4886025119029199;
    basis.insert(basis.end(), {y * -c, z * c, x * -c});
  }
  const Value xx = square(x);
  const Value yy = square(y);
  const Value zz = square(z);
  if (degree >= 2) {
    const double c = 1.0925484305920792;
    basis.insert(basis.end(), {x * y * c, y * z * -c, (zz * 2 - xx - yy) * 0.31539156525252005,
                               x * z * -c, (xx - yy) * 0.5462742152960396});
  }
  if (degree >= 3) {
    const double c = -0.5900435899266435;
    const double d = -0.4570457994644658;
    basis.insert(basis.end(),
                 {y * (xx * 3 - yy) * c, x * y * z * 2.890611442640554, y * (zz * 4 - xx - yy) * d,
                  z * (zz * 2 - xx * 3 - yy * 3) * 0.3731763325901154, x * (zz * 4 - xx - yy) * d,
                  z * (xx - yy) * 1.445305721320277, x * (xx - yy * 3) * c});
  }
  Triple color;
  for (std::size_t k = 0; k < basis.size(); ++k) {
    const Triple term = triple(sh, 3 * static_cast<std::int64_t>(k)) * basis[k];
    color = k == 0 ? term : color + term;
  }
  return color.map([](Value c) { return c + 0.5; });
}

Value opacity_from(Value given, OpacitySpace space) {
  if (space == OpacitySpace::Logit) return sigmoid(given);
  const Value inside = logical_and(gt(given, 0), lt(given, 1));
  const Value ends = where(ge(given, 1), scalar_like(given, 1), scalar_like(given, 0));
  return where(inside, given, ends);
}

// Whether splats are seen at all, [B, N].
Value seen_of(const auto& op, std::span<const Value> scene, const View& view) {
  const auto finite = [](Value v, std::int64_t width) {
    Value all;
    for (std::int64_t k = 0; k < width; ++k) {
      const Value one = is_finite(part(v, k));
      all = k == 0 ? one : logical_and(all, one);
    }
    return all;
  };
  const Triple offset = view.position - triple(scene[0]);
  const Value depth = neg(dot_of(view.forward, offset));
  const Value opacity = opacity_from(part(scene[3], 0), op.opacity_space);
  Value turns;
  for (std::int64_t k = 0; k < 4; ++k) {
    const Value some = ne(part(scene[2], k), 0);
    turns = k == 0 ? some : logical_or(turns, some);
  }
  const Value whole =
      logical_and(logical_and(finite(scene[0], 3), finite(scene[1], 3)), finite(scene[2], 4));
  const Value before = logical_and(ge(opacity, op.alpha_cutoff), gt(depth, 1e-4));
  return logical_and(logical_and(whole, turns), before);
}

// The scene of operands [B, N, …] as the camera sees it. What is not seen is replaced before it is
// computed with, so that nothing comes back from it.
Frames frames_of(const auto& op, std::span<const Value> given, const View& view) {
  Frames f;
  f.valid = stop_gradient(seen_of(op, given, view));
  const Dims per_splat = {f.valid.dims()[0], f.valid.dims()[1], 1};
  const auto safe = [&](Value v, double otherwise) {
    const Value valid = broadcast_to(reshape_to(f.valid, per_splat), v.dims());
    return where(valid, v, scalar_like(v, otherwise));
  };
  const auto when_seen = [&](Value v) { return zero_where_not(f.valid, v); };
  const auto apart = [&](Value v) { return one_where_not(f.valid, v); };
  const Triple offset = (view.position - triple(safe(given[0], 0))).map(apart);
  const Value distance = sqrt(dot_of(offset, offset));
  const auto inverse = [&](Value s) {
    const Value shortest = lt(s, std::log(1e-6 / (3 * op.radius_scale)));
    const Value longer = exp(neg(where(shortest, scalar_like(s, 0), s))) / op.radius_scale.value;
    return where(shortest, scalar_like(s, 3e6), longer);
  };
  f.inverse = triple(safe(given[1], 0)).map(inverse);
  const Value turns = safe(given[2], 1);
  std::array<Value, 4> q;
  for (std::size_t k = 0; k < 4; ++k) q[k] = part(turns, static_cast<std::int64_t>(k));
  const Value scale = rsqrt(square(q[0]) + square(q[1]) + square(q[2]) + square(q[3]));
  for (std::size_t k = 0; k < 4; ++k) f.quaternion[k] = q[k] * scale;
  f.origin = turned_back(f.rotation(), offset) * f.inverse;
  f.opacity = opacity_from(part(safe(given[3], 0), 0), op.opacity_space);
  if (op.color_source == SplatColor::Rgb) {
    f.color = triple(given[4]);
  } else {
    const auto width = given[5].dims()[2].value();
    const Triple v = offset * ((op.view_from_splat ? 1.0 : -1.0) / distance);
    f.color = color_from(safe(given[5], 0), v, highest_band(op.sh_band, width / 3));
  }
  f.opacity = when_seen(f.opacity);
  for (Triple* t : {&f.color, &f.origin, &f.inverse}) *t = t->map(when_seen);
  for (Value& v : f.quaternion) v = when_seen(v);
  return f;
}

// Positions, …, sh_coeffs as [B, N, …].
std::vector<Value> scene_of(const Batched& in) {
  const Dim count = in.operands[3].dims()[1];
  const Dim sh = count.is(0) ? Dim(3) : Dim::divide(in.operands[5].dims()[1], count).value();
  return {in.by(0, 3), in.by(1, 3), in.by(2, 4), in.by(3, 1), in.by(4, 3), in.by(5, sh)};
}

// Rows of [B, N, n] by indices [B, M].
Value rows_by(Value v, Value indices) {
  const Dims& at = indices.dims();
  const Value spread =
      broadcast_to(reshape_to(indices, {at[0], at[1], 1}), {at[0], at[1], v.dims()[2]});
  return take_along_axis(v, spread, {.axis = 1});
}

// α [B, P, M] of splats along rays, 0 where there is no hit.
Value opacities_along(const Frames& f, const Triple& rays, double cutoff) {
  const Triple d = rays.map([](Value v) { return per_pixel(v); });
  const Triple& p = f.origin;
  const Triple r = turned_back(f.rotation(), d) * f.inverse;
  const Value rr = dot_of(r, r);
  const Value straight = logical_and(gt(rr, 0), is_finite(rr));
  // |p + t·r|² is that of p across r; t > 0 where p and r part.
  const Triple across = cross_of(p, r);
  const Value exponent = dot_of(across, across) / one_where_not(straight, rr) * -0.5;
  const Value alpha = f.opacity * exp(exponent);
  Value hit = logical_and(logical_and(straight, lt(dot_of(p, r), 0)), ge(alpha, cutoff));
  hit = logical_and(hit, f.valid);
  return zero_where_not(hit, alpha);
}

struct Composed {
  Value rgba;         // [B, P, 4]
  Value before_last;  // [B, P]
};

Composed composed(const auto& op, Value alpha, const Triple& color, Value meta) {
  Value seen = gt(alpha, 0);
  const Value before = cumprod(1.0 - alpha, {.axis = 2, .exclusive = true});
  if (op.transmittance_threshold > 0) {
    seen = logical_and(seen, ge(before, op.transmittance_threshold));
  }
  if (op.max_splat_steps > 0) {
    const Value hits = cumsum(cast_to(gt(alpha, 0), alpha.dtype()), {.axis = 2, .exclusive = true});
    seen = logical_and(seen, lt(hits, static_cast<double>(op.max_splat_steps)));
  }
  const Value kept = zero_where_not(seen, alpha);
  const Value weight = kept * cumprod(1.0 - kept, {.axis = 2, .exclusive = true});
  const Value left = reduce_prod(1.0 - kept, {2});
  std::vector<Value> channels;
  const std::array<Value, 3> colors = {color.x, color.y, color.z};
  for (std::size_t c = 0; c < 3; ++c) {
    const Value background =
        narrow(meta, {.axis = 1, .start = static_cast<std::int64_t>(12 + c), .len = 1});
    const Value u = sum(weight * colors[c], {2}) + left * background;
    const Value lit = gt(u, 0);
    const Value shown = op.gamma.value == 1 ? u : pow(one_where_not(lit, u), op.gamma);
    channels.push_back(zero_where_not(lit, shown));
  }
  channels.push_back(1.0 - left);
  const Value hits = cast_to(gt(kept, 0), DType::I32);
  const Value last = eq(cumsum(hits, {.axis = 2}), sum(hits, {2}, true));
  const Value in_front = where(last, scalar_like(kept, 0), kept);
  return {joined(channels), reduce_prod(1.0 - in_front, {2})};
}

}  // namespace

Value rendered(const op::GaussianSplatRender& op, std::span<const Value> operands) {
  const Batched in(operands);
  const Value meta = in.operands[6];
  const View view(meta, op.width, op.height);
  std::vector<Value> scene = scene_of(in);
  const Triple offset = view.position - triple(scene[0]);
  const Value order = arg_sort(stop_gradient(dot_of(offset, offset)), {.axis = 1});
  for (Value& v : scene) v = rows_by(v, order);
  const Frames frames = frames_of(op, scene, view).map([](Value v) { return per_splat(v); });
  const Value alpha = opacities_along(frames, view.rays, op.alpha_cutoff);
  const Value image = in.flat(composed(op, alpha, frames.color, meta).rgba);
  return cast_to(image, operands[0].dtype());
}

std::array<Value, 5> prepared(const op::GaussianSplatPrepare& op, std::span<const Value> operands) {
  const Batched in(operands);
  const View view(in.operands[6], op.width, op.height);
  const Frames f = frames_of(op, scene_of(in), view);
  const auto third = [](Value v) { return v / 3; };
  const Triple origin = f.origin.map(third);
  const Triple inverse = f.inverse.map(third);
  const auto flat = [&](std::initializer_list<Value> parts) {
    return in.flat(joined(std::span(parts.begin(), parts.size())));
  };
  return {flat({f.color.x, f.color.y, f.color.z, f.opacity}), flat({origin.x, origin.y, origin.z}),
          flat({inverse.x, inverse.y, inverse.z}),
          flat({f.quaternion[0], f.quaternion[1], f.quaternion[2], f.quaternion[3]}),
          flat({view.rays.x, view.rays.y, view.rays.z})};
}

namespace {

// The tile of every pixel.
Value tiles_of_pixels(Graph& graph, const op::GaussianSplatRasterize& op) {
  const std::int64_t across = (op.width + op.tile_size - 1) / op.tile_size;
  std::vector<std::int64_t> tiles;
  for (std::int64_t row = 0; row < op.height; ++row) {
    for (std::int64_t column = 0; column < op.width; ++column) {
      tiles.push_back(row / op.tile_size * across + column / op.tile_size);
    }
  }
  const Type type{DType::I32, {static_cast<std::int64_t>(tiles.size())}};
  return graph.constant(Tensor::from_numbers<std::int64_t>(type, tiles));
}

// The list of every pixel's tile, as long as there are splats: entries [B, P, N] and which of them
// there are.
struct PixelLists {
  Value entries;
  Value listed;

  PixelLists(const op::GaussianSplatRasterize& op, Value ranges, const Dim& count) {
    Graph& graph = ranges.graph();
    const Value range = gather(ranges, tiles_of_pixels(graph, op), {.axis = 1});  // [B, P, 2]
    const Value place = iota(graph, {.shape = {1, 1, count}, .axis = 2, .dtype = DType::I32});
    const Value first = per_pixel(part(range, 0));
    const Value at = first + place;
    listed = logical_and(ge(at, 0), lt(at, per_pixel(part(range, 1))));
    entries = where(listed, at, scalar_like(at, 0));
  }
};

}  // namespace

std::array<Value, 2> rasterized(const op::GaussianSplatRasterize& op,
                                std::span<const Value> operands) {
  const Batched in(operands);
  const Value splats = in.by(0, 4);
  // Where there is no entry, there is none to be looked at.
  const bool none = in.operands[4].dims()[1].is(0);
  const Dim count = none ? Dim(0) : splats.dims()[1];
  const PixelLists lists(op, in.by(5, 2), count);
  const Dims shape = lists.entries.dims();
  const Value entries = reshape_to(lists.entries, {shape[0], shape[1] * shape[2]});
  const Value ids = take_along_axis(in.operands[4], entries, {.axis = 1});
  const auto by_pixel = [&](Value v) { return reshape_to(v, shape); };
  const Value color_alpha = rows_by(splats, ids);
  const Value quaternion = rows_by(in.by(3, 4), ids);
  const auto thrice = [](Value v) { return v * 3; };
  Frames f;
  f.opacity = part(color_alpha, 3);
  f.valid = ge(f.opacity, op.alpha_cutoff);
  f.color = triple(color_alpha);
  f.origin = triple(rows_by(in.by(1, 3), ids)).map(thrice);
  f.inverse = triple(rows_by(in.by(2, 3), ids)).map(thrice);
  for (std::size_t k = 0; k < 4; ++k) {
    f.quaternion[k] = part(quaternion, static_cast<std::int64_t>(k));
  }
  f = f.map(by_pixel);
  f.valid = logical_and(f.valid, lists.listed);
  const Value alpha = opacities_along(f, triple(in.by(6, 3)), op.alpha_cutoff);
  const Composed image = composed(op, alpha, f.color, in.operands[7]);
  const DType dtype = operands[7].dtype();
  return {cast_to(in.flat(image.rgba), dtype), cast_to(in.flat(image.before_last), dtype)};
}

std::vector<Value> expand(const op::GaussianSplatRender& op, const ExpandContext& c) {
  return {rendered(op, c.operands)};
}

}  // namespace ricci::rule
