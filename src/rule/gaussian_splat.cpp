// Gaussian splats, pixel by pixel: every pixel looks at every splat in order of distance.
#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "loop/splat_outline.h"
#include "rule/gaussian_splat_parts.h"
#include "rule/tables/eval_rules.h"

namespace ricci::rule {
namespace {

using loop::Splats;
using namespace loop::splats;  // NOLINT: the formulas
using Vec = Vec3<double>;
using Order = std::vector<std::int64_t>;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::vector<StaticDims> dims_of(const EvalContext& c) {
  std::vector<StaticDims> out;
  for (std::size_t k = 0; k < c.operands(); ++k) out.push_back(c.dims(k));
  return out;
}

// An operand, of which every image has a row or all share one.
struct Rows {
  RealNd all;

  Rows(const EvalContext& c, std::size_t k) : all(c.real(k)) {}
  [[nodiscard]] const double* of(std::int64_t image) const {
    return all.data.data() + (all.dims.size() == 2 ? image * all.dims[1] : 0);
  }
};

// Operands 0 to 6.
struct Scenes {
  Splats s;
  Rows positions;
  Rows scales;
  Rows rotations;
  Rows opacities;
  Rows colors;
  Rows sh;
  Rows meta;

  Scenes(const Splats& splats, const EvalContext& c)
      : s(splats),
        positions(c, 0),
        scales(c, 1),
        rotations(c, 2),
        opacities(c, 3),
        colors(c, 4),
        sh(c, 5),
        meta(c, 6) {}

  [[nodiscard]] Scene<double> of(std::int64_t image) const {
    return {positions.of(image), scales.of(image), rotations.of(image),
            opacities.of(image), colors.of(image), sh.of(image)};
  }
  [[nodiscard]] Camera<double> camera(std::int64_t image) const { return {meta.of(image), s}; }
  [[nodiscard]] std::vector<Shape<double>> shapes(std::int64_t image) const {
    std::vector<Shape<double>> out;
    for (std::int64_t i = 0; i < s.count; ++i) {
      out.emplace_back(of(image), i, camera(image), s);
    }
    return out;
  }
};

// Splats that are seen, the nearest first; of those equally near the first one.
Order by_distance(const std::vector<Shape<double>>& shapes) {
  Order order;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].valid) order.push_back(static_cast<std::int64_t>(i));
  }
  const auto place = [&](std::int64_t i) { return std::pair(shapes[at(i)].distance, i); };
  std::ranges::sort(order, {}, place);
  return order;
}

// What a pixel sees: hits in order, with the transmittance before each.
struct Seen {
  struct One {
    std::int64_t splat;
    Hit<double> hit;
    double before;
  };
  std::vector<One> hits;
  Vec color{};
  double left = 1;             // T after the last
  std::int64_t looked_at = 0;  // of the order, up to the last

  Seen(std::span<const std::int64_t> order, const std::vector<Shape<double>>& shapes,
       const Vec& ray, const Splats& s) {
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::int64_t i = order[k];
      const Hit<double> hit(shapes[at(i)], ray, s.alpha_cutoff);
      if (hit.alpha == 0) continue;
      hits.push_back({i, hit, left});
      looked_at = static_cast<std::int64_t>(k) + 1;
      color += shapes[at(i)].color * (left * hit.alpha);
      left *= 1 - hit.alpha;
      if (left < s.transmittance_threshold) break;
      if (s.max_steps > 0 && std::cmp_greater_equal(hits.size(), s.max_steps)) break;
    }
  }

  [[nodiscard]] Vec with_background(const Vec& background) const {
    return color + background * left;
  }
  void write(double* rgba, const Vec& background, double gamma) const {
    const Vec u = with_background(background);
    rgba[0] = displayed(u.x, gamma);
    rgba[1] = displayed(u.y, gamma);
    rgba[2] = displayed(u.z, gamma);
    rgba[3] = 1 - left;
  }
};

template <class F>
void for_each_pixel(const Splats& s, F&& f) {
  for (std::int64_t row = 0; row < s.height; ++row) {
    for (std::int64_t column = 0; column < s.width; ++column) f(column, row);
  }
}

