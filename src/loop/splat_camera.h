// The camera of an image of splats: where the rays of pixels go, through a lens if there is one,
// and what a change of a ray asks of the camera. N is float or double.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "ricci/compiler/loop/call.h"

namespace ricci::loop::splats {

template <class N>
struct Vec3 {
  N x = 0;
  N y = 0;
  N z = 0;

  static Vec3 from(const N* v) { return {v[0], v[1], v[2]}; }
  void add_to(N* v) const {
    v[0] += x;
    v[1] += y;
    v[2] += z;
  }
  friend Vec3 operator+(const Vec3& a, const Vec3& b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
  friend Vec3 operator-(const Vec3& a, const Vec3& b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
  friend Vec3 operator*(const Vec3& a, N s) { return {a.x * s, a.y * s, a.z * s}; }
  /// Component by component.
  friend Vec3 operator*(const Vec3& a, const Vec3& b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }
  Vec3& operator+=(const Vec3& b) { return *this = *this + b; }
};
template <class N>
N dot(const Vec3<N>& a, const Vec3<N>& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
template <class N>
Vec3<N> cross(const Vec3<N>& a, const Vec3<N>& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
template <class N>
N length(const Vec3<N>& a) {
  return std::sqrt(dot(a, a));
}
template <class N>
Vec3<N> unit(const Vec3<N>& a) {
  return a * (1 / length(a));
}
/// The cotangent of v from that of u = v/|v|.
template <class N>
Vec3<N> unit_transposed(const Vec3<N>& u, N v_length, const Vec3<N>& du) {
  return (du - u * dot(u, du)) * (1 / v_length);
}

/// Columns of a rotation matrix.
template <class N>
using Columns = std::array<Vec3<N>, 3>;
/// R v and Rᵀ v
template <class N>
Vec3<N> rotate(const Columns<N>& r, const Vec3<N>& v) {
  return r[0] * v.x + r[1] * v.y + r[2] * v.z;
}
template <class N>
Vec3<N> rotate_back(const Columns<N>& r, const Vec3<N>& v) {
  return {dot(r[0], v), dot(r[1], v), dot(r[2], v)};
}
/// Of a unit quaternion w, x, y, z.
template <class N>
Columns<N> rotation_of(const std::array<N, 4>& q) {
  const auto [w, x, y, z] = q;
  return {{{1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)},
           {2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)},
           {2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)}}};
}

/// Points on the plane at distance 1.
template <class N>
struct Vec2 {
  N x = 0;
  N y = 0;
};

/// What a lens does to points on the plane at distance 1:
///   (x, y) ↦ (x, y)·ρ + (2p1 xy + p2 (r² + 2x²), p1 (r² + 2y²) + 2p2 xy),
///   ρ = (1 + k1 r² + k2 r⁴ + k3 r⁶)/(1 + k4 r² + k5 r⁴ + k6 r⁶)
template <class N>
struct Lens {
  static constexpr std::size_t Count = 8;
  std::array<N, Count> k{};  ///< k1 k2 p1 p2 k3 k4 k5 k6

  /// A point behind the lens, and the slope there, a symmetric matrix.
  struct At {
    Vec2<N> to;
    N xx;
    N xy;
    N yy;

    /// The solution of slope · v = of.
    [[nodiscard]] Vec2<N> solved(const Vec2<N>& of) const {
      const N det = xx * yy - xy * xy;
      return {(yy * of.x - xy * of.y) / det, (xx * of.y - xy * of.x) / det};
    }
  };
  [[nodiscard]] At at(const Vec2<N>& v) const {
    const auto& [k1, k2, p1, p2, k3, k4, k5, k6] = k;
    const auto [x, y] = v;
    const N rr = x * x + y * y;
    const N over = 1 + rr * (k1 + rr * (k2 + rr * k3));
    const N under = 1 + rr * (k4 + rr * (k5 + rr * k6));
    const N rho = over / under;
    const N slope = (k1 + rr * (2 * k2 + rr * 3 * k3) - rho * (k4 + rr * (2 * k5 + rr * 3 * k6))) /
                    under;  // of ρ in r²
    return {{x * rho + 2 * p1 * x * y + p2 * (rr + 2 * x * x),
             y * rho + p1 * (rr + 2 * y * y) + 2 * p2 * x * y},
            rho + 2 * x * x * slope + 2 * p1 * y + 6 * p2 * x,
            2 * x * y * slope + 2 * p1 * x + 2 * p2 * y,
            rho + 2 * y * y * slope + 6 * p1 * y + 2 * p2 * x};
  }

