// Images of Gaussian splats, whole and in two halves, tile by tile: a tile looks at the splats
// whose outline meets it, a block of its pixels at a time.
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/splat_view.h"

namespace ricci::cpu {
namespace {

using loop::splats::displayed;
using loop::splats::Shape;
using loop::splats::Vec3;

// Writes what a block has seen to an image [H·W·4].
template <class N>
void write_colors(const PixelBlock<N>& b, const Vec3<N>& background, N gamma, N* rgba) {
  for (std::size_t l = 0; l < b.size; ++l) {
    N* to = rgba + 4 * b.pixel[l];
    to[0] = displayed(b.red[l] + background.x * b.left[l], gamma);
    to[1] = displayed(b.green[l] + background.y * b.left[l], gamma);
    to[2] = displayed(b.blue[l] + background.z * b.left[l], gamma);
    to[3] = 1 - b.left[l];
  }
}

template <class N>
class SplatsRender {
 public:
  SplatsRender(const HostArguments& call, Scratch& scratch)
      : call_(call),
        scene_(call, scratch),
        view_(call, false, scratch),
        tiles_(view_.tiles()),
        lists_(scratch.take<std::int32_t>(tiles_.tiles * view_.count)) {}

  void run() {
    scene_.pack();
    const N gamma = static_cast<N>(view_.gamma.value);
    for (std::int64_t image = 0; image < view_.batch; ++image) {
      const loop::splats::Camera<double> camera = scene_.camera(image, view_);
      const Vec3<N> background{static_cast<N>(camera.background.x),
                               static_cast<N>(camera.background.y),
                               static_cast<N>(camera.background.z)};
      view_.look(scene_, image, camera);
      N* rgba = call_.results[0].as<N>() + image * 4 * view_.pixels();
      tiles_.run(call_.pool, [&](std::int64_t tile, std::int64_t slot) {
        const SplatIds ids = view_.list(tile, lists_ + slot * view_.count);
        view_.blocks_of(tile, [&](PixelBlock<N>& block) {
          view_.compose(ids, block);
          write_colors(block, background, gamma, rgba);
        });
      });
    }
  }

 private:
  const HostArguments& call_;
  SceneOperands<N> scene_;
  SplatView<N> view_;
  Slots tiles_;
  std::int32_t* lists_;
};

template <class N>
class SplatsPrepare {
 public:
  SplatsPrepare(const HostArguments& call, Scratch& scratch)
      : call_(call),
        scene_(call, scratch),
        view_(call, false, scratch),
        starts_(scratch.take<std::int64_t>(view_.tiles() + 1)) {}

  void run() {
    scene_.pack();
    for (std::int64_t image = 0; image < view_.batch; ++image) {
      view_.look(scene_, image, scene_.camera(image, view_));
      parallel_for(call_.pool, view_.count, grain_for(50),
                   [&](std::int64_t first, std::int64_t end) {
                     for (std::int64_t i = first; i < end; ++i) write_shape(image, i);
                   });
      if (double* rays = row<double>(6, image, 3 * view_.pixels())) {
        std::copy_n(view_.rays(), 3 * view_.pixels(), rays);
      }
      write_lists(image);
    }
  }

 private:
  // The row of an image in a result; null when nobody wants it.
  template <class T>
  [[nodiscard]] T* row(std::size_t r, std::int64_t image, std::int64_t length) const {
    const ArrayView& result = call_.results[r];
    return result.data == nullptr ? nullptr : result.as<T>() + image * length;
  }

  void write_shape(std::int64_t image, std::int64_t i) const {
    const Shape<double>& shape = view_.shape(i);
    const auto put = [&](std::size_t r, std::span<const double> numbers) {
      const auto each = static_cast<std::int64_t>(numbers.size());
      if (double* to = row<double>(r, image, each * view_.count)) {
        std::ranges::copy(numbers, to + each * i);
      }
    };
    // In units of three deviations.
    const Vec3<double> origin = shape.origin * (1.0 / 3);
    const Vec3<double> inverse = shape.inverse * (1.0 / 3);
    put(0, std::array{shape.color.x, shape.color.y, shape.color.z, shape.opacity});
    put(1, std::array{origin.x, origin.y, origin.z});
    put(2, std::array{inverse.x, inverse.y, inverse.z});
    put(3, shape.quaternion);
  }

