// Convolution as matrix products. A strip of windows is gathered into a matrix [taps, windows]:
//   y = w · windows;   dw += dy · windowsᵀ;   dx: windows = wᵀ · dy, added back where they came
//   from.
#include <algorithm>
#include <cstring>

#include "ricci/support/checked.h"

#include "backend/cpu/kernels/vector_kernels.h"
#include "backend/cpu/structured/conv.h"

namespace ricci::cpu {
namespace {

using Of = loop::Convolution::Of;

constexpr std::int64_t StripWindows = 256;
constexpr std::int64_t MostWindowTiles = 16;
constexpr std::int64_t MostWindowPartials = 8;  // of dw, each the size of dw

template <class R>
const ProductKernels<R>& kernels() {
  if constexpr (std::is_same_v<R, float>) {
    return vector_kernels().f32;
  } else {
    return vector_kernels().f64;
  }
}

// A strip of windows of one image and one group.
struct Strip {
  const loop::Convolution& g;
  std::int64_t first = 0;  // window
  std::int64_t count = 0;

  // Calls f(tap, place in the strip, place in the group's channels) for all taps inside.
  template <class F>
  void for_each_inside(F&& f) const {
    const std::int64_t channels = g.channels_in / g.groups;
    std::int64_t tap = 0;
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t u = 0; u < g.kernel[0]; ++u) {
        for (std::int64_t v = 0; v < g.kernel[1]; ++v, ++tap) {
          for (std::int64_t s = 0; s < count; ++s) {
            const std::int64_t i = (first + s) / g.size_out[1];
            const std::int64_t j = (first + s) % g.size_out[1];
            const std::int64_t row = i * g.stride[0] + u * g.dilation[0] - g.padding[0];
            const std::int64_t column = j * g.stride[1] + v * g.dilation[1] - g.padding[1];
            if (row < 0 || row >= g.size_in[0] || column < 0 || column >= g.size_in[1]) continue;
            f(tap, s, (c * g.size_in[0] + row) * g.size_in[1] + column);
          }
        }
      }
    }
  }
};

template <class R>
class WindowConv final : public ConvMethod {
 public:
  WindowConv(const loop::Convolution& g) : g_(g) {
    tiles_ = std::min(g.images, g.of == Of::WeightGradient ? MostWindowPartials : MostWindowTiles);
    strip_ = checked_mul(g.taps(), StripWindows);
    partial_ = g.of == Of::WeightGradient ? g.weights() : 0;
  }

  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return checked_mul(checked_mul(tiles_, strip_ + partial_), sizeof(R));
  }

  void run(ThreadPool& pool, const void* lhs, const void* rhs, void* out, std::byte* scratch,
           const ImageHooks& hooks) const override {
    auto* space = reinterpret_cast<R*>(scratch);
    auto* result = static_cast<R*>(out);
    pool.run(tiles_, [&](std::int64_t tile) {
      R* windows = space + tile * (strip_ + partial_);
      R* partial = windows + strip_;
      std::fill_n(partial, partial_, R(0));
      const std::int64_t first = tile * g_.images / tiles_;
      const std::int64_t end = (tile + 1) * g_.images / tiles_;
      const bool by_images = g_.of != Of::WeightGradient;
      if (hooks.before && by_images) hooks.before(first, end);
      for (std::int64_t n = first; n < end; ++n) {
        run_image(n, static_cast<const R*>(lhs), static_cast<const R*>(rhs),
                  partial_ > 0 ? partial : result, windows);
      }
      if (hooks.done && by_images) hooks.done(first, end);
    });
    if (g_.of == Of::WeightGradient) add_partials(pool, space, result);
  }

 private:
  void run_image(std::int64_t n, const R* lhs, const R* rhs, R* out, R* windows) const {
    const std::int64_t windows_all = g_.size_out[0] * g_.size_out[1];
    const std::int64_t taps = g_.taps();
    const std::int64_t outputs = g_.channels_out / g_.groups;
    if (g_.of == Of::ImageGradient) {
      std::fill_n(out + n * g_.x_image(), g_.x_image(), R(0));
    }
    for (std::int64_t group = 0; group < g_.groups; ++group) {
      const std::int64_t at_x = n * g_.x_image() + group * (g_.x_image() / g_.groups);
      const std::int64_t at_w = group * outputs * taps;
      for (std::int64_t first = 0; first < windows_all; first += StripWindows) {
        const Strip strip{g_, first, std::min(StripWindows, windows_all - first)};
        const std::int64_t at_y = n * g_.y_image() + group * outputs * windows_all + first;
        switch (g_.of) {
          case Of::Image:
            gather(strip, lhs + at_x, windows);
            multiply({.m = outputs,
                      .n = strip.count,
                      .k = taps,
                      .a = rhs + at_w,
                      .a_row = taps,
                      .a_column = 1,
                      .b = windows,
                      .b_row = StripWindows,
                      .b_column = 1,
                      .c = out + at_y,
                      .c_row = windows_all});
            break;
          case Of::ImageGradient:
            multiply({.m = taps,
                      .n = strip.count,
                      .k = outputs,
                      .a = rhs + at_w,
                      .a_row = 1,
                      .a_column = taps,
                      .b = lhs + at_y,
                      .b_row = windows_all,
                      .b_column = 1,
                      .c = windows,
                      .c_row = StripWindows});
            strip.for_each_inside([&](std::int64_t tap, std::int64_t s, std::int64_t place) {
              out[at_x + place] += windows[tap * StripWindows + s];
            });
            break;
          case Of::WeightGradient:
            gather(strip, lhs + at_x, windows);
            multiply({.m = outputs,
                      .n = taps,
                      .k = strip.count,
                      .a = rhs + at_y,
                      .a_row = windows_all,
                      .a_column = 1,
                      .b = windows,
                      .b_row = 1,
                      .b_column = StripWindows,
                      .c = out + at_w,
                      .c_row = taps,
                      .accumulate = true});
            break;
        }
      }
    }
  }

  void gather(const Strip& strip, const R* x, R* windows) const {
    std::fill_n(windows, strip_, R(0));
    strip.for_each_inside([&](std::int64_t tap, std::int64_t s, std::int64_t place) {
      windows[tap * StripWindows + s] = x[place];
    });
  }

  static void multiply(const Product<R>& p) {
    if (p.k > 0) return kernels<R>().packed(p);
    for (std::int64_t i = 0; i < p.m; ++i) std::fill_n(p.c + i * p.c_row, p.n, R(0));
  }

  void add_partials(ThreadPool& pool, const R* space, R* dw) const {
    constexpr std::int64_t Chunk = 1 << 13;
    pool.run((partial_ + Chunk - 1) / Chunk, [&](std::int64_t tile) {
      const std::int64_t end = std::min((tile + 1) * Chunk, partial_);
      for (std::int64_t i = tile * Chunk; i < end; ++i) {
        R total = 0;
        for (std::int64_t t = 0; t < tiles_; ++t)
          total += space[t * (strip_ + partial_) + strip_ + i];
        dw[i] = total;
      }
    });
  }

  loop::Convolution g_;
  std::int64_t tiles_;
  std::int64_t strip_;    // elements of a gathered strip
  std::int64_t partial_;  // elements of a tile's share of dw
};

}  // namespace

std::shared_ptr<const ConvMethod> window_conv(const loop::Convolution& g) {
  if (g.dtype == DType::F64) return std::make_shared<WindowConv<double>>(g);
  return std::make_shared<WindowConv<float>>(g);
}

}  // namespace ricci::cpu