  /// The point that the lens brings to `seen`, by Newton's method.
  [[nodiscard]] Vec2<N> undone(const Vec2<N>& seen) const {
    constexpr int Steps = 8;
    Vec2<N> v = seen;
    for (int i = 0; i < Steps; ++i) {
      const At here = at(v);
      const Vec2<N> by = here.solved({here.to.x - seen.x, here.to.y - seen.y});
      v = {v.x - by.x, v.y - by.y};
    }
    return v;
  }

  /// Adds what the coefficients get when `undone` gave v, from the cotangent λ of `seen`.
  void add_transposed(const Vec2<N>& v, const Vec2<N>& lambda, std::array<N, Count>& dk) const {
    const auto [x, y] = v;
    const N rr = x * x + y * y;
    const N over = 1 + rr * (k[0] + rr * (k[1] + rr * k[4]));
    const N under = 1 + rr * (k[5] + rr * (k[6] + rr * k[7]));
    const N along = (x * lambda.x + y * lambda.y) / under;
    const N across = along * over / under;
    dk[0] -= along * rr;
    dk[1] -= along * rr * rr;
    dk[4] -= along * rr * rr * rr;
    dk[5] += across * rr;
    dk[6] += across * rr * rr;
    dk[7] += across * rr * rr * rr;
    dk[2] -= 2 * x * y * lambda.x + (rr + 2 * y * y) * lambda.y;
    dk[3] -= (rr + 2 * x * x) * lambda.x + 2 * x * y * lambda.y;
  }
};

/// Three directions at right angles, and a point.
template <class N>
struct Basis {
  Vec3<N> right;
  Vec3<N> above;
  Vec3<N> forward;

  /// Where a direction meets the plane at distance 1; nothing of use when it goes backwards.
  [[nodiscard]] Vec2<N> on_plane(const Vec3<N>& ray) const {
    const N depth = dot(forward, ray);
    return {dot(right, ray) / depth, dot(above, ray) / depth};
  }
};

/// The camera that `meta` describes.
template <class N>
struct Camera : Basis<N> {
  Vec3<N> position;
  Vec3<N> to_target;
  Vec3<N> up;
  Vec3<N> background;
  bool has_lens;
  N half_angle;    ///< of the vertical field of view
  Vec2<N> focal;   ///< in pixels
  Vec2<N> centre;  ///< in pixels
  Lens<N> lens;

  Camera(const N* meta, const Splats& s)
      : position(Vec3<N>::from(meta)),
        to_target(Vec3<N>::from(meta + 3) - position),
        up(Vec3<N>::from(meta + 6)),
        background(Vec3<N>::from(meta + 12)),
        has_lens(s.lens),
        half_angle(meta[9] * std::numbers::pi_v<N> / 360) {
    this->forward = unit(to_target);
    this->right = unit(cross(up, this->forward));
    this->above = unit(cross(this->forward, this->right));
    if (has_lens) {
      focal = {meta[23], meta[24]};
      centre = {meta[25], meta[26]};
      for (std::size_t i = 0; i < Lens<N>::Count; ++i) lens.k[i] = meta[27 + i];
      return;
    }
    const N half_height = static_cast<N>(s.height) / 2;
    focal.x = focal.y = half_height / std::tan(half_angle);
    centre = {static_cast<N>(s.width) / 2, half_height};
  }

