// Pixels of a tile side by side, and splats that are put in front of them. A splat's opacity along
// a ray is computed here alone, so that the way back finds the hits of the way there.
#pragma once

#include "backend/cpu/host/lanes.h"
#include "loop/splat_outline.h"

namespace ricci::cpu {

/// What a ray needs to know of a splat. With d = towards + δ, p = -distance·A·towards and so
///   p × r = p × A δ;   r = A δ - p/distance
/// Pixels that see a splat have a small δ. It is found in f64: then nothing cancels in f32.
template <class N>
struct CompactSplat {
  std::array<N, 9> a;  ///< A = diag(inverse) Rᵀ
  loop::splats::Vec3<double> towards;
  loop::splats::Vec3<N> p;
  N per_distance;
  N opacity;
  loop::splats::Vec3<N> color;
  N least;  ///< exponent that gives alpha_cutoff

  CompactSplat(const loop::splats::Shape<double>& s, double cutoff)
      : towards(s.offset * (-1 / s.distance)),
        p(narrow(s.origin)),
        per_distance(static_cast<N>(1 / s.distance)),
        opacity(static_cast<N>(s.opacity)),
        color(narrow(s.color)),
        least(static_cast<N>(std::log(cutoff / s.opacity))) {
    // Where no direction is that of the splat, δ is the ray itself.
    if (!std::isfinite(1 / s.distance)) {
      towards = {};
      per_distance = 0;
    }
    const auto row = [&](std::size_t k, const loop::splats::Vec3<double>& column, double scale) {
      const loop::splats::Vec3<N> scaled = narrow(column * scale);
      a[3 * k] = scaled.x;
      a[3 * k + 1] = scaled.y;
      a[3 * k + 2] = scaled.z;
    };
    row(0, s.rotation[0], s.inverse.x);
    row(1, s.rotation[1], s.inverse.y);
    row(2, s.rotation[2], s.inverse.z);
  }

 private:
  static loop::splats::Vec3<N> narrow(const loop::splats::Vec3<double>& v) {
    return {static_cast<N>(v.x), static_cast<N>(v.y), static_cast<N>(v.z)};
  }
};

/// Some pixels of a tile.
template <class N>
struct PixelBlock {
  Lanes<double> dx{};
  Lanes<double> dy{};
  Lanes<double> dz{};
  std::array<std::int64_t, static_cast<std::size_t>(LaneCount)> pixel{};
  std::size_t size = 0;
  loop::splats::PlaneBox box;
  // What each has seen so far; lanes past the size, and those that are done, see nothing more.
  Lanes<N> live{};  // 1 or 0
  Lanes<N> steps{};
  Lanes<N> left{};             // transmittance
  Lanes<N> before{};           // the same in front of the last hit
  Lanes<std::int32_t> last{};  // entries of the list up to the last hit
  Lanes<N> red{};
  Lanes<N> green{};
  Lanes<N> blue{};

  void add(const double* ray, const loop::splats::Basis<double>& basis, std::int64_t at) {
    dx[size] = ray[0];
    dy[size] = ray[1];
    dz[size] = ray[2];
    pixel[size] = at;
    live[size] = 1;
    left[size] = 1;
    before[size] = 1;
    box.add(basis, loop::splats::Vec3<double>::from(ray));
    ++size;
  }
  [[nodiscard]] bool done() const {
    return std::ranges::none_of(live, [](N x) { return x != 0; });
  }
};

/// Calls `f(block)` for all pixels of a tile. Blocks are short and wide: few outlines meet one.
template <class N, class F>
void for_each_block(const loop::Splats& s, const double* rays,
                    const loop::splats::Basis<double>& basis, std::int64_t tile, F&& f) {
  constexpr std::int64_t Across = 8;
  constexpr std::int64_t Down = LaneCount / Across;
  const std::int64_t top = tile / s.tiles_across() * s.tile_size;
  const std::int64_t left = tile % s.tiles_across() * s.tile_size;
  const std::int64_t bottom = std::min(s.height, top + s.tile_size);
  const std::int64_t right = std::min(s.width, left + s.tile_size);
  for (std::int64_t y = top; y < bottom; y += Down) {
    for (std::int64_t x = left; x < right; x += Across) {
      PixelBlock<N> block;
      for (std::int64_t row = y; row < std::min(bottom, y + Down); ++row) {
        for (std::int64_t column = x; column < std::min(right, x + Across); ++column) {
          const std::int64_t pixel = row * s.width + column;
          block.add(rays + 3 * pixel, basis, pixel);
        }
      }
      f(block);
    }
  }
}

/// A splat along the rays of a block: r = A d, t, and p × r.
template <class N>
struct Meeting {
  Lanes<N> rx;
  Lanes<N> ry;
  Lanes<N> rz;
  Lanes<N> rr;
  Lanes<N> t;
  Lanes<N> cx;
  Lanes<N> cy;
  Lanes<N> cz;