// u = C + T·bg, dT_{n+1} = du·bg - g_a; then for i = n … 1, with w_i = du·c_i:
// dc_i = du·T_i·α_i; dα_i = T_i·(w_i - dT_{i+1}); dT_i = α_i·w_i + (1 - α_i)·dT_{i+1}
void pixel_backward(const Seen& seen, const std::vector<Shape<double>>& shapes,
                    const Camera<double>& camera, const Vec& ray, const double* drgba,
                    const Splats& s, std::int64_t column, std::int64_t row,
                    std::vector<ShapeGradient<double>>& dshapes, CameraGradient<double>& dcamera) {
  const Vec u = seen.with_background(camera.background);
  const Vec du{drgba[0] * displayed_slope(u.x, s.gamma.value),
               drgba[1] * displayed_slope(u.y, s.gamma.value),
               drgba[2] * displayed_slope(u.z, s.gamma.value)};
  dcamera.background += du * seen.left;
  double dleft = dot(du, camera.background) - drgba[3];
  Vec dray{};
  for (std::size_t k = seen.hits.size(); k-- > 0;) {
    const auto& [i, hit, before] = seen.hits[k];
    const Shape<double>& shape = shapes[at(i)];
    const double w = dot(du, shape.color);
    const double dalpha = before * (w - dleft);
    dshapes[at(i)].add_hit(shape, hit, ray, dalpha, du * (before * hit.alpha));
    dray += rotate(shape.rotation, hit.e * (-dalpha * hit.alpha * hit.t) * shape.inverse);
    dleft = hit.alpha * w + (1 - hit.alpha) * dleft;
  }
  dcamera.add_ray(camera, column, row, dray);
}

// The list of a tile; UserError when it is none.
std::span<const std::int64_t> list_of(const EvalContext& c, std::span<const std::int64_t> ids,
                                      const std::int64_t* range, std::int64_t count) {
  const auto [first, last] = std::array{range[0], range[1]};
  if (first < 0 && last == 0) return {};
  if (first < 0 || last < first || std::cmp_greater(last, ids.size())) {
    c.fail(ErrorCode::IndexOutOfRange,
           fmt::format("the list of a tile is [{}, {}) of {} entries", first, last, ids.size()));
  }
  if (last - first > count) {
    c.fail(ErrorCode::IndexOutOfRange,
           fmt::format("a tile lists {} splats of {}", last - first, count));
  }
  const auto list = ids.subspan(at(first), at(last - first));
  for (const std::int64_t i : list) {
    if (i < 0 || i >= count) {
      c.fail(ErrorCode::IndexOutOfRange, fmt::format("a tile lists splat {} of {}", i, count));
    }
  }
  return list;
}

// The lists of all images, as operands.
struct GivenLists {
  IntNd ids;
  IntNd ranges;

  GivenLists(const EvalContext& c, std::size_t first)
      : ids(c.integers(first)), ranges(c.integers(first + 1)) {}
  [[nodiscard]] std::span<const std::int64_t> of(const EvalContext& c, const Splats& s,
                                                 std::int64_t image, std::int64_t tile) const {
    const std::int64_t own_ids = ids.dims.size() == 2 ? image : 0;
    const std::int64_t own_ranges = ranges.dims.size() == 2 ? image : 0;
    return list_of(c, std::span(ids.data).subspan(at(own_ids * s.entries), at(s.entries)),
                   ranges.data.data() + own_ranges * 2 * s.tiles() + 2 * tile, s.count);
  }
};

}  // namespace

void eval(const op::GaussianSplatRender& op, EvalContext& c) {
  const Scenes scenes(splats_of(op, dims_of(c)), c);
  const Splats& s = scenes.s;
  RealNd out(c.result_dims(0));
  for (std::int64_t image = 0; image < s.batch; ++image) {
    const std::vector<Shape<double>> shapes = scenes.shapes(image);
    const Order order = by_distance(shapes);
    const Camera<double> camera = scenes.camera(image);
    double* rgba = out.data.data() + 4 * image * s.pixels();
    for_each_pixel(s, [&](std::int64_t column, std::int64_t row) {
      const Seen seen(order, shapes, camera.ray(column, row), s);
      seen.write(rgba + 4 * (row * s.width + column), camera.background, s.gamma);
    });
  }
  c.give(0, out);
}

