// Outlines of splats on the image plane against rays that are shot at them, and the harmonics of
// their colours.
#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "loop/splat_outline.h"

namespace ricci::loop::splats::loop_splat_outline_test {
namespace {

constexpr double Cutoff = 1.0 / 255;

Splats image() {
  Splats s;
  s.count = 1;
  s.width = 64;
  s.height = 64;
  s.alpha_cutoff = Cutoff;
  s.color_source = SplatColor::Rgb;
  return s;
}

struct One {
  std::array<double, 3> position;
  std::array<double, 3> scale;
  std::array<double, 4> rotation;
  std::array<double, 1> opacity;
  std::array<double, 3> color = {};
  std::array<double, 3> sh = {};

  [[nodiscard]] Shape<double> seen_by(const Camera<double>& camera, const Splats& s) const {
    const Scene<double> scene{position.data(), scale.data(), rotation.data(),
                              opacity.data(),  color.data(), sh.data()};
    return {scene, 0, camera, s};
  }
};

Camera<double> camera(const Splats& s) {
  std::array<double, SplatMetaLength> meta{};
  const std::array<double, 10> numbers = {0.2, -0.1, -4, 0, 0.1, 0, 0.1, 1, 0, 50};
  std::ranges::copy(numbers, meta.begin());
  return {meta.data(), s};
}

bool hits(const Shape<double>& shape, const Camera<double>& c, double x, double y) {
  const Vec3<double> ray = unit(c.right * x + c.above * y + c.forward);
  return Hit<double>(shape, ray, Cutoff).alpha > 0;
}

One random_splat(std::uint64_t seed) {
  std::uint64_t state = seed;
  const auto draw = [&](double low, double high) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return low + (high - low) * static_cast<double>(state >> 11) * 0x1p-53;
  };
  One one;
  for (double& v : one.position) v = draw(-0.8, 0.8);
  for (double& v : one.scale) v = draw(-4, -1);
  for (double& v : one.rotation) v = draw(-1, 1);
  one.opacity[0] = draw(0.1, 1);
  return one;
}

// Around its centre, in every direction, a splat is seen up to its outline and not behind it, save
// for the half percent that outlines are longer. [splat-exact-ellipse]
TEST(SplatOutline, IsWhereOpacityFallsBelowTheCutoff) {
  const Splats s = image();
  const Camera<double> c = camera(s);
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Shape<double> shape = random_splat(seed).seen_by(c, s);
    ASSERT_TRUE(shape.valid);
    const Outline outline(shape, c, Cutoff);
    ASSERT_TRUE(outline.is_ellipse()) << seed;
    const auto inside = [&](double x, double y) { return outline.meets({x, x, y, y}); };
    const auto reach = [&](double angle, const auto& sees) {
      double low = 0;
      double high = 10;
      for (int i = 0; i < 60; ++i) {
        const double r = (low + high) / 2;
        const bool seen = sees(outline.centre().x + r * std::cos(angle),
                               outline.centre().y + r * std::sin(angle));
        (seen ? low : high) = r;
      }
      return low;
    };
    for (int k = 0; k < 12; ++k) {
      const double angle = k * std::numbers::pi / 6;
      const double shot = reach(angle, [&](double x, double y) { return hits(shape, c, x, y); });
      const double drawn = reach(angle, inside);
      EXPECT_GE(drawn, shot) << seed << ", " << k;
      EXPECT_LE(drawn, shot * 1.02 + 1e-4) << seed << ", " << k;
    }
  }
}

