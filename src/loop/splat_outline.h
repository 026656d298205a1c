// Which pixels may see a splat: its outline on the plane at distance 1, in closed form, and boxes
// of pixels there. Numbers are f64.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "loop/splat_math.h"

namespace ricci::loop::splats {

/// Where pixels look, on the plane at distance 1.
struct PlaneBox {
  double left = std::numeric_limits<double>::infinity();
  double right = -std::numeric_limits<double>::infinity();
  double top = std::numeric_limits<double>::infinity();
  double bottom = -std::numeric_limits<double>::infinity();
  bool everywhere = false;

  void add(const Basis<double>& basis, const Vec3<double>& ray) {
    const Vec2<double> v = basis.on_plane(ray);
    // A ray that goes backwards, or is none, has no place on the plane.
    if (!(dot(basis.forward, ray) > 0) || !std::isfinite(v.x) || !std::isfinite(v.y)) {
      everywhere = true;
      return;
    }
    left = std::min(left, v.x);
    right = std::max(right, v.x);
    top = std::min(top, v.y);
    bottom = std::max(bottom, v.y);
  }
  void add(const PlaneBox& other) {
    left = std::min(left, other.left);
    right = std::max(right, other.right);
    top = std::min(top, other.top);
    bottom = std::max(bottom, other.bottom);
    everywhere = everywhere || other.everywhere;
  }
};

/// The outline of a splat: that of the ellipsoid on which α is alpha_cutoff. In front of the camera
/// (m_z² > Σ_zz, with m the centre and Σ the ellipsoid in the basis) it is an ellipse about
/// (D13, D23)/D33 with the inverse conic E = (D_·3 D_·3ᵀ - D_·· D33)/D33², D = Σ - m mᵀ; otherwise
/// the splat may be anywhere. [splat-exact-ellipse]
class Outline {
 public:
  Outline() = default;
  Outline(const Shape<double>& shape, const Basis<double>& basis, double cutoff) {
    if (!shape.valid) return;
    seen_ = true;
    everywhere_ = true;
    if (!std::isfinite(shape.distance)) return;
    // Half a percent longer, for rounding.
    const double support = -2.02 * std::log(cutoff / shape.opacity);
    const std::array<Vec3<double>, 3> axes = {basis.right, basis.above, basis.forward};
    std::array<double, 3> m{};
    std::array<Vec3<double>, 3> in_axes;  // of the ellipsoid, in deviations
    for (std::size_t k = 0; k < 3; ++k) {
      m[k] = -dot(axes[k], shape.offset);
      const Vec3<double> v = rotate_back(shape.rotation, axes[k]);
      in_axes[k] = {v.x / shape.inverse.x, v.y / shape.inverse.y, v.z / shape.inverse.z};
    }
    const auto d = [&](std::size_t i, std::size_t j) {
      return support * dot(in_axes[i], in_axes[j]) - m[i] * m[j];
    };
    const double d33 = d(2, 2);
    // Close to the plane of the camera the ellipse is as large as rounding makes it.
    if (!(m[2] > 0) || !(d33 < -1e-6 * m[2] * m[2])) return;
    const auto e = [&](std::size_t i, std::size_t j) {
      return (d(i, 2) * d(j, 2) - d(i, j) * d33) / (d33 * d33);
    };
    // What is around every point: no ellipse is too thin to be met.
    constexpr double Around = 1e-10;
    set(d(0, 2) / d33, d(1, 2) / d33, e(0, 0) + Around, e(0, 1), e(1, 1) + Around);
  }

  [[nodiscard]] bool seen() const { return seen_; }
  /// The closed form holds: the splat is in front of the camera.
  [[nodiscard]] bool is_ellipse() const { return seen_ && !everywhere_; }
  [[nodiscard]] Vec2<double> centre() const { return centre_; }
  [[nodiscard]] Vec2<double> half_extent() const { return half_; }

  /// Rows of pixels it may touch.
  [[nodiscard]] bool meets_rows(const PlaneBox& box) const {
    if (!seen_ || everywhere_ || box.everywhere) return seen_;
    return centre_.y - half_.y <= box.bottom && centre_.y + half_.y >= box.top;
  }
  /// A pixel of the box may see it: the least value of the quadratic form on the box is at most 1.
  [[nodiscard]] bool meets(const PlaneBox& box) const {
    if (!seen_ || everywhere_ || box.everywhere) return seen_;
    const double left = box.left - centre_.x;
    const double right = box.right - centre_.x;
    const double top = box.top - centre_.y;
    const double bottom = box.bottom - centre_.y;
    if (left > half_.x || right < -half_.x || top > half_.y || bottom < -half_.y) return false;
    if (!has_conic_) return true;
    const bool beside = left > 0 || right < 0;
    const bool above = top > 0 || bottom < 0;
    if (!beside && !above) return true;
    // The least value lies on an edge that faces the centre.
    if (beside) {
      const double x = left > 0 ? left : right;
      if (form(x, std::clamp(-b_ * x / c_, top, bottom)) <= 1) return true;
    }
    if (above) {
      const double y = top > 0 ? top : bottom;
      if (form(std::clamp(-b_ * y / a_, left, right), y) <= 1) return true;
    }
    return false;
  }

 private:
  void set(double x, double y, double xx, double xy, double yy) {
    if (!std::isfinite(x) || !std::isfinite(y) || !std::isfinite(xx * yy) || !(xx > 0) ||
        !(yy > 0)) {
      return;
    }
    everywhere_ = false;
    centre_ = {x, y};
    half_ = {std::sqrt(xx), std::sqrt(yy)};
    // Of a determinant that rounding has made, the box is all that is known.
    const double det = xx * yy - xy * xy;
    has_conic_ = det > 1e-9 * xx * yy;
    if (!has_conic_) return;
    a_ = yy / det;
    b_ = -xy / det;
    c_ = xx / det;
  }
  [[nodiscard]] double form(double x, double y) const {
    return a_ * x * x + 2 * b_ * x * y + c_ * y * y;
  }

  bool seen_ = false;
  bool everywhere_ = false;
  bool has_conic_ = false;
  Vec2<double> centre_;
  Vec2<double> half_;
  double a_ = 0;
  double b_ = 0;
  double c_ = 0;
};

}  // namespace ricci::loop::splats