  RICCI_INLINE Meeting(const CompactSplat<N>& s, const PixelBlock<N>& b) {
    Lanes<N> x;
    Lanes<N> y;
    Lanes<N> z;
    for (std::size_t l = 0; l < t.size(); ++l) x[l] = static_cast<N>(b.dx[l] - s.towards.x);
    for (std::size_t l = 0; l < t.size(); ++l) y[l] = static_cast<N>(b.dy[l] - s.towards.y);
    for (std::size_t l = 0; l < t.size(); ++l) z[l] = static_cast<N>(b.dz[l] - s.towards.z);
    const N px = s.p.x * s.per_distance;
    const N py = s.p.y * s.per_distance;
    const N pz = s.p.z * s.per_distance;
    for (std::size_t l = 0; l < t.size(); ++l) {
      const N qx = s.a[0] * x[l] + s.a[1] * y[l] + s.a[2] * z[l];
      const N qy = s.a[3] * x[l] + s.a[4] * y[l] + s.a[5] * z[l];
      const N qz = s.a[6] * x[l] + s.a[7] * y[l] + s.a[8] * z[l];
      cx[l] = s.p.y * qz - s.p.z * qy;
      cy[l] = s.p.z * qx - s.p.x * qz;
      cz[l] = s.p.x * qy - s.p.y * qx;
      rx[l] = qx - px;
      ry[l] = qy - py;
      rz[l] = qz - pz;
      rr[l] = rx[l] * rx[l] + ry[l] * ry[l] + rz[l] * rz[l];
      // A ray that is none, and one that leaves the numbers, gives no t above 0.
      t[l] = -(s.p.x * rx[l] + s.p.y * ry[l] + s.p.z * rz[l]) / rr[l];
    }
  }

  /// α where the splat is in front and above the cutoff, 0 elsewhere; false: there is no hit at
  /// all.
  RICCI_INLINE bool opacities(const CompactSplat<N>& s, N cutoff, Lanes<N>& alpha) const {
    N nearest = -std::numeric_limits<N>::infinity();
    for (std::size_t l = 0; l < alpha.size(); ++l) {
      const N across = cx[l] * cx[l] + cy[l] * cy[l] + cz[l] * cz[l];
      alpha[l] = across / rr[l] * N(-0.5);
    }
    for (std::size_t l = 0; l < alpha.size(); ++l) nearest = std::max(nearest, alpha[l]);
    // A little below, for the rounding of the logarithm.
    if (nearest < s.least - N(0.01)) return false;
    exp_lanes(alpha);
    for (std::size_t l = 0; l < alpha.size(); ++l) {
      const N a = s.opacity * alpha[l];
      const int counts = int{t[l] > 0} & int{a >= cutoff};  // no branch, so that lanes run together
      alpha[l] = counts != 0 ? a : N(0);
    }
    return true;
  }
};

/// How pixels are composed.
template <class N>
struct Composing {
  N cutoff;
  N threshold;
  N most_steps;

  /// What is left of a pixel below the least threshold cannot be seen, nor can what moves it.
  explicit Composing(const loop::Splats& s)
      : cutoff(static_cast<N>(s.alpha_cutoff.value)),
        threshold(std::max(static_cast<N>(s.transmittance_threshold.value), N(1e-30))),
        most_steps(s.max_steps > 0 ? static_cast<N>(s.max_steps)
                                   : std::numeric_limits<N>::infinity()) {}

  /// Puts a splat, entry k of the list, behind what the block's pixels have seen.
  void add(const CompactSplat<N>& s, std::int32_t k, PixelBlock<N>& b) const {
    vectorised([&]() RICCI_INLINE {
      const Meeting<N> m(s, b);
      Lanes<N> alpha;
      if (!m.opacities(s, cutoff, alpha)) return;
      for (std::size_t l = 0; l < alpha.size(); ++l) alpha[l] = b.live[l] != 0 ? alpha[l] : N(0);
      for (std::size_t l = 0; l < alpha.size(); ++l) {
        b.before[l] = alpha[l] > 0 ? b.left[l] : b.before[l];
      }
      for (std::size_t l = 0; l < alpha.size(); ++l) b.last[l] = alpha[l] > 0 ? k + 1 : b.last[l];
      for (std::size_t l = 0; l < alpha.size(); ++l) {
        const N weight = b.left[l] * alpha[l];
        b.red[l] += weight * s.color.x;
        b.green[l] += weight * s.color.y;
        b.blue[l] += weight * s.color.z;
        b.left[l] *= 1 - alpha[l];
        b.steps[l] += alpha[l] > 0 ? N(1) : N(0);
        const int stops = int{b.left[l] < threshold} | int{b.steps[l] >= most_steps};
        b.live[l] = (int{alpha[l] > 0} & stops) != 0 ? N(0) : b.live[l];
      }
    });
  }
};

}  // namespace ricci::cpu
