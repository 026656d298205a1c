// What a splat is to a camera and to a ray, and the derivatives of both: the formulas that the
// reference and the kernels of devices share. N is float or double.
#pragma once

#include <algorithm>
#include <limits>

#include "loop/splat_camera.h"

namespace ricci::loop::splats {

/// The spherical harmonics up to a degree, of a unit direction, and their slopes.
inline constexpr std::size_t MostHarmonics = 16;
template <class N>
struct Harmonics {
  std::array<N, MostHarmonics> value{};
  std::array<Vec3<N>, MostHarmonics> slope{};
  std::size_t count;

  Harmonics(const Vec3<N>& v, std::int64_t degree)
      : count(static_cast<std::size_t>((degree + 1) * (degree + 1))) {
    const auto [x, y, z] = v;
    set(0, N(0.28209479177387814), 1, {});
    if (degree < 1) return;
    const N c1 = N(0.4886025119029199);
    set(1, -c1, y, {0, 1, 0});
    set(2, c1, z, {0, 0, 1});
    set(3, -c1, x, {1, 0, 0});
    if (degree < 2) return;
    const N c2 = N(1.0925484305920792);
    set(4, c2, x * y, {y, x, 0});
    set(5, -c2, y * z, {0, z, y});
    set(6, N(0.31539156525252005), 2 * z * z - x * x - y * y, {-2 * x, -2 * y, 4 * z});
    set(7, -c2, x * z, {z, 0, x});
    set(8, N(0.5462742152960396), x * x - y * y, {2 * x, -2 * y, 0});
    if (degree < 3) return;
    const N c3 = N(-0.5900435899266435);
    const N c35 = N(-0.4570457994644658);
    const N quad = 4 * z * z - x * x - y * y;
    set(9, c3, y * (3 * x * x - y * y), {6 * x * y, 3 * x * x - 3 * y * y, 0});
    set(10, N(2.890611442640554), x * y * z, {y * z, x * z, x * y});
    set(11, c35, y * quad, {-2 * x * y, quad - 2 * y * y, 8 * y * z});
    set(12, N(0.3731763325901154), z * (2 * z * z - 3 * x * x - 3 * y * y),
        {-6 * x * z, -6 * y * z, 6 * z * z - 3 * x * x - 3 * y * y});
    set(13, c35, x * quad, {quad - 2 * x * x, -2 * x * y, 8 * x * z});
    set(14, N(1.445305721320277), z * (x * x - y * y), {2 * x * z, -2 * y * z, x * x - y * y});
    set(15, c3, x * (x * x - 3 * y * y), {3 * x * x - 3 * y * y, -6 * x * y, 0});
  }

 private:
  void set(std::size_t k, N factor, N polynomial, const Vec3<N>& gradient) {
    value[k] = factor * polynomial;
    slope[k] = gradient * factor;
  }
};

/// The arrays of one scene.
template <class N>
struct Scene {
  const N* positions;
  const N* scales;
  const N* rotations;
  const N* opacities;
  const N* colors;
  const N* sh;
};

/// The direction a splat is seen in; `sign` is that of μ - camera.
template <class N>
Vec3<N> view_direction(const Vec3<N>& offset, N distance, const Splats& s, N& sign) {
  sign = s.view_from_splat ? N(1) : N(-1);
  return offset * (sign / distance);
}

/// A splat as a camera sees it.
template <class N>
struct Shape {
  bool valid = false;
  N opacity = 0;
  N distance = 0;
  N quaternion_length = 0;
  std::array<N, 4> quaternion{};  ///< of length 1
  Columns<N> rotation{};
  Vec3<N> offset{};   ///< camera - μ
  Vec3<N> inverse{};  ///< 1 / standard deviation along the splat's axes
  Vec3<N> origin{};   ///< p: the camera in the splat's frame
  Vec3<N> color{};
  std::array<bool, 3> floored{};

