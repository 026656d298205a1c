#include "ops/cases.h"

namespace ricci::testing {
namespace {

constexpr auto Linear = ResizeMode::Linear;
constexpr auto Cubic = ResizeMode::Cubic;
constexpr auto Corners = ResizeCoordinates::AlignCorners;
constexpr auto Asymmetric = ResizeCoordinates::Asymmetric;

}  // namespace

Cases cases(const op::Resize*) {
  const Dim n = Dim::symbol("n");
  return cases_of<op::Resize>({
      // [CV-07] every pixel in place, not copies of the image
      {.name = "twice",
       .in = {T({1, 1, 2, 2}).with({1, 2, 3, 4})},
       .op = {.sizes = {4, 4}},
       .out = {{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}}},
      {.name = "nearest_down",
       .in = {T({1, 1, 5}).with({0, 1, 2, 3, 4})},
       .op = {.sizes = {2}},
       .out = {{1, 3}}},
      {.name = "nearest_down_asymmetric",
       .in = {T({1, 1, 5}).with({0, 1, 2, 3, 4})},
       .op = {.sizes = {2}, .coordinates = Asymmetric},
       .out = {{0, 2}}},
      {.name = "nearest_corners",
       .in = {T({1, 1, 3}).with({0, 1, 2})},
       .op = {.sizes = {5}, .coordinates = Corners},
       .out = {{0, 1, 1, 2, 2}}},
      {.name = "linear_up",
       .in = {T({1, 1, 2}).with({0, 4})},
       .op = {.sizes = {4}, .mode = Linear},
       .out = {{0, 1, 3, 4}}},
      {.name = "linear_corners",
       .in = {T({1, 1, 2}).with({0, 4})},
       .op = {.sizes = {5}, .mode = Linear, .coordinates = Corners},
       .out = {{0, 1, 2, 3, 4}}},
      {.name = "linear_asymmetric",
       .in = {T({1, 1, 2}).with({0, 4})},
       .op = {.sizes = {4}, .mode = Linear, .coordinates = Asymmetric},
       .out = {{0, 2, 4, 4}}},
      {.name = "bilinear", .in = {T({2, 3, 3, 5})}, .op = {.sizes = {7, 2}, .mode = Linear}},
      {.name = "trilinear",
       .in = {T({1, 2, 2, 3, 4})},
       .op = {.sizes = {3, 5, 2}, .mode = Linear, .coordinates = Corners}},
      {.name = "bicubic", .in = {T({1, 2, 4, 5})}, .op = {.sizes = {6, 3}, .mode = Cubic}},
      {.name = "bicubic_corners",
       .in = {T({1, 1, 3, 3})},
       .op = {.sizes = {5, 1}, .mode = Cubic, .coordinates = Corners, .cubic_coefficient = -0.5}},
      {.name = "to_one_corner",
       .in = {T({1, 1, 3}).with({5, 6, 7})},
       .op = {.sizes = {1}, .mode = Linear, .coordinates = Corners},
       .out = {{5}}},
      {.name = "from_one", .in = {T({2, 1, 1, 3})}, .op = {.sizes = {4, 3}, .mode = Cubic}},
      {.name = "same", .in = {T({1, 2, 3, 4})}, .op = {.sizes = {3, 4}, .mode = Cubic}},
      {.name = "long", .in = {T({1, 1, 67})}, .op = {.sizes = {129}, .mode = Linear}},
      // What does not count may be infinite.
      {.name = "infinite_neighbour",
       .in = {T({1, 1, 3}).with({1, Inf, 2})},
       .op = {.sizes = {2}, .mode = Linear, .coordinates = Corners},
       .out = {{1, 2}}},
      {.name = "no_images", .in = {T({0, 2, 3, 3})}, .op = {.sizes = {2, 5}, .mode = Linear}},
      {.name = "symbolic_twice", .in = {T({n, 3, n, n})}, .op = {.sizes = {n * 2, n * 2}}},
      {.name = "symbolic_batch", .in = {T({n, n, 4})}, .op = {.sizes = {7}, .mode = Cubic}},
      {.name = "ints",
       .in = {T({1, 1, 2})},
       .op = {.sizes = {4}},
       .dtypes = dtypes::ints,
       .rejects = "c1"},
      {.name = "rank_two", .in = {T({1, 2})}, .op = {.sizes = Dims{}}, .rejects = "c2"},
      {.name = "too_many_sizes", .in = {T({1, 1, 2})}, .op = {.sizes = {2, 2}}, .rejects = "c3"},
      {.name = "size_zero", .in = {T({1, 1, 2})}, .op = {.sizes = {0}}, .rejects = "c3"},
      {.name = "symbolic_linear",
       .in = {T({1, 1, n})},
       .op = {.sizes = {n * 2}, .mode = Linear},
       .rejects = "c4"},
      {.name = "empty_axis", .in = {T({1, 1, 0})}, .op = {.sizes = {2}}, .rejects = "c5"},
  });
}

}  // namespace ricci::testing