void eval(const op::GaussianSplatBackward& op, EvalContext& c) {
  const Scenes scenes(splats_of(op, dims_of(c)), c);
  const Splats& s = scenes.s;
  const Rows drgba(c, 7);
  if (s.known) {
    // What is known says nothing new; that it is nonsense is an error all the same.
    const GivenLists lists(c, FirstKnown + KnownIds);
    for (std::int64_t image = 0; image < s.batch; ++image) {
      for (std::int64_t tile = 0; tile < s.tiles(); ++tile) (void)lists.of(c, s, image, tile);
    }
  }
  std::vector<RealNd> out;
  for (std::size_t r = 0; r < 7; ++r) out.emplace_back(c.result_dims(r));
  for (std::int64_t image = 0; image < s.batch; ++image) {
    const std::vector<Shape<double>> shapes = scenes.shapes(image);
    const Order order = by_distance(shapes);
    const Camera<double> camera = scenes.camera(image);
    std::vector<ShapeGradient<double>> dshapes(shapes.size());
    CameraGradient<double> dcamera;
    for_each_pixel(s, [&](std::int64_t column, std::int64_t row) {
      const Vec ray = camera.ray(column, row);
      pixel_backward(Seen(order, shapes, ray, s), shapes, camera, ray,
                     drgba.of(image) + 4 * (row * s.width + column), s, column, row, dshapes,
                     dcamera);
    });
    const auto row = [&](std::size_t r) { return out[r].data.data() + image * out[r].dims.back(); };
    for (std::int64_t i = 0; i < s.count; ++i) {
      const SplatGradient<double> gradient{row(0) + 3 * i, row(1) + 3 * i,
                                           row(2) + 4 * i, row(3) + i,
                                           row(4) + 3 * i, row(5) + 3 * i * s.coefficients};
      if (shapes[at(i)].valid) {
        dcamera.position += gradient.write(scenes.of(image), i, shapes[at(i)], dshapes[at(i)], s);
      } else {
        gradient.write_nothing(s);
      }
    }
    dcamera.add_to(camera, row(6));
  }
  for (std::size_t r = 0; r < out.size(); ++r) {
    if (c.wanted(r)) c.give(r, out[r]);
  }
}

namespace {

// Where the pixels of every tile look.
std::vector<PlaneBox> boxes_of_tiles(const Camera<double>& camera, const Splats& s) {
  std::vector<PlaneBox> boxes(at(s.tiles()));
  for_each_pixel(s, [&](std::int64_t column, std::int64_t row) {
    const std::int64_t tile = row / s.tile_size * s.tiles_across() + column / s.tile_size;
    boxes[at(tile)].add(camera, camera.ray(column, row));
  });
  return boxes;
}

// The lists of all tiles of one image.
struct TileLists {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> ranges;  // [tiles][2]

  TileLists(const std::vector<Shape<double>>& shapes, const Camera<double>& camera,
            const Splats& s) {
    const Order order = by_distance(shapes);
    std::vector<Outline> outlines;
    for (const std::int64_t i : order) outlines.emplace_back(shapes[at(i)], camera, s.alpha_cutoff);
    for (const PlaneBox& box : boxes_of_tiles(camera, s)) {
      const auto start = static_cast<std::int64_t>(ids.size());
      for (std::size_t k = 0; k < order.size(); ++k) {
        if (outlines[k].meets(box)) ids.push_back(order[k]);
      }
      const auto end = static_cast<std::int64_t>(ids.size());
      ranges.insert(ranges.end(), {start == end ? -1 : start, start == end ? 0 : end});
    }
  }
};

void write_shape(const Shape<double>& shape, std::int64_t i, std::span<double* const> rows) {
  const auto put = [&](std::size_t r, const Vec& v, double factor) {
    (v * factor).add_to(rows[r] + 3 * i);
  };
  shape.color.add_to(rows[0] + 4 * i);
  rows[0][4 * i + 3] = shape.opacity;
  // In units of three deviations.
  put(1, shape.origin, 1.0 / 3);
  put(2, shape.inverse, 1.0 / 3);
  std::ranges::copy(shape.quaternion, rows[3] + 4 * i);
}

}  // namespace