  /// One that is not seen.
  Shape() = default;
  Shape(const Scene<N>& scene, std::int64_t i, const Camera<N>& camera, const Splats& s) {
    const N raw = scene.opacities[i];
    opacity = s.opacity_space == OpacitySpace::Logit ? 1 / (1 + std::exp(-raw))
                                                     : std::min(std::max(raw, N(0)), N(1));
    offset = camera.position - Vec3<N>::from(scene.positions + 3 * i);
    distance = length(offset);
    place(scene, i, s);
    set_color(scene, i, s);
    const N depth = -dot(camera.forward, offset);
    constexpr N Nearest = N(1e-4);
    const N* scale = scene.scales + 3 * i;
    valid = raw == raw && opacity >= static_cast<N>(s.alpha_cutoff.value) && depth > Nearest &&
            quaternion_length > 0 && std::isfinite(quaternion_length) &&
            std::isfinite(scale[0] + scale[1] + scale[2]) && std::isfinite(dot(origin, origin));
    if (!valid) *this = Shape();
  }
  /// As it was prepared, lengths in units of three deviations. Its offset is that of a rotation; if
  /// the quaternion is none, or an axis has no end, it is no number.
  Shape(const N* color_alpha, const N* pos_local, const N* inv_scale, const N* turn, N cutoff)
      : valid(color_alpha[3] >= cutoff),
        opacity(color_alpha[3]),
        quaternion{turn[0], turn[1], turn[2], turn[3]},
        rotation(rotation_of(quaternion)),
        inverse(Vec3<N>::from(inv_scale) * N(3)),
        origin(Vec3<N>::from(pos_local) * N(3)),
        color(Vec3<N>::from(color_alpha)) {
    const N size = turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2] + turn[3] * turn[3];
    const bool turns = std::fabs(size - 1) < N(1e-9);
    const N none = std::numeric_limits<N>::quiet_NaN();
    offset = turns ? rotate(rotation, Vec3<N>{origin.x / inverse.x, origin.y / inverse.y,
                                              origin.z / inverse.z})
                   : Vec3<N>{none, none, none};
    distance = length(offset);
  }
  /// Completes one that was prepared with what only the scene knows.
  void complete(const Scene<N>& scene, std::int64_t i, const Camera<N>& camera, const Splats& s) {
    offset = camera.position - Vec3<N>::from(scene.positions + 3 * i);
    distance = length(offset);
    const N* q = scene.rotations + 4 * i;
    quaternion_length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    for (std::size_t k = 0; k < 3; ++k) {
      floored[k] = scene.scales[3 * i + static_cast<std::int64_t>(k)] < shortest_axis(s);
    }
  }

 private:
  // The scale of an axis of which three deviations are a millionth.
  static N shortest_axis(const Splats& s) {
    return std::log(N(1e-6) / (3 * static_cast<N>(s.radius_scale.value)));
  }

  void place(const Scene<N>& scene, std::int64_t i, const Splats& s) {
    const N* q = scene.rotations + 4 * i;
    quaternion_length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    if (quaternion_length > 0) {
      for (std::size_t k = 0; k < 4; ++k) quaternion[k] = q[k] / quaternion_length;
    }
    rotation = rotation_of(quaternion);
    const auto inverse_of = [&](std::size_t k) {
      const N scale = scene.scales[3 * i + static_cast<std::int64_t>(k)];
      floored[k] = scale < shortest_axis(s);
      return floored[k] ? N(3e6) : std::exp(-scale) / static_cast<N>(s.radius_scale.value);
    };
    inverse = {inverse_of(0), inverse_of(1), inverse_of(2)};
    origin = rotate_back(rotation, offset) * inverse;
  }

  void set_color(const Scene<N>& scene, std::int64_t i, const Splats& s) {
    if (s.color_source == SplatColor::Rgb) {
      color = Vec3<N>::from(scene.colors + 3 * i);
      return;
    }
    N sign;
    const Harmonics<N> basis(view_direction(offset, distance, s, sign), s.degree);
    const N* sh = scene.sh + 3 * i * s.coefficients;
    const N half = N(1) / 2;
    color = {half, half, half};
    for (std::size_t k = 0; k < basis.count; ++k) {
      color += Vec3<N>::from(sh + 3 * k) * basis.value[k];
    }
  }
};

/// A splat along a ray: α = o·falloff with falloff = e^(-|e|²/2), e = p + t·r. That is what of p is
/// across r, e = r × (p × r) / r·r: so nothing cancels along the short axis of a flat splat.
template <class N>
struct Hit {
  Vec3<N> r;
  N t = 0;
  Vec3<N> e;
  N falloff = 0;
  N alpha = 0;  ///< 0: none

  Hit(const Shape<N>& shape, const Vec3<N>& ray, N cutoff)
      : r(rotate_back(shape.rotation, ray) * shape.inverse) {
    const N rr = dot(r, r);
    if (!shape.valid || !(rr > 0) || !std::isfinite(rr)) return;
    t = -dot(shape.origin, r) / rr;
    if (!(t > 0)) return;
    const Vec3<N> across = cross(shape.origin, r);
    e = cross(r, across) * (1 / rr);
    falloff = std::exp(-dot(across, across) / rr / 2);
    const N a = shape.opacity * falloff;
    if (a >= cutoff) alpha = a;
  }
};

/// What a pixel's colour becomes in the image.
template <class N>
N displayed(N u, N gamma) {
  if (!(u > 0)) return u == u ? N(0) : u;
  return gamma == 1 ? u : std::pow(u, gamma);
}
template <class N>
N displayed_slope(N u, N gamma) {
  if (!(u > 0)) return 0;
  return gamma == 1 ? N(1) : gamma * std::pow(u, gamma - 1);
}

/// Σ over pixels of what reaches a splat.
template <class N>
struct ShapeGradient {
  Vec3<N> pushed;       ///< Σ g_p
  Vec3<N> stretched;    ///< Σ g_p ∘ p + g_r ∘ r = Σ g_p ∘ e
  Columns<N> turned{};  ///< Σ (camera + t·d - μ) (S⁻¹ g_p)ᵀ, by columns; g_r = t·g_p
  N opacity = 0;
  Vec3<N> color;