// A box is met when a point of it is inside: that of a grid, at least.
TEST(SplatOutline, MeetsBoxesThatItTouches) {
  const Splats s = image();
  const Camera<double> c = camera(s);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Shape<double> shape = random_splat(seed).seen_by(c, s);
    const Outline outline(shape, c, Cutoff);
    constexpr int Tiles = 24;
    constexpr int Points = 16;
    int met = 0;
    int touched = 0;
    for (int tile = 0; tile < Tiles * Tiles; ++tile) {
      const double size = 1.0 / Tiles;
      const double left = -0.5 + tile % Tiles * size;
      const double top = -0.5 + tile / Tiles * size;
      bool any = false;
      for (int p = 0; p < Points * Points; ++p) {
        any = any || hits(shape, c, left + p % Points * size / (Points - 1),
                          top + p / Points * size / (Points - 1));
      }
      const bool meets = outline.meets({left, left + size, top, top + size});
      EXPECT_TRUE(meets || !any) << seed << ", " << tile;
      met += meets ? 1 : 0;
      touched += any ? 1 : 0;
    }
    // Corners that the grid misses, and the half percent.
    EXPECT_LE(met, touched + 4 + touched / 5) << seed;
  }
}

// What reaches the camera's plane may be anywhere; it is never lost. [splat-exact-ellipse]
TEST(SplatOutline, AroundTheCameraIsEverywhere) {
  const Splats s = image();
  const Camera<double> c = camera(s);
  One one = random_splat(3);
  one.position = {0.2, -0.1, -3.9};
  one.scale = {0.5, 0.5, 0.5};
  const Outline outline(one.seen_by(c, s), c, Cutoff);
  EXPECT_TRUE(outline.seen());
  EXPECT_FALSE(outline.is_ellipse());
  EXPECT_TRUE(outline.meets({0.4, 0.41, -0.4, -0.39}));
  EXPECT_FALSE(Outline().meets({0, 1, 0, 1}));
}

// Far smaller than a pixel, a splat still covers the point it is at. [splat-no-drop]
TEST(SplatOutline, TinySplatsAreKept) {
  const Splats s = image();
  const Camera<double> c = camera(s);
  One one = random_splat(5);
  one.scale = {-30, -40, -50};
  const Outline outline(one.seen_by(c, s), c, Cutoff);
  ASSERT_TRUE(outline.is_ellipse());
  const Vec2<double> at = outline.centre();
  EXPECT_TRUE(outline.meets({at.x, at.x, at.y, at.y}));
  EXPECT_GT(outline.half_extent().x, 0);
}

// Sixteen functions, at right angles to each other and of length 1 on the sphere: every band is
// there, and none twice. [splat-sh-bands]
TEST(SplatHarmonics, AreAnOrthonormalBasis) {
  constexpr int Across = 32;
  // Gauss and Legendre's rule with four points is exact up to degree 7 in z, and so are 32 angles.
  const std::array<double, 4> points = {-0.8611363115940526, -0.3399810435848563,
                                        0.3399810435848563, 0.8611363115940526};
  const std::array<double, 4> weights = {0.3478548451374538, 0.6521451548625461, 0.6521451548625461,
                                         0.3478548451374538};
  std::array<std::array<double, MostHarmonics>, MostHarmonics> product{};
  for (std::size_t p = 0; p < points.size(); ++p) {
    for (int k = 0; k < Across; ++k) {
      const double angle = 2 * std::numbers::pi * k / Across;
      const double side = std::sqrt(1 - points[p] * points[p]);
      const Harmonics<double> basis({side * std::cos(angle), side * std::sin(angle), points[p]}, 3);
      for (std::size_t i = 0; i < MostHarmonics; ++i) {
        for (std::size_t j = 0; j < MostHarmonics; ++j) {
          product[i][j] +=
              basis.value[i] * basis.value[j] * weights[p] * 2 * std::numbers::pi / Across;
        }
      }
    }
  }
  for (std::size_t i = 0; i < MostHarmonics; ++i) {
    for (std::size_t j = 0; j < MostHarmonics; ++j) {
      EXPECT_NEAR(product[i][j], i == j ? 1 : 0, 1e-12) << i << ", " << j;
    }
  }
}

}  // namespace
}  // namespace ricci::loop::splats::loop_splat_outline_test