void eval(const op::GaussianSplatPrepare& op, EvalContext& c) {
  const Scenes scenes(splats_of(op, dims_of(c)), c);
  const Splats& s = scenes.s;
  std::vector<RealNd> out;
  for (const std::size_t r : {0, 1, 2, 3, 6}) out.emplace_back(c.result_dims(r));
  IntNd ids(c.result_dims(4));
  IntNd ranges(c.result_dims(5));
  for (std::int64_t image = 0; image < s.batch; ++image) {
    const std::vector<Shape<double>> shapes = scenes.shapes(image);
    const Camera<double> camera = scenes.camera(image);
    std::vector<double*> rows;
    for (RealNd& o : out) rows.push_back(o.data.data() + image * o.dims.back());
    for (std::int64_t i = 0; i < s.count; ++i) write_shape(shapes[at(i)], i, rows);
    for_each_pixel(s, [&](std::int64_t column, std::int64_t row) {
      camera.ray(column, row).add_to(rows[4] + 3 * (row * s.width + column));
    });
    const TileLists lists(shapes, camera, s);
    if (std::cmp_greater(lists.ids.size(), s.entries)) {
      c.fail(ErrorCode::OutOfMemory,
             fmt::format("the tiles of an image list {} splats, but there is room for {}",
                         lists.ids.size(), s.entries),
             "give a larger max_list_entries, or 0");
    }
    std::ranges::copy(lists.ids, ids.data.begin() + image * s.entries);
    std::ranges::copy(lists.ranges, ranges.data.begin() + image * 2 * s.tiles());
  }
  for (std::size_t k = 0; k < 4; ++k) {
    if (c.wanted(k)) c.give(k, out[k]);
  }
  if (c.wanted(4)) c.give(4, ids);
  if (c.wanted(5)) c.give(5, ranges);
  if (c.wanted(6)) c.give(6, out[4]);
}

namespace {

// Splats as they were prepared.
std::vector<Shape<double>> prepared_shapes(std::span<const Rows> rows, std::int64_t image,
                                           const Splats& s) {
  std::vector<Shape<double>> out;
  for (std::int64_t i = 0; i < s.count; ++i) {
    out.emplace_back(rows[0].of(image) + 4 * i, rows[1].of(image) + 3 * i,
                     rows[2].of(image) + 3 * i, rows[3].of(image) + 4 * i, s.alpha_cutoff);
  }
  return out;
}

}  // namespace

void eval(const op::GaussianSplatRasterize& op, EvalContext& c) {
  const Splats s = splats_of(op, dims_of(c));
  const std::vector<Rows> rows = {Rows(c, 0), Rows(c, 1), Rows(c, 2), Rows(c, 3)};
  const GivenLists lists(c, 4);
  const Rows rays(c, 6);
  const Rows meta(c, 7);
  RealNd out(c.result_dims(0));
  RealNd before_last(c.result_dims(1));
  IntNd last_hit(c.result_dims(2));
  for (std::int64_t image = 0; image < s.batch; ++image) {
    const std::vector<Shape<double>> shapes = prepared_shapes(rows, image, s);
    const Vec background = Vec::from(meta.of(image) + 12);
    for_each_pixel(s, [&](std::int64_t column, std::int64_t row) {
      const std::int64_t tile = row / s.tile_size * s.tiles_across() + column / s.tile_size;
      const std::int64_t pixel = row * s.width + column;
      const Seen seen(lists.of(c, s, image, tile), shapes, Vec::from(rays.of(image) + 3 * pixel),
                      s);
      const std::int64_t to = image * s.pixels() + pixel;
      seen.write(out.data.data() + 4 * to, background, s.gamma);
      before_last.data[at(to)] = seen.hits.empty() ? 1 : seen.hits.back().before;
      last_hit.data[at(to)] = seen.looked_at;
    });
  }
  if (c.wanted(0)) c.give(0, out);
  if (c.wanted(1)) c.give(1, before_last);
  if (c.wanted(2)) c.give(2, last_hit);
}

}  // namespace ricci::rule