  /// One hit: G = dα·α.
  void add_hit(const Shape<N>& shape, const Hit<N>& hit, const Vec3<N>& ray_direction, N dalpha,
               const Vec3<N>& dcolor) {
    const N g = dalpha * hit.alpha;
    const Vec3<N> gp = hit.e * -g;
    pushed += gp;
    stretched += gp * hit.e;
    const Vec3<N> point = shape.offset + ray_direction * hit.t;
    const Vec3<N> scaled = gp * shape.inverse;
    turned[0] += point * scaled.x;
    turned[1] += point * scaled.y;
    turned[2] += point * scaled.z;
    opacity += dalpha * hit.falloff;
    color += dcolor;
  }
};

/// Where the gradient of one splat goes.
template <class N>
struct SplatGradient {
  N* positions;
  N* scales;
  N* rotations;
  N* opacities;
  N* colors;
  N* sh;

  /// Writes what one splat gets; gives what the camera's position does.
  Vec3<N> write(const Scene<N>& scene, std::int64_t i, const Shape<N>& shape,
                const ShapeGradient<N>& d, const Splats& s) const {
    Vec3<N> dcamera = rotate(shape.rotation, d.pushed * shape.inverse);
    scales[0] = shape.floored[0] ? N(0) : -d.stretched.x;
    scales[1] = shape.floored[1] ? N(0) : -d.stretched.y;
    scales[2] = shape.floored[2] ? N(0) : -d.stretched.z;
    write_rotation(shape, d);
    const N raw = scene.opacities[i];
    const bool logit = s.opacity_space == OpacitySpace::Logit;
    const N slope = logit ? shape.opacity * (1 - shape.opacity) : N(raw > 0 && raw < 1 ? 1 : 0);
    opacities[0] = d.opacity * slope;
    dcamera += write_color(scene, i, shape, d.color, s);
    positions[0] = -dcamera.x;
    positions[1] = -dcamera.y;
    positions[2] = -dcamera.z;
    return dcamera;
  }

  /// The gradient of a splat that is not seen.
  void write_nothing(const Splats& s) const {
    std::fill_n(positions, 3, N(0));
    std::fill_n(scales, 3, N(0));
    std::fill_n(rotations, 4, N(0));
    opacities[0] = 0;
    std::fill_n(colors, 3, N(0));
    std::fill_n(sh, 3 * s.coefficients, N(0));
  }

 private:
  void write_rotation(const Shape<N>& shape, const ShapeGradient<N>& d) const {
    const auto& [a, b, c] = d.turned;
    const auto [w, x, y, z] = shape.quaternion;
    // m[row][column] = [a b c]; differences and sums of its off-diagonal entries
    const N d32 = b.z - c.y;
    const N d13 = c.x - a.z;
    const N d21 = a.y - b.x;
    const N s12 = b.x + a.y;
    const N s13 = c.x + a.z;
    const N s23 = c.y + b.z;
    const std::array<N, 4> dq = {2 * (x * d32 + y * d13 + z * d21),
                                 2 * (w * d32 + y * s12 + z * s13 - 2 * x * (b.y + c.z)),
                                 2 * (w * d13 + x * s12 + z * s23 - 2 * y * (a.x + c.z)),
                                 2 * (w * d21 + x * s13 + y * s23 - 2 * z * (a.x + b.y))};
    N along = 0;
    for (std::size_t k = 0; k < 4; ++k) along += shape.quaternion[k] * dq[k];
    for (std::size_t k = 0; k < 4; ++k) {
      rotations[k] = (dq[k] - shape.quaternion[k] * along) / shape.quaternion_length;
    }
  }

  // Gives what the camera's position gets through the view direction.
  Vec3<N> write_color(const Scene<N>& scene, std::int64_t i, const Shape<N>& shape,
                      const Vec3<N>& dcolor, const Splats& s) const {
    std::fill_n(sh, 3 * s.coefficients, N(0));
    const bool rgb = s.color_source == SplatColor::Rgb;
    std::fill_n(colors, 3, N(0));
    if (rgb) {
      dcolor.add_to(colors);
      return {};
    }
    N sign;
    const Vec3<N> view = view_direction(shape.offset, shape.distance, s, sign);
    const Harmonics<N> basis(view, s.degree);
    const N* given = scene.sh + 3 * i * s.coefficients;
    Vec3<N> dview{};
    for (std::size_t k = 0; k < basis.count; ++k) {
      (dcolor * basis.value[k]).add_to(sh + 3 * k);
      dview += basis.slope[k] * dot(Vec3<N>::from(given + 3 * k), dcolor);
    }
    return unit_transposed(view, shape.distance, dview) * sign;
  }
};

}  // namespace ricci::loop::splats