  // Counts, finds where each list begins, and writes them.
  void write_lists(std::int64_t image) {
    const std::int64_t tiles = view_.tiles();
    for_tiles([&](std::int64_t t) { starts_[t + 1] = view_.count_list(t); });
    starts_[0] = 0;
    for (std::int64_t t = 0; t < tiles; ++t) starts_[t + 1] += starts_[t];
    if (starts_[tiles] > view_.entries) {
      call_.fail(ErrorCode::OutOfMemory,
                 fmt::format("the tiles of an image list {} splats, but there is room for {}",
                             starts_[tiles], view_.entries),
                 "give a larger max_list_entries, or 0");
    }
    if (std::int32_t* ids = row<std::int32_t>(4, image, view_.entries)) {
      for_tiles([&](std::int64_t t) { (void)view_.list(t, ids + starts_[t]); });
      std::fill(ids + starts_[tiles], ids + view_.entries, 0);
    }
    if (std::int32_t* ranges = row<std::int32_t>(5, image, 2 * tiles)) {
      for (std::int64_t t = 0; t < tiles; ++t) {
        const bool none = starts_[t] == starts_[t + 1];
        ranges[2 * t] = none ? -1 : static_cast<std::int32_t>(starts_[t]);
        ranges[2 * t + 1] = none ? 0 : static_cast<std::int32_t>(starts_[t + 1]);
      }
    }
  }
  template <class F>
  void for_tiles(const F& f) {
    parallel_for(call_.pool, view_.tiles(), 4, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) f(t);
    });
  }

  const HostArguments& call_;
  SceneOperands<N> scene_;
  SplatView<N> view_;
  std::int64_t* starts_;
};

constexpr std::size_t MetaOfPrepared = 7;

template <class N>
class SplatsRasterize {
 public:
  SplatsRasterize(const HostArguments& call, Scratch& scratch)
      : call_(call),
        prepared_(call, 0, scratch),
        meta_(call, MetaOfPrepared, scratch),
        view_(call, true, scratch) {}

  void run() {
    prepared_.pack(view_);
    meta_.pack(call_.pool);
    for (std::int64_t image = 0; image < view_.batch; ++image) {
      view_.load(prepared_, image);
      const auto background =
          Vec3<N>::from(meta_.data() + row_of(call_.operands[MetaOfPrepared], image) + 12);
      call_.pool.run(view_.tiles(), [&](std::int64_t tile) {
        const SplatIds ids = view_.list(tile, nullptr);
        view_.blocks_of(tile, [&](PixelBlock<N>& block) {
          view_.compose(ids, block);
          write(block, background, image);
        });
      });
    }
  }

 private:
  void write(const PixelBlock<N>& block, const Vec3<N>& background, std::int64_t image) const {
    const std::int64_t first = image * view_.pixels();
    if (call_.results[0].data != nullptr) {
      write_colors(block, background, static_cast<N>(view_.gamma.value),
                   call_.results[0].template as<N>() + 4 * first);
    }
    const auto put = [&]<class T>(std::size_t r, const Lanes<T>& numbers) {
      if (call_.results[r].data == nullptr) return;
      T* to = call_.results[r].template as<T>() + first;
      for (std::size_t l = 0; l < block.size; ++l) to[block.pixel[l]] = numbers[l];
    };
    put(1, block.before);
    put(2, block.last);
  }

  const HostArguments& call_;
  PreparedOperands prepared_;
  NumberOperand<N> meta_;
  SplatView<N> view_;
};

// The image has the dtype of `meta`.
HostKernel rasterize_kernel() noexcept {
  return kernel_chosen_by<SplatsRasterize, [](const HostArguments& call, const auto& f) {
    return call.operands[MetaOfPrepared].dtype == DType::F64 ? f.template operator()<double>()
                                                             : f.template operator()<float>();
  }>();
}

}  // namespace

HostKernel splats_kernel(loop::Splats::Stage stage) noexcept {
  switch (stage) {
    case loop::Splats::Stage::Prepare: return kernel_of_float<SplatsPrepare>();
    case loop::Splats::Stage::Rasterize: return rasterize_kernel();
    case loop::Splats::Stage::Render: return kernel_of_float<SplatsRender>();
    case loop::Splats::Stage::Backward: return splats_backward_kernel();
  }
  return {};
}

}  // namespace ricci::cpu
