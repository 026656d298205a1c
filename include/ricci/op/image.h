// Resampling of images and of anything else that lies on a grid.
#pragma once

#include <array>
#include <string_view>

#include "ricci/op/fields.h"

namespace ricci {

/// How values between the samples are made: the nearest one, a straight line, or a cubic through
/// four.
enum class ResizeMode : std::uint8_t { Nearest, Linear, Cubic };
constexpr auto enumerator_names(ResizeMode) {
  return std::to_array<std::string_view>({"nearest", "linear", "cubic"});
}

/// Where sample i of n_out lies among n_in. half_pixel: (i + ½)·n_in/n_out - ½, samples are in the
/// middle of their cells; align_corners: i·(n_in - 1)/(n_out - 1), the first and last samples stay
/// where they are; asymmetric: i·n_in/n_out.
enum class ResizeCoordinates : std::uint8_t { HalfPixel, AlignCorners, Asymmetric };
constexpr auto enumerator_names(ResizeCoordinates) {
  return std::to_array<std::string_view>({"half_pixel", "align_corners", "asymmetric"});
}

}  // namespace ricci

namespace ricci::op {

/// Other sizes for the axes behind the first two, each axis by itself. Samples outside take the
/// value at the edge. nearest takes the cell a coordinate is in (align_corners: the sample next to
/// it, halves up).
struct Resize {
  Dims sizes = {};
  ResizeMode mode = ResizeMode::Nearest;
  ResizeCoordinates coordinates = ResizeCoordinates::HalfPixel;
  Real cubic_coefficient = -0.75;

  static constexpr OpInfo info{
      .name = "resize",
      .operands = "x",
      .results = "out",
      .help = "interpolates to other spatial sizes",
      .formula = "x [N, C, spatial…]: out[n, c, i…] = Σ_j… Π_a W_a[i_a, j_a]·x[n, c, j…], rows of "
                 "W_a being nearest, linear or cubic weights around the coordinate of i_a",
      .constraints = "c1 dtype: x is floating or complex\n"
                     "c2 shape: x is [N, C, spatial…]\n"
                     "c3 attr: sizes has a positive size for every spatial axis\n"
                     "c4 needs_static_dim: the spatial sizes are known, or a multiple of a "
                     "symbolic size is taken by nearest samples, not aligned at corners\n"
                     "c5 shape: spatial axes are not empty"};
  static void fields(auto& self, auto&& f) {
    f("sizes", self.sizes, "the spatial sizes of the result", Presence::Required);
    f("mode", self.mode, "how values between samples are made");
    f("coordinates", self.coordinates, "where samples lie");
    f("cubic_coefficient", self.cubic_coefficient, "the slope of the cubic kernel at 1",
      Presence::Defaulted, Range::Factor);
  }
  bool operator==(const Resize&) const = default;
};

}  // namespace ricci::op
