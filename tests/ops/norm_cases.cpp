#include <cmath>

#include "ops/cases.h"

namespace ricci::testing {
namespace {

// Shapes and axes that layer_norm, rms_norm and batch norm are all tried on; sizes before, along
// and after the axis differ, and the square one tells a row vector from a column. [NM-01]
struct AxisCase {
  std::string name;
  Dims dims;
  Axis axis;
};
std::vector<AxisCase> axis_cases() {
  return {{"last_axis", {2, 3, 5}, -1},
          {"middle_axis", {2, 3, 5}, 1},
          {"first_axis", {4, 3}, 0},
          {"square_first_axis", {3, 3}, -2},
          {"vector", {5}, -1},
          {"size_one", {3, 1}, -1},
          {"no_rows", {0, 3}, -1},
          {"no_elements", {2, 0}, -1},
          {"longer_than_a_vector", {3, 67}, 1},
          {"rank_six", {1, 2, 1, 3, 2, 2}, 3},
          {"symbolic", {Symbol, 4}, -1},
          {"symbolic_axis", {4, Symbol}, -1}};
}

Dim size_along(const AxisCase& a) {
  const auto axis = normalized_axis(a.axis.value, a.dims.size());
  return a.dims[static_cast<std::size_t>(*axis)];
}

// x, and vectors along the axis: γ, β or what else the op takes.
template <class O>
std::vector<CaseOf<O>> forward_cases(std::size_t vectors) {
  std::vector<CaseOf<O>> out;
  for (const AxisCase& a : axis_cases()) {
    std::vector<In> in = {T(a.dims)};
    for (std::size_t i = 0; i < vectors; ++i) {
      in.push_back(i == 3 ? T({size_along(a)}).between(0.5, 2) : T({size_along(a)}).between(-1, 1));
    }
    out.push_back({.name = a.name, .in = in, .op = {.axis = a.axis, .eps = 1e-3}});
  }
  return out;
}

template <class O>
void add(std::vector<CaseOf<O>>& to, std::vector<CaseOf<O>> more) {
  to.insert(to.end(), more.begin(), more.end());
}

// What layer_norm and rms_norm refuse.
template <class O>
std::vector<CaseOf<O>> forward_refusals() {
  return {{.name = "ints",
           .in = {T({2, 3}), T({3}), T({3})},
           .op = {},
           .dtypes = dtypes::ints,
           .rejects = "c1"},
          {.name = "mixed",
           .in = {Fixed(DType::F32, {2, 3}), Fixed(DType::F64, {3}), Fixed(DType::F32, {3})},
           .op = {},
           .rejects = "c1"},
          {.name = "gamma_along_another_axis",
           .in = {T({2, 3}), T({3}), T({3})},
           .op = {.axis = 0},
           .rejects = "c2"},
          {.name = "beta_has_two_axes",
           .in = {T({2, 3}), T({3}), T({1, 3})},
           .op = {},
           .rejects = "c2"},
          {.name = "scalar", .in = {T({}), T({1}), T({1})}, .op = {}, .rejects = "axis"},
          {.name = "eps_negative",
           .in = {T({2, 3}), T({3}), T({3})},
           .op = {.eps = -1e-5},
           .rejects = "c3"},
          {.name = "eps_nan",
           .in = {T({2, 3}), T({3}), T({3})},
           .op = {.eps = std::nan("")},
           .rejects = "range"}};
}

template <class O>
std::vector<CaseOf<O>> backward_cases() {
  std::vector<CaseOf<O>> out;
  for (const AxisCase& a : axis_cases()) {
    out.push_back({.name = a.name,
                   .in = {T(a.dims), T({size_along(a)}).between(-1, 1), T(a.dims).between(-1, 1)},
                   .op = {.axis = a.axis, .eps = 1e-3}});
  }
  for (const std::vector<bool>& wanted : std::vector<std::vector<bool>>{
           {true, false, false}, {false, true, false}, {false, false, true}, {true, false, true}}) {
    out.push_back({.name = "some_gradients",
                   .in = {T({2, 3}), T({3}).between(-1, 1), T({2, 3}).between(-1, 1)},
                   .op = {},
                   .wanted = wanted});
  }
  add(out, {{.name = "ints",
             .in = {T({2, 3}), T({3}), T({2, 3})},
             .op = {},
             .dtypes = dtypes::ints,
             .rejects = "c1"},
            {.name = "gamma_size", .in = {T({2, 3}), T({2}), T({2, 3})}, .op = {}, .rejects = "c2"},
            {.name = "eps_negative",
             .in = {T({2, 3}), T({3}), T({2, 3})},
             .op = {.eps = -1.0},
             .rejects = "c3"},
            {.name = "dy_shape", .in = {T({2, 3}), T({3}), T({3})}, .op = {}, .rejects = "c4"}});
  return out;
}

}  // namespace

Cases cases(const op::LayerNorm*) {
  auto list = forward_cases<op::LayerNorm>(2);
  add(list, forward_refusals<op::LayerNorm>());
  // μ = 1, v = 1: x̂ = ±1.
  add(list,
      {{.name = "by_hand",
        .in = {T({2, 2}).with({0, 2, 5, 3}), T({2}).with({3, 5}), T({2}).with({1, -1})},
        .op = {.eps = 0.0},
        .out = {{-2, 4, 4, -6}}},
       {.name = "by_hand_first_axis",
        .in = {T({2, 2}).with({0, 5, 2, 3}), T({2}).with({3, 5}), T({2}).with({1, -1})},
        .op = {.axis = 0, .eps = 0.0},
        .out = {{-2, 4, 4, -6}}},
       // E[x²] - μ² would lose all digits here. [NM-02] [lower-norm-stable]
       {.name = "far_from_zero",
        .in = {T({4}).with({4096, 4098, 4096, 4098}), T({4}).with({1, 1, 1, 1}),
               T({4}).with({0, 0, 0, 0})},
        .op = {.eps = 0.0},
        .dtypes = {DType::F32, DType::F64},
        .out = {{-1, 1, -1, 1}}},
       {.name = "constant_row_without_eps",
        .in = {T({2}).with({3, 3}), T({2}), T({2})},
        .op = {.eps = 0.0},
        .out = {{std::nan(""), std::nan("")}}},
       {.name = "nan_stays_in_its_row",
        .in = {T({2, 2}).with({std::nan(""), 2, 5, 3}), T({2}).with({1, 1}), T({2}).with({0, 0})},
        .op = {.eps = 0.0},
        .out = {{std::nan(""), std::nan(""), 1, -1}}}});
  return cases_of<op::LayerNorm>(list);
}

Cases cases(const op::RmsNorm*) {
  auto list = forward_cases<op::RmsNorm>(2);
  add(list, forward_refusals<op::RmsNorm>());
  // mean x² = 4 and 1: r = 1/2 and 1.
  add(list, {{.name = "by_hand",
              .in = {T({2, 2}).with({2, -2, 1, 1}), T({2}).with({3, 5}), T({2}).with({1, -1})},
              .op = {.eps = 0.0},
              .out = {{4, -6, 4, 4}}},
             {.name = "by_hand_with_eps",
              .in = {T({1, 2}).with({1, -1}), T({2}).with({2, 2}), T({2}).with({0, 1})},
              .op = {.eps = 3.0},
              .out = {{1, 0}}}});
  return cases_of<op::RmsNorm>(list);
}

Cases cases(const op::GroupNorm*) {
  const double nan = std::nan("");
  return cases_of<op::GroupNorm>({
      {.name = "images", .in = {T({2, 6, 3, 2}), T({6}), T({6})}, .op = {.num_groups = 3}},
      {.name = "one_group", .in = {T({2, 4, 3}), T({4}), T({4})}, .op = {.num_groups = 1}},
      {.name = "group_per_channel",
       .in = {T({2, 3, 4}), T({3}), T({3})},
       .op = {.num_groups = 3, .eps = 1e-3}},
      {.name = "no_spatial_axes", .in = {T({2, 6}), T({6}), T({6})}, .op = {.num_groups = 2}},
      {.name = "one_example", .in = {T({1, 4, 3}), T({4}), T({4})}, .op = {.num_groups = 2}},
      {.name = "rank_six",
       .in = {T({1, 4, 2, 1, 3, 2}), T({4}), T({4})},
       .op = {.num_groups = 2, .eps = 0.5}},
      {.name = "no_examples", .in = {T({0, 4, 3}), T({4}), T({4})}, .op = {.num_groups = 2}},
      {.name = "no_pixels", .in = {T({2, 4, 0}), T({4}), T({4})}, .op = {.num_groups = 2}},
      {.name = "symbolic", .in = {T({Symbol, 4, Symbol}), T({4}), T({4})}, .op = {.num_groups = 2}},
      {.name = "symbolic_channels",
       .in = {T({2, Symbol, 3}), T({Symbol}), T({Symbol})},
       .op = {.num_groups = 2}},
      {.name = "by_hand",
       .in = {T({1, 4, 1}).with({0, 2, 5, 3}), T({4}).with({3, 5, 1, 2}),
              T({4}).with({1, -1, 0, 1})},
       .op = {.num_groups = 2, .eps = 0.0},
       .out = {{-2, 4, 1, -1}}},
      {.name = "nan_stays_in_its_group",
       .in = {T({1, 4, 1}).with({nan, 2, 5, 3}), T({4}).with({1, 1, 1, 1}),
              T({4}).with({0, 0, 0, 0})},
       .op = {.num_groups = 2, .eps = 0.0},
       .out = {{nan, nan, 1, -1}}},
      {.name = "ints",
       .in = {T({2, 4, 3}), T({4}), T({4})},
       .op = {.num_groups = 2},
       .dtypes = dtypes::ints,
       .rejects = "c1"},
      {.name = "no_channels", .in = {T({4}), T({4}), T({4})}, .op = {}, .rejects = "c2"},
      {.name = "uneven",
       .in = {T({2, 4, 3}), T({4}), T({4})},
       .op = {.num_groups = 3},
       .rejects = "c3"},
      {.name = "no_groups",
       .in = {T({2, 4, 3}), T({4}), T({4})},
       .op = {.num_groups = 0},
       .rejects = "c3"},
      {.name = "beta_size", .in = {T({2, 4, 3}), T({4}), T({3})}, .op = {}, .rejects = "c4"},
      {.name = "eps_negative",
       .in = {T({2, 4, 3}), T({4}), T({4})},
       .op = {.eps = -1.0},
       .rejects = "c5"},
  });
}

Cases cases(const op::BatchNormInference*) {
  auto list = forward_cases<op::BatchNormInference>(4);
  const In x = T({2, 3});
  const In v = T({3});
  add(list,
      {{.name = "by_hand",
        .in = {T({2, 2}).with({3, 1, 5, -1}), T({2}).with({3, 5}), T({2}).with({1, -1}),
               T({2}).with({1, 2}), T({2}).with({3, 0})},
        .op = {.eps = 1.0},
        .out = {{4, -6, 7, -16}}},
       {.name = "negative_variance",
        .in = {T({1}).with({3}), T({1}).with({1}), T({1}).with({0}), T({1}).with({1}),
               T({1}).with({-1})},
        .op = {.eps = 0.0},
        .out = {{std::nan("")}}},
       {.name = "ints", .in = {x, v, v, v, v}, .op = {}, .dtypes = dtypes::ints, .rejects = "c1"},
       {.name = "var_size", .in = {x, v, v, v, T({2})}, .op = {}, .rejects = "c2"},
       {.name = "eps_negative", .in = {x, v, v, v, v}, .op = {.eps = -1.0}, .rejects = "c3"}});
  return cases_of<op::BatchNormInference>(list);
}

Cases cases(const op::LayerNormBackward*) {
  auto list = backward_cases<op::LayerNormBackward>();
  // x̂ = (-1, 1), s = 1, h = (2, 4): dx = h - 3 - x̂·1 = 0, since two points on a line stay ±1.
  add(list, {{.name = "by_hand",
              .in = {T({1, 2}).with({0, 2}), T({2}).with({2, 1}), T({1, 2}).with({1, 4})},
              .op = {.eps = 0.0},
              .out = {{0, 0}, {-1, 4}, {1, 4}}},
             // v = 1, s = 1/2: x̂ = ±1/2, mean(h x̂) = 1/2, dx = ½ (h - 3 ∓ 1/4).
             {.name = "by_hand_with_eps",
              .in = {T({1, 2}).with({0, 2}), T({2}).with({2, 1}), T({1, 2}).with({1, 4})},
              .op = {.eps = 3.0},
              .out = {{-0.375, 0.375}, {-0.5, 2}, {1, 4}}}});
  return cases_of<op::LayerNormBackward>(list);
}

Cases cases(const op::RmsNormBackward*) {
  auto list = backward_cases<op::RmsNormBackward>();
  // r = 1/2, h = (2, 4), mean(h x) = -2: dx = h/2 + x/4; r⁴ in place of r³ gives x/8. [NM-08]
  add(list, {{.name = "by_hand",
              .in = {T({1, 2}).with({2, -2}), T({2}).with({2, 1}), T({1, 2}).with({1, 4})},
              .op = {.eps = 0.0},
              .out = {{1.5, 1.5}, {1, -4}, {1, 4}}}});
  return cases_of<op::RmsNormBackward>(list);
}

Cases cases(const op::GroupNormBackward*) {
  const auto all = [](Dims dims, Dim channels) {
    return std::vector<In>{T(dims), T({channels}).between(-1, 1), T(dims).between(-1, 1)};
  };
  return cases_of<op::GroupNormBackward>({
      {.name = "images", .in = all({2, 6, 3, 2}, 6), .op = {.num_groups = 3}},
      {.name = "square", .in = all({3, 3, 3}, 3), .op = {.num_groups = 1}},  // [BW-02]
      {.name = "no_spatial_axes", .in = all({2, 6}, 6), .op = {.num_groups = 2, .eps = 0.1}},
      {.name = "rank_six", .in = all({1, 4, 2, 1, 3, 2}, 4), .op = {.num_groups = 2}},
      {.name = "no_examples", .in = all({0, 4, 3}, 4), .op = {.num_groups = 2}},
      {.name = "no_pixels", .in = all({2, 4, 0}, 4), .op = {.num_groups = 2}},
      {.name = "symbolic", .in = all({Symbol, 4, Symbol}, 4), .op = {.num_groups = 2}},
      {.name = "only_dx",
       .in = all({2, 4, 3}, 4),
       .op = {.num_groups = 2},
       .wanted = {true, false, false}},
      {.name = "only_dgamma",
       .in = all({2, 4, 3}, 4),
       .op = {.num_groups = 2},
       .wanted = {false, true, false}},
      {.name = "only_dbeta",
       .in = all({2, 4, 3}, 4),
       .op = {.num_groups = 2},
       .wanted = {false, false, true}},
      {.name = "by_hand",
       .in = {T({1, 2, 1}).with({0, 2}), T({2}).with({2, 1}), T({1, 2, 1}).with({1, 4})},
       .op = {.num_groups = 1, .eps = 3.0},
       .out = {{-0.375, 0.375}, {-0.5, 2}, {1, 4}}},
      {.name = "ints",
       .in = all({2, 4, 3}, 4),
       .op = {.num_groups = 2},
       .dtypes = dtypes::ints,
       .rejects = "c1"},
      {.name = "no_channels", .in = all({4}, 4), .op = {}, .rejects = "c2"},
      {.name = "uneven", .in = all({2, 4, 3}, 4), .op = {.num_groups = 3}, .rejects = "c3"},
      {.name = "gamma_size", .in = all({2, 4, 3}, 3), .op = {}, .rejects = "c4"},
      {.name = "eps_negative", .in = all({2, 4, 3}, 4), .op = {.eps = -1.0}, .rejects = "c5"},
      {.name = "dy_shape", .in = {T({2, 4, 3}), T({4}), T({2, 4})}, .op = {}, .rejects = "c6"},
  });
}

Cases cases(const op::BatchNormInferenceBackward*) {
  using O = op::BatchNormInferenceBackward;
  std::vector<CaseOf<O>> list;
  for (const AxisCase& a : axis_cases()) {
    const In v = T({size_along(a)}).between(-1, 1);
    list.push_back(
        {.name = a.name,
         .in = {T(a.dims), v, v, T({size_along(a)}).between(0.5, 2), T(a.dims).between(-1, 1)},
         .op = {.axis = a.axis, .eps = 1e-3}});
  }
  const In x = T({2, 3});
  const In v = T({3}).between(0.5, 2);
  for (std::size_t r = 0; r < 5; ++r) {
    std::vector<bool> wanted(5, false);
    wanted[r] = true;
    list.push_back({.name = "one_gradient", .in = {x, v, v, v, x}, .op = {}, .wanted = wanted});
  }
  // s = 1/2, x - mean = 2, γ = 3, dy = (1, 3).
  add(list,
      {{.name = "by_hand",
        .in = {T({2, 1}).with({3, 3}), T({1}).with({3}), T({1}).with({1}), T({1}).with({3}),
               T({2, 1}).with({1, 3})},
        .op = {.eps = 1.0},
        .out = {{1.5, 4.5}, {4}, {4}, {-6}, {-1.5}}},
       {.name = "ints", .in = {x, v, v, v, x}, .op = {}, .dtypes = dtypes::ints, .rejects = "c1"},
       {.name = "mean_size", .in = {x, v, T({2}), v, x}, .op = {}, .rejects = "c2"},
       {.name = "eps_negative", .in = {x, v, v, v, x}, .op = {.eps = -1.0}, .rejects = "c3"},
       {.name = "dy_shape", .in = {x, v, v, v, T({3})}, .op = {}, .rejects = "c4"}});
  return cases_of<O>(list);
}

}  // namespace ricci::testing