  /// Where the centre of a pixel is on the plane at distance 1, behind the lens.
  [[nodiscard]] Vec2<N> seen(std::int64_t column, std::int64_t row) const {
    const N half = N(1) / 2;
    return {(static_cast<N>(column) + half - centre.x) / focal.x,
            (static_cast<N>(row) + half - centre.y) / focal.y};
  }
  /// The same before the lens.
  [[nodiscard]] Vec3<N> at_pixel(std::int64_t column, std::int64_t row) const {
    const Vec2<N> v = seen(column, row);
    const auto [x, y] = has_lens ? lens.undone(v) : v;
    return {x, y, 1};
  }
  /// The unit direction through a pixel's centre.
  [[nodiscard]] Vec3<N> ray(std::int64_t column, std::int64_t row) const {
    const Vec3<N> c = unit(at_pixel(column, row));
    return this->right * c.x + this->above * c.y + this->forward * c.z;
  }
};

/// Σ over pixels and splats of what reaches the camera.
template <class N>
struct CameraGradient {
  Vec3<N> position;
  Vec3<N> forward;
  Vec3<N> right;
  Vec3<N> above;
  Vec3<N> background;
  Vec2<N> focal;
  Vec2<N> centre;
  std::array<N, Lens<N>::Count> lens{};

  /// The cotangent of the direction of a pixel's ray.
  void add_ray(const Camera<N>& camera, std::int64_t column, std::int64_t row,
               const Vec3<N>& dray) {
    const Vec3<N> at = camera.at_pixel(column, row);
    const N size = length(at);
    const Vec3<N> c = at * (1 / size);
    right += dray * c.x;
    above += dray * c.y;
    forward += dray * c.z;
    const Vec3<N> dc{dot(camera.right, dray), dot(camera.above, dray), dot(camera.forward, dray)};
    const Vec3<N> dat = unit_transposed(c, size, dc);
    Vec2<N> dseen{dat.x, dat.y};
    if (camera.has_lens) {
      const Vec2<N> v{at.x, at.y};
      dseen = camera.lens.at(v).solved(dseen);
      camera.lens.add_transposed(v, dseen, lens);
    }
    const Vec2<N> seen = camera.seen(column, row);
    focal.x -= seen.x * dseen.x / camera.focal.x;
    focal.y -= seen.y * dseen.y / camera.focal.y;
    centre.x -= dseen.x / camera.focal.x;
    centre.y -= dseen.y / camera.focal.y;
  }
  void add(const CameraGradient& other) {
    position += other.position;
    forward += other.forward;
    right += other.right;
    above += other.above;
    background += other.background;
    focal = {focal.x + other.focal.x, focal.y + other.focal.y};
    centre = {centre.x + other.centre.x, centre.y + other.centre.y};
    for (std::size_t i = 0; i < lens.size(); ++i) lens[i] += other.lens[i];
  }
  /// Carries it through the look-at basis and adds it to that of `meta`.
  void add_to(const Camera<N>& c, N* dmeta) const {
    const N wide = length(cross(c.forward, c.right));
    const Vec3<N> dw = unit_transposed(c.above, wide, above);
    const N tall = length(cross(c.up, c.forward));
    const Vec3<N> dv = unit_transposed(c.right, tall, right + cross(dw, c.forward));
    const Vec3<N> df = forward + cross(c.right, dw) + cross(dv, c.up);
    const Vec3<N> dtarget = unit_transposed(c.forward, length(c.to_target), df);
    (position - dtarget).add_to(dmeta);
    dtarget.add_to(dmeta + 3);
    cross(c.forward, dv).add_to(dmeta + 6);
    background.add_to(dmeta + 12);
    if (!c.has_lens) {
      const N sine = std::sin(c.half_angle);
      dmeta[9] -= (focal.x + focal.y) * c.centre.y / (sine * sine) * std::numbers::pi_v<N> / 360;
      return;
    }
    dmeta[23] += focal.x;
    dmeta[24] += focal.y;
    dmeta[25] += centre.x;
    dmeta[26] += centre.y;
    for (std::size_t i = 0; i < lens.size(); ++i) dmeta[27 + i] += lens[i];
  }
};

}  // namespace ricci::loop::splats
