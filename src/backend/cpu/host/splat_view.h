// An image of splats before its pixels are looked at: every splat as the camera sees it, where rays
// go, and which splats a tile lists.
#pragma once

#include "backend/cpu/host/splat_blocks.h"
#include "backend/cpu/host/splat_operands.h"

namespace ricci::cpu {

template <class N>
class SplatView : public loop::Splats {
 public:
  SplatView(const HostArguments& call, bool lists_given, Scratch& scratch)
      : loop::Splats(call.as<loop::Splats>()), pool_(call.pool) {
    shapes_ = scratch.take<loop::splats::Shape<double>>(count);
    compact_ = scratch.take<CompactSplat<N>>(count);
    outlines_ = scratch.take<loop::splats::Outline>(count);
    if (lists_given) return;
    own_rays_ = scratch.take<double>(3 * pixels());
    order_ = scratch.take<std::int32_t>(count);
    boxes_ = scratch.take<loop::splats::PlaneBox>(tiles());
    row_ids_ = scratch.take<std::int32_t>(count * tiles_down());
    row_counts_ = scratch.take<std::int64_t>(tiles_down());
  }

  /// Looks at all splats of an image, and lists them by distance for every row of tiles.
  void look(const SceneOperands<N>& scene, std::int64_t image,
            const loop::splats::Camera<double>& camera) {
    basis_ = camera;
    rays_ = own_rays_;
    given_ = nullptr;
    for_splats([&](std::int64_t i) {
      return loop::splats::Shape<double>(scene.splat(image, i, coefficients).scene(), 0, camera,
                                         *this);
    });
    parallel_for(pool_, tiles(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) look_at_tile(t, camera);
    });
    sort();
  }

  /// Takes an image as it was prepared.
  void load(const PreparedOperands& prepared, std::int64_t image) {
    take(prepared, image);
    basis_ =
        basis_of(loop::splats::Vec3<double>::from(rays_ + 3 * (height / 2 * width + width / 2)));
    for_splats([&](std::int64_t i) { return prepared.shape(image, i, alpha_cutoff); });
  }
  /// The same with the scene it was prepared of.
  void load(const PreparedOperands& prepared, const SceneOperands<N>& scene, std::int64_t image,
            const loop::splats::Camera<double>& camera) {
    take(prepared, image);
    basis_ = camera;
    for_splats([&](std::int64_t i) {
      loop::splats::Shape<double> shape = prepared.shape(image, i, alpha_cutoff);
      shape.complete(scene.splat(image, i, coefficients).scene(), 0, camera, *this);
      return shape;
    });
  }

  /// The splats of a tile by distance; they are written to `room` unless they were given.
  [[nodiscard]] SplatIds list(std::int64_t tile, std::int32_t* room) const {
    if (given_ != nullptr) return given_->list(image_, tile);
    const std::int64_t row = tile / tiles_across();
    const std::int32_t* from = row_ids_ + row * count;
    std::size_t size = 0;
    for (std::int64_t k = 0; k < row_counts_[row]; ++k) {
      if (outlines_[from[k]].meets(boxes_[tile])) room[size++] = from[k];
    }
    return {room, size};
  }
  [[nodiscard]] std::int64_t count_list(std::int64_t tile) const {
    const std::int64_t row = tile / tiles_across();
    const std::int32_t* from = row_ids_ + row * count;
    return std::count_if(from, from + row_counts_[row],
                         [&](std::int32_t i) { return outlines_[i].meets(boxes_[tile]); });
  }

  [[nodiscard]] const loop::splats::Shape<double>& shape(std::int64_t i) const {
    return shapes_[i];
  }
  [[nodiscard]] const CompactSplat<N>& compact(std::int32_t i) const { return compact_[i]; }
  [[nodiscard]] bool meets(std::int32_t i, const PixelBlock<N>& block) const {
    return outlines_[i].meets(block.box);
  }
  [[nodiscard]] const double* rays() const { return rays_; }
  template <class F>
  void blocks_of(std::int64_t tile, F&& f) const {
    for_each_block<N>(*this, rays_, basis_, tile, std::forward<F>(f));
  }
  /// What the pixels of a block see of a list.
  void compose(SplatIds ids, PixelBlock<N>& block) const {
    const Composing<N> composing(*this);
    for (std::size_t k = 0; k < ids.size(); ++k) {
      if (!meets(ids[k], block)) continue;
      composing.add(compact(ids[k]), static_cast<std::int32_t>(k), block);
      if (block.done()) break;
    }
  }

 private:
  // Any directions at right angles, the last of them that of a ray.
  static loop::splats::Basis<double> basis_of(const loop::splats::Vec3<double>& ray) {
    using loop::splats::unit;
    loop::splats::Basis<double> b;
    b.forward = unit(ray);
    const bool along_x = std::fabs(b.forward.x) > 0.9;
    const loop::splats::Vec3<double> other{along_x ? 0. : 1., along_x ? 1. : 0., 0};
    b.right = unit(cross(other, b.forward));
    b.above = cross(b.forward, b.right);
    return b;
  }

  void take(const PreparedOperands& prepared, std::int64_t image) {
    given_ = &prepared;
    image_ = image;
    rays_ = prepared.rays(image);
  }

  template <class F>
  void for_splats(const F& shape_of) {
    parallel_for(pool_, count, grain_for(200), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        shapes_[i] = shape_of(i);
        outlines_[i] = loop::splats::Outline(shapes_[i], basis_, alpha_cutoff);
        compact_[i] = CompactSplat<N>(shapes_[i], alpha_cutoff);
      }
    });
  }

  void look_at_tile(std::int64_t tile, const loop::splats::Camera<double>& camera) {
    const std::int64_t top = tile / tiles_across() * tile_size;
    const std::int64_t left = tile % tiles_across() * tile_size;
    boxes_[tile] = {};
    for (std::int64_t row = top; row < std::min(height, top + tile_size); ++row) {
      for (std::int64_t column = left; column < std::min(width, left + tile_size); ++column) {
        const loop::splats::Vec3<double> ray = camera.ray(column, row);
        double* to = own_rays_ + 3 * (row * width + column);
        to[0] = ray.x;
        to[1] = ray.y;
        to[2] = ray.z;
        boxes_[tile].add(camera, ray);
      }
    }
  }

  void sort() {
    std::int64_t seen = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      if (outlines_[i].seen()) order_[seen++] = static_cast<std::int32_t>(i);
    }
    std::sort(order_, order_ + seen, [&](std::int32_t a, std::int32_t b) {
      const double da = shapes_[a].distance;
      const double db = shapes_[b].distance;
      return da < db || (da == db && a < b);
    });
    parallel_for(pool_, tiles_down(), grain_for(seen), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) list_row(row, seen);
    });
  }
  void list_row(std::int64_t row, std::int64_t seen) {
    loop::splats::PlaneBox box;
    for (std::int64_t t = 0; t < tiles_across(); ++t) box.add(boxes_[row * tiles_across() + t]);
    std::int32_t* to = row_ids_ + row * count;
    std::int64_t size = 0;
    for (std::int64_t k = 0; k < seen; ++k) {
      if (outlines_[order_[k]].meets_rows(box)) to[size++] = order_[k];
    }
    row_counts_[row] = size;
  }

  ThreadPool& pool_;
  loop::splats::Basis<double> basis_;
  const double* rays_ = nullptr;
  const PreparedOperands* given_ = nullptr;
  std::int64_t image_ = 0;
  loop::splats::Shape<double>* shapes_ = nullptr;
  CompactSplat<N>* compact_ = nullptr;
  loop::splats::Outline* outlines_ = nullptr;
  double* own_rays_ = nullptr;
  std::int32_t* order_ = nullptr;
  loop::splats::PlaneBox* boxes_ = nullptr;
  std::int32_t* row_ids_ = nullptr;
  std::int64_t* row_counts_ = nullptr;
};

}  // namespace ricci::cpu
